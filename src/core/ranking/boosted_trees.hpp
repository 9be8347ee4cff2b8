// A sum of regression trees, evaluated for many candidates at once.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

#include "base/span.hpp"

namespace labelwood::ranking {

// A node goes to `child` if its feature is at most the threshold, else to `child + 1`. A leaf is its own child,
// and its threshold is infinite.
struct SplitNode {
    float threshold;
    int32_t feature;
    int32_t child;
};

// The arrays are checked in Python: children come after their parent and within its tree.
struct BoostedTrees {
    Vector<SplitNode> nodes;
    Vector<double> values;  // of leaves
    Vector<int32_t> roots;
    Vector<int32_t> depths;  // edges on the longest way from each root to a leaf
    double start = 0.0;      // of every sum
};

inline BoostedTrees boosted_trees(Span<const int32_t> roots, Span<const int32_t> features, Span<const float> thresholds,
                                  Span<const int32_t> children, Span<const double> values, double start) {
    constexpr float kInfinite = std::numeric_limits<float>::infinity();
    BoostedTrees trees;
    trees.start = start;
    const int64_t n_nodes = children.size(), n_trees = roots.size();
    Vector<int32_t> levels(n_nodes, 0);
    for (int64_t node = 0; node < n_nodes; ++node) {
        const int32_t child = children[node];
        if (child < 0) {
            trees.nodes.push_back({kInfinite, 0, static_cast<int32_t>(node)});
        } else {
            trees.nodes.push_back({thresholds[node], features[node], child});
            levels[child] = levels[child + 1] = levels[node] + 1;
        }
        trees.values.push_back(values[node]);
    }
    for (int64_t tree = 0; tree < n_trees; ++tree) {
        const int64_t end = tree + 1 < n_trees ? roots[tree + 1] : n_nodes;
        int32_t deepest = 0;
        for (int64_t node = roots[tree]; node < end; ++node) deepest = std::max(deepest, levels[node]);
        trees.roots.push_back(roots[tree]);
        trees.depths.push_back(deepest);
    }
    return trees;
}

// Adds up the leaves that each of `count` feature vectors reaches, tree by tree. `sums` has `count` entries.
inline void sum_leaves(const BoostedTrees& trees, const float* features, int64_t n_features, int64_t count,
                       double* sums) {
    // Several candidates walk down a tree in step, so that their memory accesses overlap.
    constexpr int64_t kInStep = 8;
    std::fill_n(sums, count, trees.start);
    for (int64_t tree = 0; tree < trees.roots.size(); ++tree) {
        const int32_t root = trees.roots[tree], depth = trees.depths[tree];
        for (int64_t first = 0; first < count; first += kInStep) {
            const int64_t n = std::min(kInStep, count - first);
            std::array<int32_t, kInStep> at;
            at.fill(root);
            for (int32_t level = 0; level < depth; ++level) {
                for (int64_t i = 0; i < n; ++i) {
                    const SplitNode& node = trees.nodes[at[static_cast<size_t>(i)]];
                    const float value = features[(first + i) * n_features + node.feature];
                    at[static_cast<size_t>(i)] = node.child + static_cast<int32_t>(value > node.threshold);
                }
            }
            for (int64_t i = 0; i < n; ++i) sums[first + i] += trees.values[at[static_cast<size_t>(i)]];
        }
    }
}

}  // namespace labelwood::ranking
