// Packed weights of a label tree, read side: from a query and an inner node to the scores of its children.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "common.hpp"
#include "simd.hpp"

namespace labelwood {

// One row of a CSR matrix.
struct Query {
    const int32_t* columns;
    const float* values;
    int64_t count;
};

inline Query row_of(const Csr& x, int64_t row) {
    return {x.indices + x.indptr[row], x.data + x.indptr[row], x.row_nnz(row)};
}

// A number in half precision.
struct Half {
    uint16_t bits;
};

inline float widen(float weight) {
    return weight;
}
inline float widen(Half weight) {
    uint32_t rest = static_cast<uint32_t>(weight.bits & 0x7fffu) << 13;
    float value;
    std::memcpy(&value, &rest, 4);
    value *= 0x1.0p112f;  // moves the exponent's bias from 15 to 127; subnormals come out right as well
    std::memcpy(&rest, &value, 4);
    rest |= static_cast<uint32_t>(weight.bits & 0x8000u) << 16;
    std::memcpy(&value, &rest, 4);
    return value;
}

// Dense blocks: the weights of a feature for all children lie side by side.
struct DenseWeights {
    const int64_t* weight_ptr;
    const float* weights;

    // A node's weights as floats, which here they are.
    const float* unpack(int64_t, std::vector<float>&) const { return nullptr; }

    // scores[child] += sum over matched features; `rows` are positions from FeatureIndex.
    void add(int64_t node, int32_t n_children, const int32_t* rows, const float* values, int64_t count,
             const float*, float* scores) const {
        simd().accumulate(rows, values, count, weights + weight_ptr[node], n_children, scores);
    }
};

// Pruned rows: a feature's surviving weights as (child, weight) pairs, in the types of the file.
struct SparseWeights {
    const int64_t* feature_ptr;
    const int64_t* weight_ptr;
    const uint32_t* row_start;
    const void* child;
    int child_bytes;
    const void* weights;
    bool half;

    // A node's weights as floats, widened once for a batch that will read them often; null if they are
    // floats.
    const float* unpack(int64_t node, std::vector<float>& space) const {
        if (!half) return nullptr;
        const int64_t count = weight_ptr[node + 1] - weight_ptr[node];
        space.resize(static_cast<size_t>(count));
        simd().widen(static_cast<const uint16_t*>(weights) + weight_ptr[node], count, space.data());
        return space.data();
    }

    void add(int64_t node, int32_t, const int32_t* rows, const float* values, int64_t count,
             const float* unpacked, float* scores) const {
        const int64_t from = weight_ptr[node];
        const PairRows pairs{row_start + feature_ptr[node],
                             feature_ptr[node + 1] - feature_ptr[node],
                             static_cast<uint32_t>(weight_ptr[node + 1] - from),
                             static_cast<const char*>(child) + from * child_bytes,
                             child_bytes,
                             unpacked != nullptr ? static_cast<const void*>(unpacked)
                                                 : static_cast<const char*>(weights) + from * (half ? 2 : 4),
                             half && unpacked == nullptr};
        simd().add_pairs(pairs, rows, values, count, scores);
    }
};

}  // namespace labelwood
