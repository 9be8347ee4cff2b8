// From grown trees to the flat arrays of a routed forest.
#pragma once

#include <cstdint>
#include <utility>

#include "base/span.hpp"

namespace labelwood::forest {

// A node of a growing tree. Its children are contiguous; a leaf has none. The parent scores the node by the
// vector weights_begin .. weights_end. A leaf's label distribution is leaf_begin .. leaf_end.
struct GrownNode {
    int32_t first_child = 0;
    int32_t n_children = 0;
    float bias = 0.0f;
    uint32_t seed = 0;  // of the node's projection, if every node has one
    int64_t weights_begin = 0;
    int64_t weights_end = 0;
    int64_t leaf_begin = 0;
    int64_t leaf_end = 0;
};

// A growing tree: node 0 is the root, the other ids are in any order.
struct GrownTree {
    Vector<GrownNode> nodes;
    Vector<int32_t> features;  // ascending within a node's range
    Vector<float> weights;
    Vector<int32_t> labels;  // ascending within a leaf's range
    Vector<float> values;
};

// The arrays of the Python class RoutedForest, in their widest types.
struct FlatForest {
    Vector<int32_t> child_ptr;
    Vector<int64_t> weight_ptr{0};
    Vector<int32_t> weight_features;
    Vector<float> weights;
    Vector<float> bias;
    Vector<int64_t> leaf_ptr{0};
    Vector<int32_t> leaf_labels;
    Vector<float> leaf_values;
    Vector<uint32_t> seeds;  // of the inner nodes, by id
};

// Numbers the nodes of all trees breadth-first: the roots are 0 .. n_trees, then come all their children, and
// so on. Consumes the trees.
inline FlatForest flatten(Vector<GrownTree>&& trees) {
    Vector<std::pair<int32_t, int32_t>> order;  // (tree, node) by final id
    int64_t n_nodes = 0, n_weights = 0, n_values = 0;
    for (const GrownTree& tree : trees) {
        n_nodes += tree.nodes.size();
        n_weights += tree.weights.size();
        n_values += tree.values.size();
    }
    order.reserve(n_nodes);
    for (int64_t t = 0; t < trees.size(); ++t) order.emplace_back(static_cast<int32_t>(t), 0);
    FlatForest flat;
    flat.child_ptr.reserve(n_nodes + 1);
    flat.weight_features.reserve(n_weights);
    flat.weights.reserve(n_weights);
    flat.leaf_labels.reserve(n_values);
    flat.leaf_values.reserve(n_values);
    flat.child_ptr.push_back(static_cast<int32_t>(order.size()));
    for (int64_t id = 0; id < order.size(); ++id) {
        const auto [t, local] = order[id];
        const GrownTree& tree = trees[t];
        const GrownNode& node = tree.nodes[local];
        for (int32_t c = 0; c < node.n_children; ++c) order.emplace_back(t, node.first_child + c);
        flat.child_ptr.push_back(static_cast<int32_t>(order.size()));
        flat.weight_features.insert(flat.weight_features.end(), tree.features.begin() + node.weights_begin,
                                    tree.features.begin() + node.weights_end);
        flat.weights.insert(flat.weights.end(), tree.weights.begin() + node.weights_begin,
                            tree.weights.begin() + node.weights_end);
        flat.weight_ptr.push_back(flat.weights.size());
        flat.bias.push_back(node.bias);
        if (node.n_children > 0) {
            flat.seeds.push_back(node.seed);
            continue;
        }
        flat.leaf_labels.insert(flat.leaf_labels.end(), tree.labels.begin() + node.leaf_begin,
                                tree.labels.begin() + node.leaf_end);
        flat.leaf_values.insert(flat.leaf_values.end(), tree.values.begin() + node.leaf_begin,
                                tree.values.begin() + node.leaf_end);
        flat.leaf_ptr.push_back(flat.leaf_values.size());
    }
    trees.clear();
    return flat;
}

}  // namespace labelwood::forest
