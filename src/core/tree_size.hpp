// The size of a label tree before it is trained: the features each inner node uses (Eq. 18 of the paper), and
// what a few sampled siblings keep of their weights.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <vector>

#include "common.hpp"
#include "node_problem.hpp"
#include "parallel.hpp"
#include "solve.hpp"
#include "tree.hpp"

namespace labelwood {

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

inline NodeSizes count_nodes(const TrainingRows& rows, const NodeMembers& members, const Tree& tree,
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
        for (const int32_t* row = members.begin(node); row != members.end(node); ++row) {
            rows.open(*row);
            entries += x.row_nnz(*row);
            for (int64_t j = x.indptr[*row]; j < x.indptr[*row + 1]; ++j) {
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

// A few siblings of one inner node, trained to see what they keep: at most kMaxLanes, so one block.
struct SiblingSample {
    int32_t node;
    std::vector<int32_t> children;  // counted from the node's first
};

// What a sample kept, by threshold; `weights` also by sibling, siblings first. `once`, `twice` and `half`
// extrapolate the features of all siblings: features that one or two of the sampled siblings kept, and those
// that every other sibling kept alone.
struct Kept {
    std::vector<int64_t> weights, features, once, twice, half;
    double build_seconds = 0.0, solve_seconds = 0.0;
};

inline Kept train_sample(const TrainingRows& x, const NodeMembers& members, const Tree& tree,
                         const SiblingSample& sample, const SolverOptions& options,
                         const std::vector<float>& thresholds, uint64_t seed, int64_t most_entries,
                         StampedCounts& columns, Monitor& monitor) {
    using Clock = std::chrono::steady_clock;
    const auto started = Clock::now();
    NodeProblem problem;
    const int32_t node = sample.node;
    build_problem(x, members.begin(node), members.count(node), options.bias, most_entries, columns, &problem);
    Positives positives;
    positives.ptr.assign(1, 0);
    std::vector<int32_t> trained;
    for (const int32_t c : sample.children) {
        const int32_t child = tree.child_ptr[node] + c;
        const int32_t* at = members.begin(node);
        for (const int32_t* row = members.begin(child); row != members.end(child); ++row) {
            at = std::lower_bound(at, members.end(node), *row);
            positives.rows.push_back(static_cast<int32_t>(at - members.begin(node)));
        }
        positives.ptr.push_back(static_cast<int64_t>(positives.rows.size()));
        const auto number = static_cast<int32_t>(positives.ptr.size()) - 2;
        if (positives.count(number) > 0) trained.push_back(number);
    }
    const auto built = Clock::now();
    const size_t n_features = problem.features.size(), n_levels = thresholds.size();
    Kept kept{std::vector<int64_t>(n_levels * sample.children.size()), std::vector<int64_t>(n_levels),
              std::vector<int64_t>(n_levels), std::vector<int64_t>(n_levels), std::vector<int64_t>(n_levels)};
    // Per feature and threshold: how many siblings kept it, and of these how many have an even number.
    std::vector<uint8_t> all(n_features * n_levels, 0), even(n_features * n_levels, 0);
    SolverSpace space;
    auto count = [&](int32_t number, const float* column, int stride) {
        for (size_t f = 0; f < n_features; ++f) {
            const float size = std::fabs(column[f * static_cast<size_t>(stride)]);
            for (size_t t = 0; t < n_levels && size > thresholds[t]; ++t) {
                ++all[f * n_levels + t];
                ++kept.weights[static_cast<size_t>(number) * n_levels + t];
                if (number % 2 == 0) ++even[f * n_levels + t];
            }
        }
    };
    auto sink = [&](const Finished& finished) {
        finished.each(
            [&](int lane, int32_t number) { count(number, finished.weights + lane, finished.width); });
    };
    if (!trained.empty()) {
        BlockSolver(problem, positives, options, space)
            .run(trained.data(), static_cast<int>(trained.size()), seed, monitor, sink);
    }
    for (size_t f = 0; f < n_features; ++f) {
        for (size_t t = 0; t < n_levels; ++t) {
            const uint8_t count = all[f * n_levels + t];
            kept.features[t] += count > 0;
            kept.once[t] += count == 1;
            kept.twice[t] += count == 2;
            kept.half[t] += even[f * n_levels + t] > 0;
        }
    }
    kept.build_seconds = std::chrono::duration<double>(built - started).count();
    kept.solve_seconds = std::chrono::duration<double>(Clock::now() - built).count();
    return kept;
}

}  // namespace labelwood
