// Packs the growing tree into the arrays that label tree search reads.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/span.hpp"
#include "label_tree/tree_trainer.hpp"
#include "online/state.hpp"

namespace labelwood::online {

// A label tree in breadth-first order. `leaf_labels[j]` is the label that leaf j suggests, `order` has the node of the
// growing tree for each node. Retired labels, and nodes with no other label below, are left out.
struct PackedShape {
    Vector<int32_t> child_ptr, label, leaf_labels, order;
};

struct PackedTree {
    PackedShape shape;
    label_tree::PackedWeights weights;
};

// True for the leaves whose answer may be suggested, and for the nodes above them.
inline Vector<uint8_t> suggestible(const Tree& tree) {
    const Nodes& nodes = tree.nodes();
    Vector<uint8_t> kept(nodes.size(), 0);
    for (int32_t leaf = 0; leaf < nodes.size(); ++leaf) {
        const int32_t label = nodes[leaf].label;
        if (label < 0 || nodes[leaf].n_active == 0) continue;
        if (tree.labels()[tree.labels()[label].answers_as].retired) continue;
        for (int32_t v = leaf; v >= 0 && !kept[v]; v = nodes[v].parent) kept[v] = 1;
    }
    return kept;
}

// The nodes to pack in breadth-first order. Packed node 0 is above the root (-1), so that the root's own
// classifier has an edge. If no label may be suggested, it is the only node.
inline Vector<int32_t> packed_order(const Tree& tree, Vector<int32_t>* child_ptr) {
    const Nodes& nodes = tree.nodes();
    const Vector<uint8_t> kept = suggestible(tree);
    Vector<int32_t> order{-1};
    if (kept[Nodes::kRoot]) order.push_back(Nodes::kRoot);
    *child_ptr = {1, static_cast<int32_t>(order.size())};
    for (int64_t i = 1; i < order.size(); ++i) {
        for (const int32_t child : nodes[order[i]].children) {
            if (kept[child]) order.push_back(child);
        }
        child_ptr->push_back(static_cast<int32_t>(order.size()));
    }
    return order;
}

inline void pack_labels(const Tree& tree, PackedShape& out) {
    Vector<int32_t>&labels = out.label, &leaf_labels = out.leaf_labels;
    for (const int32_t v : out.order) {
        const int32_t label = v < 0 ? -1 : tree.nodes()[v].label;
        labels.push_back(label);
        if (label >= 0) leaf_labels.push_back(label);
    }
    std::sort(leaf_labels.begin(), leaf_labels.end());
    Vector<int32_t> leaf_of(tree.labels().size(), -1);
    for (int64_t j = 0; j < leaf_labels.size(); ++j) leaf_of[leaf_labels[j]] = static_cast<int32_t>(j);
    for (int32_t& label : labels) {
        if (label >= 0) label = leaf_of[label];
    }
    for (int32_t& label : leaf_labels) label = tree.labels()[label].answers_as;
}

inline PackedShape packed_shape(const Tree& tree) {
    PackedShape out;
    out.order = packed_order(tree, &out.child_ptr);
    pack_labels(tree, out);
    return out;
}

// The block that scores a node; -1 is the node above the root.
inline int32_t block_of(const Tree& tree, int32_t node) {
    return node < 0 ? 0 : tree.nodes()[node].block;
}

inline PackedTree pack(const Tree& tree, float threshold) {
    PackedTree out{packed_shape(tree), {}};
    const Vector<int32_t>& order = out.shape.order;
    const Nodes& nodes = tree.nodes();
    label_tree::PackedWeights& packed = out.weights;
    packed.bias.assign(order.size(), 0.0f);
    const bool dense = threshold < 0.0f;
    Vector<int32_t> lanes;  // of a node's children
    for (int64_t i = 0; i < order.size(); ++i) {
        if (out.shape.label[i] >= 0) continue;
        const int32_t begin = out.shape.child_ptr[i], end = out.shape.child_ptr[i + 1];
        lanes.clear();
        for (int32_t c = begin; c < end; ++c) lanes.push_back(nodes[order[c]].lane);
        const int64_t start = packed.weights.size();
        const auto add_row = [&](int64_t feature, const float* row) {
            const int64_t before = packed.weights.size();
            if (feature < 0) {
                for (int32_t c = begin; c < end; ++c) packed.bias[c] = row[lanes[c - begin]] * tree.learner().bias;
                return;
            }
            if (dense) {
                packed.weights.resize(before + end - begin);
                float* to = packed.weights.data() + before;
                for (const int32_t lane : lanes) *to++ = row[lane];
                packed.features.push_back(static_cast<int32_t>(feature));
                return;
            }
            for (int32_t c = begin; c < end; ++c) {
                const float weight = row[lanes[c - begin]];
                if (!(std::abs(weight) > threshold)) continue;
                packed.child.push_back(c - begin);
                packed.weights.push_back(weight);
            }
            if (packed.weights.size() == before) return;
            packed.row_start.push_back(static_cast<uint32_t>(before - start));
            packed.features.push_back(static_cast<int32_t>(feature));
        };
        BlockState::each_row(tree.block(block_of(tree, order[i])), tree.numbers(), tree.learner(), add_row);
        packed.feature_ptr.push_back(packed.features.size());
        packed.weight_ptr.push_back(packed.weights.size());
    }
    return out;
}

// The weights of some nodes for some features, [nodes, features], and their biases.
struct WeightsOfNodes {
    Vector<float> weights, bias;
};

// Nodes with the same parent follow one another.
inline WeightsOfNodes weights_of(const Tree& tree, Span<const int32_t> nodes, Span<const int32_t> features) {
    const int64_t width = features.size();
    WeightsOfNodes out{Vector<float>(nodes.size() * width, 0.0f), Vector<float>(nodes.size(), 0.0f)};
    for (int64_t begin = 0, end = 0; begin < nodes.size(); begin = end) {
        const int32_t parent = tree.nodes()[nodes[begin]].parent;
        while (end < nodes.size() && tree.nodes()[nodes[end]].parent == parent) ++end;
        int64_t column = 0;
        const auto add_row = [&](int64_t feature, const float* row) {
            while (feature >= 0 && features[column] != feature) ++column;
            for (int64_t i = begin; i < end; ++i) {
                const float weight = row[tree.nodes()[nodes[i]].lane];
                if (feature < 0) {
                    out.bias[i] = weight * tree.learner().bias;
                } else {
                    out.weights[i * width + column] = weight;
                }
            }
        };
        BlockState::each_row_among(features, tree.block(block_of(tree, parent)), tree.numbers(), tree.learner(),
                                   add_row);
    }
    return out;
}

}  // namespace labelwood::online
