// Packed weights of a label tree for search: from a query and an inner node to the scores of its children.
#pragma once

#include <cstdint>

#include "base/half.hpp"
#include "base/span.hpp"
#include "simd/search.hpp"

namespace labelwood::label_tree {

// Dense blocks: the weights of a feature for all children lie side by side.
struct DenseWeights {
    const int64_t* weight_ptr;
    const float* weights;

    // Dense weights are floats: nothing to unpack.
    const float* unpack(int64_t, Vector<float>&) const { return nullptr; }

    // scores[child] += sum over matched features; `rows` are positions from FeatureIndex.
    void add(int64_t node, int32_t n_children, const int32_t* rows, const float* values, int64_t count, const float*,
             float* scores) const {
        simd::search().accumulate(rows, values, count, weights + weight_ptr[node], n_children, scores);
    }
};

// Pruned rows: the weights kept of a feature as (child, weight) pairs, in the types of the file.
struct SparseWeights {
    const int64_t* feature_ptr;
    const int64_t* weight_ptr;
    const uint32_t* row_start;
    const void* child;
    int child_bytes;
    const void* weights;
    bool half;

    // The node's weights as floats, widened once for a batch that reads them often; null if they are floats.
    const float* unpack(int64_t node, Vector<float>& scratch) const {
        if (!half) return nullptr;
        const int64_t count = weight_ptr[node + 1] - weight_ptr[node];
        scratch.resize(count);
        simd::search().widen(static_cast<const Half*>(weights) + weight_ptr[node], count, scratch.data());
        return scratch.data();
    }

    void add(int64_t node, int32_t, const int32_t* rows, const float* values, int64_t count, const float* unpacked,
             float* scores) const {
        const int64_t from = weight_ptr[node];
        const simd::PairRows pairs{row_start + feature_ptr[node],
                                   feature_ptr[node + 1] - feature_ptr[node],
                                   static_cast<uint32_t>(weight_ptr[node + 1] - from),
                                   static_cast<const char*>(child) + from * child_bytes,
                                   child_bytes,
                                   unpacked != nullptr ? static_cast<const void*>(unpacked)
                                                       : static_cast<const char*>(weights) + from * (half ? 2 : 4),
                                   half && unpacked == nullptr};
        simd::search().add_pairs(pairs, rows, values, count, scores);
    }
};

// Pruned rows with int8 weights, multiples of a scale per node. They are searched as they are, so that a
// small model stays small in memory.
struct QuantizedWeights {
    SparseWeights pairs;  // everything but the weights
    const int8_t* weights;
    const float* scale;  // per inner node

    // Never unpacked: sums would round differently, and the scores of a row would depend on the size of its
    // batch.
    const float* unpack(int64_t, Vector<float>&) const { return nullptr; }

    void add(int64_t node, int32_t, const int32_t* rows, const float* values, int64_t count, const float*,
             float* scores) const {
        if (pairs.child_bytes == 1) {
            add_rows<uint8_t>(node, rows, values, count, scores);
        } else if (pairs.child_bytes == 2) {
            add_rows<uint16_t>(node, rows, values, count, scores);
        } else {
            add_rows<int32_t>(node, rows, values, count, scores);
        }
    }

  private:
    template <class Child>
    void add_rows(int64_t node, const int32_t* rows, const float* values, int64_t count, float* scores) const {
        const int64_t from = pairs.weight_ptr[node];
        const uint32_t* start = pairs.row_start + pairs.feature_ptr[node];
        const int64_t n_features = pairs.feature_ptr[node + 1] - pairs.feature_ptr[node];
        const Child* child = static_cast<const Child*>(pairs.child) + from;
        const auto total = static_cast<uint32_t>(pairs.weight_ptr[node + 1] - from);
        for (int64_t i = 0; i < count; ++i) {
            const uint32_t end = rows[i] + 1 < n_features ? start[rows[i] + 1] : total;
            const float value = values[i] * scale[node];
            for (uint32_t e = start[rows[i]]; e < end; ++e) {
                scores[child[e]] += value * static_cast<float>(weights[from + e]);
            }
        }
    }
};

}  // namespace labelwood::label_tree
