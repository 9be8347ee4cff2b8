// Packs the growing tree into the arrays that label tree search reads.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/span.hpp"
#include "label_tree/tree_trainer.hpp"
#include "online/state.hpp"

namespace labelwood::online {

// A label tree in breadth-first order with its weights. `leaf_labels[j]` is the label that leaf j suggests.
// Retired labels, and nodes with no other label below, are left out.
struct PackedTree {
    Vector<int32_t> child_ptr, label, leaf_labels;
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

inline void pack_labels(const Tree& tree, const Vector<int32_t>& order, PackedTree* out) {
    Vector<int32_t>&labels = out->label, &leaf_labels = out->leaf_labels;
    for (const int32_t v : order) {
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

// Adds the weights of the nodes `order`. `each_row(i, block, use)` calls use(feature, weights by lane) for the rows of
// packed node i.
template <class EachRow>
void pack_weights(const Tree& tree, const Vector<int32_t>& order, float threshold, PackedTree& out,
                  EachRow&& each_row) {
    const Nodes& nodes = tree.nodes();
    label_tree::PackedWeights& packed = out.weights;
    packed.bias.assign(order.size(), 0.0f);
    const bool dense = threshold < 0.0f;
    Vector<int32_t> lanes;  // of a node's children
    for (int64_t i = 0; i < order.size(); ++i) {
        if (out.label[i] >= 0) continue;
        const int32_t block = order[i] < 0 ? 0 : nodes[order[i]].block;
        const int32_t begin = out.child_ptr[i], end = out.child_ptr[i + 1];
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
        each_row(i, tree.block(block), add_row);
        packed.feature_ptr.push_back(packed.features.size());
        packed.weight_ptr.push_back(packed.weights.size());
    }
}

inline PackedTree pack(const Tree& tree, float threshold) {
    PackedTree out;
    const Vector<int32_t> order = packed_order(tree, &out.child_ptr);
    pack_labels(tree, order, &out);
    pack_weights(tree, order, threshold, out, [&](int64_t, const SiblingBlock& block, auto& use) {
        BlockState::each_row(block, tree.numbers(), tree.learner(), use);
    });
    return out;
}

// The packed tree as far as a row with these features reaches these labels: all nodes, but only the weights of the
// features, and only of nodes above a leaf that suggests one of the labels.
inline PackedTree pack_paths(const Tree& tree, Span<const int32_t> features, Span<const int32_t> labels) {
    PackedTree out;
    const Vector<int32_t> order = packed_order(tree, &out.child_ptr);
    pack_labels(tree, order, &out);
    Vector<uint8_t> above(order.size(), 0);
    for (int64_t i = order.size() - 1; i >= 0; --i) {
        if (out.label[i] >= 0) {
            above[i] = std::find(labels.begin(), labels.end(), out.leaf_labels[out.label[i]]) != labels.end();
        }
        for (int32_t child = out.child_ptr[i]; child < out.child_ptr[i + 1]; ++child) above[i] |= above[child];
    }
    pack_weights(tree, order, -1.0f, out, [&](int64_t i, const SiblingBlock& block, auto& use) {
        if (above[i]) BlockState::each_row_among(features, block, tree.numbers(), tree.learner(), use);
    });
    return out;
}

}  // namespace labelwood::online
