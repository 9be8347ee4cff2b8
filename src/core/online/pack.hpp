// The growing tree as the packed arrays that the shared predictor reads.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/span.hpp"
#include "label_tree/tree_trainer.hpp"
#include "online/state.hpp"

namespace labelwood::online {

// A label tree in breadth-first order with its weights. `leaf_labels[j]` is the label that leaf j of the
// packed tree suggests; retired labels, and nodes with nothing else below, are left out.
struct PackedTree {
    Vector<int32_t> child_ptr{1}, label, leaf_labels;
    label_tree::PackedWeights weights;
};

inline PackedTree pack(const Tree& tree, float threshold) {
    PackedTree out;
    const Nodes& nodes = tree.nodes();
    const auto is_kept = [&](int32_t v) {
        if (nodes[v].n_active == 0) return false;
        const int32_t label = nodes[v].label;
        return label < 0 || !tree.labels()[tree.labels()[label].answers_as].retired;
    };
    // Packed node 0 stands above the root, so that the root's own classifier has an edge to live on.
    Vector<int32_t> order{-1};
    Vector<int32_t> kept;
    for (int64_t i = 0; i < order.size(); ++i) {
        kept.clear();
        if (order[i] < 0) {
            kept.push_back(Nodes::kRoot);
        } else {
            for (const int32_t child : nodes[order[i]].children) {
                if (is_kept(child)) kept.push_back(child);
            }
        }
        order.insert(order.end(), kept.begin(), kept.end());
        out.child_ptr.push_back(static_cast<int32_t>(order.size()));
    }
    for (const int32_t v : order) {
        const int32_t label = v < 0 ? -1 : nodes[v].label;
        out.label.push_back(label);
        if (label >= 0) out.leaf_labels.push_back(label);
    }
    std::sort(out.leaf_labels.begin(), out.leaf_labels.end());
    for (int32_t& label : out.label) {
        if (label < 0) continue;
        label = static_cast<int32_t>(std::lower_bound(out.leaf_labels.begin(), out.leaf_labels.end(), label) -
                                     out.leaf_labels.begin());
    }
    for (int32_t& label : out.leaf_labels) label = tree.labels()[label].answers_as;

    label_tree::PackedWeights& packed = out.weights;
    packed.feature_ptr.assign(1, 0);
    packed.weight_ptr.assign(1, 0);
    packed.bias.assign(order.size(), 0.0f);
    for (int64_t i = 0; i < order.size(); ++i) {
        if (out.label[i] >= 0) continue;
        const int32_t block = order[i] < 0 ? 0 : nodes[order[i]].block;
        const int32_t begin = out.child_ptr[i], end = out.child_ptr[i + 1];
        const int64_t start = packed.weight_ptr.back();
        BlockState::each_row(tree.block(block), tree.numbers(), tree.learner(),
                             [&](int64_t feature, const float* row) {
                                 const auto weight = [&](int32_t c) { return row[nodes[order[c]].lane]; };
                                 if (feature < 0) {
                                     for (int32_t c = begin; c < end; ++c) {
                                         packed.bias[c] = weight(c) * tree.learner().bias;
                                     }
                                     return;
                                 }
                                 const auto row_start = packed.weights.size() - start;
                                 for (int32_t c = begin; c < end; ++c) {
                                     if (threshold >= 0.0f && !(std::abs(weight(c)) > threshold)) continue;
                                     if (threshold >= 0.0f) packed.child.push_back(c - begin);
                                     packed.weights.push_back(weight(c));
                                 }
                                 if (threshold >= 0.0f) {
                                     if (packed.weights.size() - start == row_start)
                                         return;  // nothing survived
                                     packed.row_start.push_back(static_cast<uint32_t>(row_start));
                                 }
                                 packed.features.push_back(static_cast<int32_t>(feature));
                             });
        packed.feature_ptr.push_back(packed.features.size());
        packed.weight_ptr.push_back(packed.weights.size());
    }
    return out;
}

}  // namespace labelwood::online
