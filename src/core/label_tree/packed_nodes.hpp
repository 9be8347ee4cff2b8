// The weights of trained nodes, from the finished siblings of a node to the arrays of a whole tree.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "base/half.hpp"
#include "base/span.hpp"
#include "memory/allocators.hpp"
#include "memory/page_pool.hpp"

namespace labelwood::label_tree {

// Packed weights of a tree, inner nodes in id order. Node i uses features[feature_ptr[i] .. feature_ptr[i +
// 1]], ascending. Dense: the weights of feature j are the children's, side by side, at j * n_children from
// weight_ptr[i]. Sparse: the entries of feature j are row_start[j] .. row_start[j + 1], relative to
// weight_ptr[i]; the last row of a node ends at weight_ptr[i + 1]. An entry is a child number and a weight.
// bias is per tree node. vector_weights: for each inner node a block [columns of the vectors, children]; the
// children of the inner nodes, in order, are all nodes but the root, so the block of a node with first child c
// begins at (c - 1) * columns.
template <class Children, class Weights>
struct PackedArrays {
    Vector<int64_t> feature_ptr{0};
    memory::OwnVector<int32_t> features;
    Vector<int64_t> weight_ptr{0};
    memory::OwnVector<uint32_t> row_start;
    Children child;
    Weights weights;
    Vector<float> scale;  // per inner node, if the weights are int8
    Vector<float> bias;
    Vector<float> vector_weights;
    int64_t weight_bytes = 0;  // moved between memory and registers by the solver
};

using PackedWeights = PackedArrays<Vector<int32_t>, Vector<float>>;

// Child numbers and weights in the types in which a model stores them.
using Bytes = memory::OwnVector<uint8_t>;
using TrainedWeights = PackedArrays<Bytes, Bytes>;

// How weights are stored: dense floats, or entries of these bytes. int8 weights are multiples of a number per node.
struct Stored {
    bool dense;
    int child_bytes;   // 1, 2 or 4
    int weight_bytes;  // 1: int8, 2: half, 4: float
};

// The weights kept of a finished sibling, by compacted feature.
struct Column {
    Vector<int32_t> features;
    Vector<float> weights;
};

// The share of a node in the arrays: features, row starts, children and weights lie one after the other in one piece.
struct PackedNode {
    char* piece = nullptr;
    int64_t n_features = 0, n_weights = 0;
    float scale = 1.0f;

    int64_t bytes(const Stored& stored) const {
        return n_features * (stored.dense ? 4 : 8) +
               n_weights * ((stored.dense ? 0 : stored.child_bytes) + stored.weight_bytes);
    }
    int32_t* features() const { return reinterpret_cast<int32_t*>(piece); }
    uint32_t* row_start() const { return reinterpret_cast<uint32_t*>(features() + n_features); }
    // The weights come before the children, so that both are aligned.
    char* weights(const Stored& stored) const { return piece + n_features * (stored.dense ? 4 : 8); }
    char* child(const Stored& stored) const { return weights(stored) + n_weights * stored.weight_bytes; }
};

// The packed nodes of a tree, which come in any order. All weights of a large tree are in memory at once: joining gives
// back the pages of a node as soon as it is copied.
class PackedNodes {
  public:
    PackedNodes(int64_t count, const Stored& stored) : stored_(stored), nodes_(count) {}

    // Room for the dense weights of a node, all 0, and for its features.
    PackedNode& add_dense(int64_t index, int64_t n_features, int64_t n_children) {
        PackedNode& node = nodes_[index];
        node.n_features = n_features;
        node.n_weights = n_features * n_children;
        node.piece = pool_.take(node.bytes(stored_));
        return node;
    }

    // Packs the entries of a node's children; by_column are the compacted features by ascending column, rank their
    // places there. Drops what int8 weights would store as 0.
    void add_sparse(int64_t index, Vector<Column>& columns, const Vector<int32_t>& features,
                    const Vector<int32_t>& by_column, const Vector<int32_t>& rank) {
        PackedNode& node = nodes_[index];
        if (stored_.weight_bytes == 1) node.scale = to_steps(columns);
        // Columns to rows by counting; the children of a row come out ascending.
        Vector<uint32_t> at(features.size() + 1, 0);
        for (const Column& column : columns) {
            node.n_weights += column.features.size();
            for (const int32_t f : column.features) ++at[rank[f]];
        }
        node.n_features = std::count_if(at.begin(), at.end(), [](uint32_t count) { return count > 0; });
        node.piece = pool_.take(node.bytes(stored_));
        uint32_t start = 0;
        int64_t place = 0;
        for (int64_t r = 0; r < by_column.size(); ++r) {
            const uint32_t count = at[r];
            at[r] = start;
            if (count == 0) continue;
            node.features()[place] = features[by_column[r]];
            node.row_start()[place++] = start;
            start += count;
        }
        switch (stored_.child_bytes) {
            case 1:
                return fill<uint8_t>(node, columns, rank, at);
            case 2:
                return fill<uint16_t>(node, columns, rank, at);
            default:
                return fill<int32_t>(node, columns, rank, at);
        }
    }

    // The arrays of all nodes, end to end. No node can be read afterwards.
    void join(TrainedWeights& all) {
        int64_t n_features = 0, n_weights = 0;
        for (const PackedNode& node : nodes_) {
            n_features += node.n_features;
            n_weights += node.n_weights;
        }
        all.features.reserve(n_features);
        all.row_start.reserve(stored_.dense ? 0 : n_features);
        all.child.reserve(stored_.dense ? 0 : n_weights * stored_.child_bytes);
        all.weights.reserve(n_weights * stored_.weight_bytes);
        for (const PackedNode& node : nodes_) {
            append(all.features, node.features(), node.n_features);
            append(all.weights, bytes_at(node.weights(stored_)), node.n_weights * stored_.weight_bytes);
            if (!stored_.dense) {
                append(all.row_start, node.row_start(), node.n_features);
                append(all.child, bytes_at(node.child(stored_)), node.n_weights * stored_.child_bytes);
            }
            all.feature_ptr.push_back(all.features.size());
            all.weight_ptr.push_back(all.weights.size() / stored_.weight_bytes);
            if (!stored_.dense && stored_.weight_bytes == 1) all.scale.push_back(node.scale);
            memory::PagePool::give_back(node.piece, node.bytes(stored_));
        }
    }

  private:
    static constexpr float kSteps = 127.0f;  // largest int8

    static const uint8_t* bytes_at(const char* piece) { return reinterpret_cast<const uint8_t*>(piece); }

    template <class All, class Item>
    static void append(All& all, const Item* items, int64_t count) {
        all.insert(all.end(), items, items + count);
    }

    // Turns weights into multiples of 1/127 of the largest, drops those that round to 0, and returns that number.
    static float to_steps(Vector<Column>& columns) {
        float largest = 0.0f;
        bool any = false;
        for (const Column& column : columns) {
            for (const float w : column.weights) largest = std::max(largest, std::fabs(w));
            any |= !column.weights.empty();
        }
        if (!any) return 1.0f;
        const float scale = std::max(largest, std::numeric_limits<float>::min()) / kSteps;
        for (Column& column : columns) {
            int64_t kept = 0;
            for (int64_t j = 0; j < column.weights.size(); ++j) {
                const float steps = std::nearbyint(column.weights[j] / scale);
                column.features[kept] = column.features[j];
                column.weights[kept] = steps;
                kept += steps != 0.0f ? 1 : 0;
            }
            column.features.resize(kept);
            column.weights.resize(kept);
        }
        return scale;
    }

    static void store(float value, int8_t& to) { to = static_cast<int8_t>(value); }
    template <class Weight>
    static void store(float value, Weight& to) {
        narrow(value, to);
    }

    template <class Child>
    void fill(PackedNode& node, const Vector<Column>& columns, const Vector<int32_t>& rank, Vector<uint32_t>& at) {
        switch (stored_.weight_bytes) {
            case 1:
                return fill_rows<Child, int8_t>(node, columns, rank, at);
            case 2:
                return fill_rows<Child, Half>(node, columns, rank, at);
            default:
                return fill_rows<Child, float>(node, columns, rank, at);
        }
    }

    // Entry by entry in the order of the children; at[r] is the next free place of row r.
    template <class Child, class Weight>
    void fill_rows(PackedNode& node, const Vector<Column>& columns, const Vector<int32_t>& rank, Vector<uint32_t>& at) {
        auto* weights = reinterpret_cast<Weight*>(node.weights(stored_));
        char* child = node.child(stored_);  // not aligned after an odd number of int8 weights
        for (int64_t c = 0; c < columns.size(); ++c) {
            const Column& column = columns[c];
            const auto number = static_cast<Child>(c);
            for (int64_t j = 0; j < column.features.size(); ++j) {
                const uint32_t slot = at[rank[column.features[j]]]++;
                std::memcpy(child + slot * sizeof(Child), &number, sizeof(Child));
                store(column.weights[j], weights[slot]);
            }
        }
    }

    const Stored stored_;
    memory::PagePool pool_;
    Vector<PackedNode> nodes_;
};

}  // namespace labelwood::label_tree
