// The router of every instance forest: from rows to the leaves they reach, tree by tree, and to averaged
// top-k lists.
//
// A node scores each child by the dot product of the (projected) row with the child's sparse vector, plus a
// bias. Either side of a dot product may be scattered into a dense array for the other to gather from; a long
// vector may also be searched. Which is cheapest depends on the lengths alone, and sums are taken in double
// precision, so that a row goes the same way alone and in a batch.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "common.hpp"
#include "parallel.hpp"
#include "projection.hpp"
#include "simd.hpp"
#include "topk.hpp"
#include "weights.hpp"

namespace labelwood {

// What routing needs besides the vectors. Ids are breadth-first over the whole forest: the roots are 0 ..
// n_trees and the children of u are child_ptr[u] .. child_ptr[u + 1].
struct Routing {
    const int32_t* child_ptr;
    const float* bias;
    const uint32_t* seeds;   // of the projection, per tree or per inner node
    const int32_t* numbers;  // of a node among the inner nodes, or among the leaves
    int32_t n_trees;
    int64_t n_features;
    ProjectionKind projection;
    int32_t n_columns;  // of the projected rows
    bool seed_per_node;
    bool several;  // every child above the threshold, and the best if there is none; else the best
    float threshold;

    bool is_leaf(int32_t node) const { return child_ptr[node] == child_ptr[node + 1]; }
};

// Row u is the vector by which u's parent scores u.
template <class Index, class Weight>
struct NodeVectors {
    const int64_t* ptr;
    const Index* features;
    const Weight* weights;

    int64_t length(int32_t node) const { return ptr[node + 1] - ptr[node]; }
};

inline double gather_dot(const uint16_t* at, const Half* w, int64_t n, const float* dense) {
    return simd().gather_dot_u16_f16(at, &w->bits, n, dense);
}
inline double gather_dot(const uint16_t* at, const float* w, int64_t n, const float* dense) {
    return simd().gather_dot_u16_f32(at, w, n, dense);
}
inline double gather_dot(const int32_t* at, const Half* w, int64_t n, const float* dense) {
    return simd().gather_dot_i32_f16(at, &w->bits, n, dense);
}
inline double gather_dot(const int32_t* at, const float* w, int64_t n, const float* dense) {
    return simd().gather_dot_i32_f32(at, w, n, dense);
}

struct Reached {
    int32_t row;  // within the shard
    int32_t tree;
    int32_t leaf;  // node id
};

// Buffers of one worker, kept between calls: a single row must not pay for clearing them.
struct RouteSpace {
    explicit RouteSpace(const Routing& routing)
        : projector(routing.projection, routing.n_features, routing.n_columns),
          dense(static_cast<size_t>(projector.n_columns()), 0.0f) {}

    Projector projector;
    std::vector<float> dense;  // all zero between uses
    std::vector<int64_t> start;
    std::vector<int32_t> columns;  // projected rows of the shard
    std::vector<float> values;
    std::vector<int32_t> node_columns;  // one row, projected for one node
    std::vector<float> node_values;
    std::vector<double> scores;
    std::vector<int32_t> rows, group, path;
    std::vector<std::pair<int32_t, size_t>>
        pending;  // (node, where its rows begin); later ones end where it begins
    std::vector<Reached> reached;
    std::vector<float> sums;  // per label, all zero between uses
    std::vector<int32_t> touched;
    std::vector<int64_t> reached_ptr;
    std::vector<Reached> by_row;
};

class RouteSpaces {
  public:
    explicit RouteSpaces(const Routing& routing) : routing_(routing) {}

    std::unique_ptr<RouteSpace> take() {
        const std::lock_guard lock(mutex_);
        if (idle_.empty()) return std::make_unique<RouteSpace>(routing_);
        std::unique_ptr<RouteSpace> space = std::move(idle_.back());
        idle_.pop_back();
        return space;
    }
    void give(std::unique_ptr<RouteSpace> space) {
        const std::lock_guard lock(mutex_);
        idle_.push_back(std::move(space));
    }

  private:
    const Routing routing_;
    std::mutex mutex_;
    std::vector<std::unique_ptr<RouteSpace>> idle_;
};

template <class Index, class Weight>
class Router {
  public:
    Router(const Routing& routing, const NodeVectors<Index, Weight>& vectors, const Csr& x)
        : routing_(routing), vectors_(vectors), x_(x) {}

    // The leaves that rows begin .. end reach, in space.reached: trees in order, and a row's leaves of one
    // tree from left to right.
    void route(int64_t begin, int64_t end, RouteSpace& space) const {
        space.reached.clear();
        if (routing_.projection == ProjectionKind::kNone) project_shard(begin, end, 0, space);
        for (int32_t tree = 0; tree < routing_.n_trees; ++tree) {
            if (routing_.projection != ProjectionKind::kNone && !routing_.seed_per_node) {
                project_shard(begin, end, routing_.seeds[tree], space);
            }
            route_tree(tree, begin, end, space);
        }
    }

  private:
    // Nanoseconds, roughly: an element gathered, a column searched for, an element scattered and cleared.
    static constexpr double kGather = 0.4, kFind = 12.0, kScatter = 2.0;

    void project_shard(int64_t begin, int64_t end, uint32_t seed, RouteSpace& space) const {
        space.start.assign(1, 0);
        for (int64_t row = begin; row < end; ++row) {
            space.start.push_back(space.start.back() + space.projector.width(x_.row_nnz(row)));
        }
        space.columns.resize(static_cast<size_t>(space.start.back()));
        space.values.resize(space.columns.size());
        for (int64_t row = begin; row < end; ++row) {
            const int64_t at = space.start[static_cast<size_t>(row - begin)];
            space.projector.project(row_of(x_, row), seed, space.columns.data() + at,
                                    space.values.data() + at);
        }
    }

    // A row as `node` sees it.
    Query seen(int32_t node, int64_t begin, int32_t row, RouteSpace& space) const {
        if (!routing_.seed_per_node || routing_.projection == ProjectionKind::kNone) {
            const int64_t at = space.start[static_cast<size_t>(row)];
            return {space.columns.data() + at, space.values.data() + at,
                    space.start[static_cast<size_t>(row) + 1] - at};
        }
        const Query plain = row_of(x_, begin + row);
        const int64_t width = space.projector.width(plain.count);
        space.node_columns.resize(static_cast<size_t>(width));
        space.node_values.resize(static_cast<size_t>(width));
        space.projector.project(plain, routing_.seeds[routing_.numbers[node]], space.node_columns.data(),
                                space.node_values.data());
        return {space.node_columns.data(), space.node_values.data(), width};
    }

    void route_tree(int32_t tree, int64_t begin, int64_t end, RouteSpace& space) const {
        space.rows.resize(static_cast<size_t>(end - begin));
        for (size_t i = 0; i < space.rows.size(); ++i) space.rows[i] = static_cast<int32_t>(i);
        space.pending.assign(1, {tree, 0});
        while (!space.pending.empty()) {
            const auto [node, from] = space.pending.back();
            space.pending.pop_back();
            space.group.assign(space.rows.begin() + static_cast<int64_t>(from), space.rows.end());
            space.rows.resize(from);
            if (!together(node, begin, space)) {
                for (const int32_t row : space.group) walk(tree, node, begin, row, space);
                continue;
            }
            score_group(node, begin, space);
            const int32_t first = routing_.child_ptr[node], count = routing_.child_ptr[node + 1] - first;
            // Backwards, so that the first child is taken up first.
            for (int32_t child = count - 1; child >= 0; --child) {
                space.pending.emplace_back(first + child, space.rows.size());
                for (size_t i = 0; i < space.group.size(); ++i) {
                    if (goes_to(child, count, space.scores.data() + i * static_cast<size_t>(count))) {
                        space.rows.push_back(space.group[i]);
                    }
                }
            }
        }
    }

    // Whether scattering the children's vectors once for the whole group is cheaper than walking row by row.
    bool together(int32_t node, int64_t begin, const RouteSpace& space) const {
        if (space.group.size() < 2 || routing_.is_leaf(node)) return false;
        double entries = 0.0, alone = 0.0, shared = 0.0;
        for (const int32_t row : space.group) {
            entries += static_cast<double>(space.projector.width(x_.row_nnz(begin + row)));
        }
        for (int32_t c = routing_.child_ptr[node]; c < routing_.child_ptr[node + 1]; ++c) {
            const auto length = static_cast<double>(vectors_.length(c));
            alone += std::min(kGather * length * static_cast<double>(space.group.size()), kFind * entries);
            shared += kScatter * length + 1.5 * kGather * entries;
        }
        return shared < alone;
    }

    void score_group(int32_t node, int64_t begin, RouteSpace& space) const {
        const int32_t first = routing_.child_ptr[node], count = routing_.child_ptr[node + 1] - first;
        space.scores.resize(space.group.size() * static_cast<size_t>(count));
        for (int32_t child = 0; child < count; ++child) {
            const int64_t from = vectors_.ptr[first + child], to = vectors_.ptr[first + child + 1];
            for (int64_t j = from; j < to; ++j) {
                space.dense[static_cast<size_t>(vectors_.features[j])] = widen(vectors_.weights[j]);
            }
            for (size_t i = 0; i < space.group.size(); ++i) {
                const Query row = seen(node, begin, space.group[i], space);
                const double dot = gather_dot(row.columns, row.values, row.count, space.dense.data());
                space.scores[i * static_cast<size_t>(count) + static_cast<size_t>(child)] =
                    dot + routing_.bias[first + child];
            }
            for (int64_t j = from; j < to; ++j) space.dense[static_cast<size_t>(vectors_.features[j])] = 0.0f;
        }
    }

    static bool is_best(int32_t child, int32_t count, const double* scores) {
        return std::max_element(scores, scores + count) - scores == child;  // the first of equals
    }

    bool goes_to(int32_t child, int32_t count, const double* scores) const {
        if (!routing_.several) return is_best(child, count, scores);
        if (scores[child] > routing_.threshold) return true;
        const bool none =
            std::none_of(scores, scores + count, [&](double s) { return s > routing_.threshold; });
        return none && is_best(child, count, scores);
    }

    // One row from `node` down to its leaves.
    void walk(int32_t tree, int32_t node, int64_t begin, int32_t row, RouteSpace& space) const {
        space.path.assign(1, node);
        bool scattered = false;
        const bool per_node = routing_.seed_per_node && routing_.projection != ProjectionKind::kNone;
        Query query{nullptr, nullptr, 0};
        if (!per_node) query = seen(node, begin, row, space);
        while (!space.path.empty()) {
            const int32_t at = space.path.back();
            space.path.pop_back();
            if (routing_.is_leaf(at)) {
                space.reached.push_back({row, tree, at});
                continue;
            }
            if (per_node) query = seen(at, begin, row, space);
            const int32_t first = routing_.child_ptr[at], count = routing_.child_ptr[at + 1] - first;
            space.scores.resize(static_cast<size_t>(count));
            for (int32_t child = 0; child < count; ++child) {
                const int64_t from = vectors_.ptr[first + child], length = vectors_.length(first + child);
                double dot;
                if (kGather * static_cast<double>(length) > kFind * static_cast<double>(query.count)) {
                    dot = find_dot(query, vectors_.features + from, vectors_.weights + from, length);
                } else {
                    if (!scattered) scatter(query, space);
                    scattered = true;
                    dot = gather_dot(vectors_.features + from, vectors_.weights + from, length,
                                     space.dense.data());
                }
                space.scores[static_cast<size_t>(child)] = dot + routing_.bias[first + child];
            }
            if (per_node && scattered) clear(query, space);
            if (per_node) scattered = false;
            for (int32_t child = count - 1; child >= 0; --child) {
                if (goes_to(child, count, space.scores.data())) space.path.push_back(first + child);
            }
        }
        if (scattered) clear(query, space);
    }

    static void scatter(const Query& query, RouteSpace& space) {
        for (int64_t j = 0; j < query.count; ++j)
            space.dense[static_cast<size_t>(query.columns[j])] += query.values[j];
    }
    static void clear(const Query& query, RouteSpace& space) {
        for (int64_t j = 0; j < query.count; ++j) space.dense[static_cast<size_t>(query.columns[j])] = 0.0f;
    }

    static double find_dot(const Query& query, const Index* features, const Weight* weights, int64_t length) {
        double sum = 0.0;
        for (int64_t j = 0; j < query.count; ++j) {
            const Index* at =
                std::lower_bound(features, features + length, query.columns[j],
                                 [](Index a, int32_t b) { return static_cast<int32_t>(a) < b; });
            if (at != features + length && static_cast<int32_t>(*at) == query.columns[j]) {
                sum +=
                    static_cast<double>(query.values[j]) * static_cast<double>(widen(weights[at - features]));
            }
        }
        return sum;
    }

    const Routing routing_;
    const NodeVectors<Index, Weight> vectors_;
    const Csr x_;
};

}  // namespace labelwood
