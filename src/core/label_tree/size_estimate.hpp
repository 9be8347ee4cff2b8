// The size of a label tree before it is trained: the features of each inner node (Eq. 18 of the paper), the
// columns that the rows of each child reach, and the weights that a few sampled siblings keep.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <iterator>

#include "base/csr.hpp"
#include "base/parallel.hpp"
#include "base/rng.hpp"
#include "base/span.hpp"
#include "base/stamped_counts.hpp"
#include "label_tree/block_solver.hpp"
#include "label_tree/node_problem.hpp"
#include "label_tree/tree.hpp"
#include "simd/solver.hpp"
#include "sparse/label_vectors.hpp"
#include "sparse/training_rows.hpp"

namespace labelwood::label_tree {

struct NodeSizes {
    Vector<int64_t> features;  // per inner node, in id order: features that its rows use
    Vector<int64_t> entries;   // per inner node: non-zeros of its rows
    Vector<int64_t> rows;      // per node, leaves included
};

inline NodeSizes count_nodes(const sparse::TrainingRows& rows, const RowLists& members, const Tree& tree,
                             int n_threads, Monitor& monitor) {
    const Csr& x = rows.x;
    const Vector<int32_t> inner = inner_nodes(tree);
    const int64_t n = inner.size();
    NodeSizes sizes{Vector<int64_t>(n), Vector<int64_t>(n), {}};
    for (int32_t node = 0; node < tree.n_nodes; ++node) sizes.rows.push_back(members.count(node));
    // A bit per column is enough to recognise it, and stays in cache.
    const int64_t n_words = (x.n_cols + 63) / 64;
    Vector<Vector<uint64_t>> seen(std::max(n_threads, 1));
    parallel_for(n, n_threads, monitor, [&](int64_t i, int worker) {
        const int32_t node = inner[i];
        Vector<uint64_t>& bits = seen[worker];
        bits.assign(n_words, 0);
        int64_t entries = 0;
        for (const int32_t row : members[node]) {
            rows.open(row);
            entries += x.row_nnz(row);
            for (int64_t j = x.indptr[row]; j < x.indptr[row + 1]; ++j) {
                bits[x.indices[j] >> 6] |= uint64_t{1} << (x.indices[j] & 63);
            }
        }
        int64_t features = 0;
        for (const uint64_t word : bits) features += __builtin_popcountll(word);
        sizes.features[i] = features;
        sizes.entries[i] = entries;
    });
    return sizes;
}

// Counts the columns that siblings reach. A sibling reaches a column if the sum of its rows there, in size,
// exceeds a threshold; the thresholds rise. Weights come from the positive rows of a sibling, so the counts
// predict, from the data alone, about how many weights exceed a size.
class Reach {
  public:
    Reach(int64_t n_cols, Span<const float> thresholds)
        : thresholds_(thresholds.begin(), thresholds.end()), sum_(n_cols), best_(n_cols, 0) {}

    // Adds the columns that one sibling's rows reach to `counts`, by threshold. Returns the squared length of
    // the sum.
    double add(const sparse::TrainingRows& rows, Span<const int32_t> own, int64_t* counts) {
        for (const int32_t row : own) sum_.add_row(rows.x, row, rows.open(row));
        double square = 0.0;
        sum_.drain([&](int32_t column, float value) {
            const float size = std::fabs(value);
            square += static_cast<double>(size) * size;
            uint8_t level = 0;
            while (level < thresholds_.size() && size > thresholds_[level]) ++counts[level++];
            uint8_t& best = best_[column];
            if (level > best) {
                if (best == 0) reached_.push_back(column);
                best = level;
            }
        });
        return square;
    }
    // Adds the columns that any sibling has reached since the last call to `counts`, by threshold.
    void together(int64_t* counts) {
        for (const int32_t column : reached_) {
            uint8_t& best = best_[column];
            for (uint8_t level = 0; level < best; ++level) ++counts[level];
            best = 0;
        }
        reached_.clear();
    }

  private:
    Vector<float> thresholds_;
    sparse::SparseSum sum_;
    Vector<uint8_t> best_;
    Vector<int32_t> reached_;
};

struct ReachCounts {
    Vector<int64_t> by_node;   // per node and threshold; 0 for the root
    Vector<int64_t> together;  // per inner node and threshold: reached by any of its children
    Vector<double> square;     // per node: the squared length of the sum of its rows
};

inline ReachCounts reach_nodes(const sparse::TrainingRows& rows, const RowLists& members, const Tree& tree,
                               Span<const float> thresholds, int n_threads, Monitor& monitor) {
    const Vector<int32_t> inner = inner_nodes(tree);
    const int64_t n_levels = thresholds.size();
    ReachCounts found{Vector<int64_t>(tree.n_nodes * n_levels), Vector<int64_t>(inner.size() * n_levels),
                      Vector<double>(tree.n_nodes)};
    Vector<Reach> scratches(std::max(n_threads, 1), Reach(rows.x.n_cols, thresholds));
    parallel_for(inner.size(), n_threads, monitor, [&](int64_t task, int worker) {
        Reach& reach = scratches[worker];
        const int32_t node = inner[task];
        for (int32_t child = tree.child_ptr[node]; child < tree.child_ptr[node + 1]; ++child) {
            found.square[child] = reach.add(rows, members[child], found.by_node.data() + child * n_levels);
        }
        reach.together(found.together.data() + task * n_levels);
    });
    return found;
}

// Siblings of one inner node to be trained on n_rows of its rows, to see how many weights they keep.
struct SiblingSample {
    int32_t node;
    Vector<int32_t> children;  // counted from the node's first
    int64_t n_rows;
};

// Counts of a sample by threshold: `weights` that siblings kept and columns that they `reach`, by sibling
// first; `features` that any sibling kept, columns that any `reached`.
struct Kept {
    Vector<int64_t> weights, features, reach, reached;
    double build_seconds = 0.0, solve_seconds = 0.0;
};

// n_rows rows of a node, evenly spread.
inline Vector<int32_t> some_rows(const RowLists& members, int32_t node, int64_t n_rows) {
    Vector<int32_t> rows;
    const int64_t count = members.count(node);
    for (int64_t i = 0; i < n_rows; ++i) rows.push_back(members[node][i * count / n_rows]);
    return rows;
}

inline Kept train_sample(const sparse::TrainingRows& x, const RowLists& members, const Tree& tree,
                         const SiblingSample& sample, const SolverOptions& options,
                         Span<const float> thresholds, uint64_t seed, int64_t most_entries,
                         StampedCounts& columns, Reach& reach, Monitor& monitor) {
    using Clock = std::chrono::steady_clock;
    const int64_t n_levels = thresholds.size(), n_siblings = sample.children.size();
    const auto started = Clock::now();
    NodeProblem problem;
    const Vector<int32_t> rows = some_rows(members, sample.node, sample.n_rows);
    build_problem(x, rows, options.bias, most_entries, columns, &problem);
    Kept kept{Vector<int64_t>(n_levels * n_siblings), Vector<int64_t>(n_levels),
              Vector<int64_t>(n_levels * n_siblings), Vector<int64_t>(n_levels)};
    RowLists positives;
    Vector<int32_t> trained, own;
    for (int64_t number = 0; number < n_siblings; ++number) {
        const int32_t child = tree.child_ptr[sample.node] + sample.children[number];
        own.clear();
        std::ranges::set_intersection(members[child], rows, std::back_inserter(own));
        reach.add(x, own, kept.reach.data() + number * n_levels);
        auto at = rows.begin();
        for (const int32_t row : own) {
            at = std::lower_bound(at, rows.end(), row);
            positives.rows.push_back(static_cast<int32_t>(at - rows.begin()));
        }
        positives.close();
        if (!own.empty()) trained.push_back(static_cast<int32_t>(number));
    }
    reach.together(kept.reached.data());
    // As in training: siblings of a block should settle together.
    std::stable_sort(trained.begin(), trained.end(),
                     [&](int32_t a, int32_t b) { return positives.count(a) > positives.count(b); });
    const auto built = Clock::now();
    const int64_t n_features = problem.features.size();
    Vector<uint8_t> best(n_features, 0);  // the thresholds that some sibling's weight exceeds
    SolverScratch scratch;
    auto sink = [&](const Finished& finished) {
        for (int64_t f = 0; f < n_features; ++f) {
            const float* from = finished.weights + f * finished.width;
            finished.each([&](int lane, int32_t number) {
                const float size = std::fabs(from[lane]);
                uint8_t level = 0;
                while (level < n_levels && size > thresholds[level]) {
                    ++kept.weights[number * n_levels + level++];
                }
                best[f] = std::max(best[f], level);
            });
        }
    };
    for (int64_t begin = 0; begin < trained.size(); begin += simd::kMaxLanes) {
        const int64_t n = std::min<int64_t>(simd::kMaxLanes, trained.size() - begin);
        BlockSolver(problem, positives, options, scratch)
            .run(trained.data() + begin, static_cast<int>(n), seed, monitor, sink);
    }
    for (const uint8_t level : best) {
        for (uint8_t t = 0; t < level; ++t) ++kept.features[t];
    }
    kept.build_seconds = std::chrono::duration<double>(built - started).count();
    kept.solve_seconds = std::chrono::duration<double>(Clock::now() - built).count();
    return kept;
}

// Samples to train: the picked children of nodes[i] are picked[picked_ptr[i]] onwards, counted from its
// first, and train on n_rows[i] of its rows.
struct SamplePlan {
    Span<const int32_t> nodes;
    Span<const int64_t> picked_ptr;
    Span<const int32_t> picked;
    Span<const int64_t> n_rows;
};

struct SampleOptions {
    SolverOptions solver;
    uint64_t seed;
    int64_t most_entries;
};

// A row of the results per sampled node, of `weights` and `reach` per picked sibling; a column per threshold,
// or the seconds of building and of solving.
struct Samples {
    Vector<int64_t> weights, features, reach, reached;
    Vector<double> seconds;

    void add(const Kept& kept) {
        auto append = [](auto& all, const auto& part) { all.insert(all.end(), part.begin(), part.end()); };
        append(weights, kept.weights);
        append(features, kept.features);
        append(reach, kept.reach);
        append(reached, kept.reached);
        seconds.push_back(kept.build_seconds);
        seconds.push_back(kept.solve_seconds);
    }
};

inline Samples train_samples(const sparse::TrainingRows& rows, const Csr& y, const Tree& tree,
                             const SamplePlan& plan, Span<const float> thresholds,
                             const SampleOptions& options, Monitor& monitor) {
    const RowLists members = node_members(y, tree);
    StampedCounts columns(rows.x.n_cols);
    Reach reach(rows.x.n_cols, thresholds);
    Samples samples;
    for (int64_t i = 0; i < plan.nodes.size(); ++i) {
        const SiblingSample sample{
            plan.nodes[i],
            {plan.picked.data() + plan.picked_ptr[i], plan.picked.data() + plan.picked_ptr[i + 1]},
            plan.n_rows[i]};
        samples.add(train_sample(rows, members, tree, sample, options.solver, thresholds,
                                 mix64(options.seed) ^ static_cast<uint64_t>(i), options.most_entries,
                                 columns, reach, monitor));
        monitor.poll();
        if (monitor.stopped()) throw Interrupted();
    }
    return samples;
}

}  // namespace labelwood::label_tree
