// The size of a label tree before it is trained: the features each inner node uses (Eq. 18 of the paper),
// what the rows of each child reach, and what a few sampled siblings keep of their weights.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <vector>

#include "base/csr.hpp"
#include "base/parallel.hpp"
#include "base/rng.hpp"
#include "label_tree/block_solver.hpp"
#include "label_tree/node_problem.hpp"
#include "label_tree/tree.hpp"
#include "sparse/label_vectors.hpp"

namespace labelwood::label_tree {

struct NodeSizes {
    std::vector<int64_t> features;  // per inner node, in the order of ids: used by its rows
    std::vector<int64_t> entries;   // likewise: non-zeros of its rows
    std::vector<int64_t> rows;      // per node, leaves included
};

inline std::vector<int32_t> inner_nodes(const Tree& tree) {
    std::vector<int32_t> inner;
    for (int32_t u = 0; u < tree.n_nodes; ++u) {
        if (!tree.is_leaf(u)) inner.push_back(u);
    }
    return inner;
}

inline NodeSizes count_nodes(const sparse::TrainingRows& rows, const RowLists& members, const Tree& tree,
                             int n_threads, Monitor& monitor) {
    const Csr& x = rows.x;
    const std::vector<int32_t> inner = inner_nodes(tree);
    const size_t n = inner.size();
    NodeSizes sizes{std::vector<int64_t>(n), std::vector<int64_t>(n), {}};
    for (int32_t node = 0; node < tree.n_nodes; ++node) sizes.rows.push_back(members.count(node));
    // A bit per column is enough to know it again, and stays in cache.
    const auto n_words = static_cast<size_t>((x.n_cols + 63) / 64);
    std::vector<std::vector<uint64_t>> seen(static_cast<size_t>(std::max(n_threads, 1)));
    parallel_for(static_cast<int64_t>(n), n_threads, monitor, [&](int64_t task, int worker) {
        const auto i = static_cast<size_t>(task);
        const int32_t node = inner[i];
        std::vector<uint64_t>& bits = seen[static_cast<size_t>(worker)];
        bits.assign(n_words, 0);
        int64_t entries = 0;
        for (const int32_t row : members[node]) {
            rows.open(row);
            entries += x.row_nnz(row);
            for (int64_t j = x.indptr[row]; j < x.indptr[row + 1]; ++j) {
                bits[static_cast<size_t>(x.indices[j]) >> 6] |= uint64_t{1} << (x.indices[j] & 63);
            }
        }
        int64_t features = 0;
        for (const uint64_t word : bits) features += __builtin_popcountll(word);
        sizes.features[i] = features;
        sizes.entries[i] = entries;
    });
    return sizes;
}

// What the rows of siblings reach: columns in which the sum of a sibling's rows, in size, exceeds each of the
// rising thresholds. A weight comes from the rows that are positive for its sibling, so that this tells, from
// the data alone, about how many weights will be of some size.
class Reach {
  public:
    Reach(int64_t n_cols, const std::vector<float>& thresholds)
        : thresholds_(thresholds), sum_(n_cols), best_(static_cast<size_t>(n_cols), 0) {}

    // One sibling's rows: adds the columns it reaches to `counts`, by threshold, and returns the squared
    // length of the sum.
    double add(const sparse::TrainingRows& rows, std::span<const int32_t> own, int64_t* counts) {
        for (const int32_t row : own) sum_.add_row(rows.x, row, rows.open(row));
        double square = 0.0;
        sum_.drain([&](int32_t column, float value) {
            const float size = std::fabs(value);
            square += static_cast<double>(size) * size;
            uint8_t level = 0;
            while (level < thresholds_.size() && size > thresholds_[level]) ++counts[level++];
            uint8_t& best = best_[static_cast<size_t>(column)];
            if (level > best) {
                if (best == 0) reached_.push_back(column);
                best = level;
            }
        });
        return square;
    }
    // Columns that any sibling has reached since the last call, by threshold.
    void together(int64_t* counts) {
        for (const int32_t column : reached_) {
            uint8_t& best = best_[static_cast<size_t>(column)];
            for (uint8_t level = 0; level < best; ++level) ++counts[level];
            best = 0;
        }
        reached_.clear();
    }

  private:
    std::vector<float> thresholds_;
    sparse::SparseSum sum_;
    std::vector<uint8_t> best_;
    std::vector<int32_t> reached_;
};

struct ReachCounts {
    std::vector<int64_t> by_node;   // per node and threshold; 0 for the root, which is no child
    std::vector<int64_t> together;  // per inner node, by all of its children, and threshold
    std::vector<double> square;     // per node: the squared length of the sum of its rows
};

inline ReachCounts reach_nodes(const sparse::TrainingRows& rows, const RowLists& members, const Tree& tree,
                               const std::vector<float>& thresholds, int n_threads, Monitor& monitor) {
    const std::vector<int32_t> inner = inner_nodes(tree);
    const size_t n_levels = thresholds.size();
    ReachCounts found{std::vector<int64_t>(static_cast<size_t>(tree.n_nodes) * n_levels),
                      std::vector<int64_t>(inner.size() * n_levels),
                      std::vector<double>(static_cast<size_t>(tree.n_nodes))};
    std::vector<Reach> scratches(static_cast<size_t>(std::max(n_threads, 1)),
                                 Reach(rows.x.n_cols, thresholds));
    parallel_for(static_cast<int64_t>(inner.size()), n_threads, monitor, [&](int64_t task, int worker) {
        Reach& reach = scratches[static_cast<size_t>(worker)];
        const int32_t node = inner[static_cast<size_t>(task)];
        for (int32_t child = tree.child_ptr[node]; child < tree.child_ptr[node + 1]; ++child) {
            found.square[static_cast<size_t>(child)] =
                reach.add(rows, members[child], found.by_node.data() + static_cast<size_t>(child) * n_levels);
        }
        reach.together(found.together.data() + static_cast<size_t>(task) * n_levels);
    });
    return found;
}

// Some siblings of one inner node, trained to see what they keep, on so many of its rows.
struct SiblingSample {
    int32_t node;
    std::vector<int32_t> children;  // counted from the node's first
    int64_t n_rows;
};

// What a sample kept, by threshold; `weights` and `reach` also by sibling, siblings first. `features` are
// those that any of the siblings kept, `reached` those that their rows reach.
struct Kept {
    std::vector<int64_t> weights, features, reach, reached;
    double build_seconds = 0.0, solve_seconds = 0.0;
};

// So many rows of a node, evenly spread.
inline std::vector<int32_t> some_rows(const RowLists& members, int32_t node, int64_t n_rows) {
    std::vector<int32_t> rows;
    const int64_t count = members.count(node);
    for (int64_t i = 0; i < n_rows; ++i)
        rows.push_back(members[node][static_cast<size_t>(i * count / n_rows)]);
    return rows;
}

inline Kept train_sample(const sparse::TrainingRows& x, const RowLists& members, const Tree& tree,
                         const SiblingSample& sample, const SolverOptions& options,
                         const std::vector<float>& thresholds, uint64_t seed, int64_t most_entries,
                         StampedCounts& columns, Reach& reach, Monitor& monitor) {
    using Clock = std::chrono::steady_clock;
    const size_t n_levels = thresholds.size(), n_siblings = sample.children.size();
    const auto started = Clock::now();
    NodeProblem problem;
    const std::vector<int32_t> rows = some_rows(members, sample.node, sample.n_rows);
    build_problem(x, rows.data(), sample.n_rows, options.bias, most_entries, columns, &problem);
    Kept kept{std::vector<int64_t>(n_levels * n_siblings), std::vector<int64_t>(n_levels),
              std::vector<int64_t>(n_levels * n_siblings), std::vector<int64_t>(n_levels)};
    RowLists positives;
    std::vector<int32_t> trained, own;
    for (size_t number = 0; number < n_siblings; ++number) {
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
    const size_t n_features = problem.features.size();
    std::vector<uint8_t> best(n_features, 0);  // the thresholds that some sibling's weight exceeds
    SolverScratch scratch;
    auto sink = [&](const Finished& finished) {
        for (size_t f = 0; f < n_features; ++f) {
            const float* from = finished.weights + f * static_cast<size_t>(finished.width);
            finished.each([&](int lane, int32_t number) {
                const float size = std::fabs(from[lane]);
                uint8_t level = 0;
                while (level < n_levels && size > thresholds[level]) {
                    ++kept.weights[static_cast<size_t>(number) * n_levels + level++];
                }
                best[f] = std::max(best[f], level);
            });
        }
    };
    for (size_t begin = 0; begin < trained.size(); begin += simd::kMaxLanes) {
        const size_t n = std::min<size_t>(simd::kMaxLanes, trained.size() - begin);
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
    const int32_t* nodes;
    size_t n_nodes;
    const int64_t* picked_ptr;
    const int32_t* picked;
    const int64_t* n_rows;
};

struct SampleOptions {
    SolverOptions solver;
    uint64_t seed;
    int64_t most_entries;
};

// A row of the results per sampled node, of `weights` and `reach` per picked sibling; a column per threshold,
// or the seconds of building and of solving.
struct Samples {
    std::vector<int64_t> weights, features, reach, reached;
    std::vector<double> seconds;

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
                             const SamplePlan& plan, const std::vector<float>& thresholds,
                             const SampleOptions& options, Monitor& monitor) {
    const RowLists members = node_members(y, tree);
    StampedCounts columns(rows.x.n_cols);
    Reach reach(rows.x.n_cols, thresholds);
    Samples samples;
    for (size_t i = 0; i < plan.n_nodes; ++i) {
        const SiblingSample sample{plan.nodes[i],
                                   {plan.picked + plan.picked_ptr[i], plan.picked + plan.picked_ptr[i + 1]},
                                   plan.n_rows[i]};
        samples.add(train_sample(rows, members, tree, sample, options.solver, thresholds,
                                 mix64(options.seed) ^ i, options.most_entries, columns, reach, monitor));
        monitor.poll();
        if (monitor.stopped()) throw Interrupted();
    }
    return samples;
}

}  // namespace labelwood::label_tree
