// Packed weights of a label tree, read side: from a query and an inner node to the scores of its children.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "common.hpp"
#include "simd.hpp"
#include "tree.hpp"

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

// How many steps ahead of its use memory is asked for.
constexpr int64_t kAhead = 6;

struct Half {
    uint16_t bits;
};

inline float widen(float weight) {
    return weight;
}
inline float widen(int8_t weight) {
    return static_cast<float>(weight);
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

// Finds a column among a node's ascending features: columns are hashed by their high bits into buckets of
// about two features, whose starts are kept. Built when a model is loaded; a third of the features' own
// bytes.
struct FeatureIndex {
    const int64_t* feature_ptr;
    const int32_t* features;
    const int64_t* bucket_ptr;  // per inner node, into starts
    const uint32_t* starts;     // relative to feature_ptr
    const uint8_t* shift;       // per inner node

    // A single query meets cold memory: its look-ups are announced some steps ahead.
    void prefetch_bucket(int64_t node, int32_t column) const {
        __builtin_prefetch(starts + bucket_ptr[node] + (column >> shift[node]));
    }
    void prefetch_features(int64_t node, int32_t column) const {
        __builtin_prefetch(features + feature_ptr[node] + starts[bucket_ptr[node] + (column >> shift[node])]);
    }
    // Position of the column within the node's features, or -1.
    int32_t find(int64_t node, int32_t column) const {
        const uint32_t* start = starts + bucket_ptr[node] + (column >> shift[node]);
        const int32_t* base = features + feature_ptr[node];
        for (uint32_t j = start[0]; j < start[1]; ++j) {
            if (base[j] == column) return static_cast<int32_t>(j);
        }
        return -1;
    }
    int64_t n_features(int64_t node) const { return feature_ptr[node + 1] - feature_ptr[node]; }
};

struct OwnedBuckets {
    std::vector<int64_t> ptr{0};
    std::vector<uint32_t> starts;
    std::vector<uint8_t> shift;
};

inline OwnedBuckets build_buckets(const int64_t* feature_ptr, const int32_t* features, int64_t n_inner,
                                  int64_t n_cols) {
    OwnedBuckets buckets;
    for (int64_t node = 0; node < n_inner; ++node) {
        const int64_t count = feature_ptr[node + 1] - feature_ptr[node];
        uint8_t shift = 0;
        while ((n_cols >> shift) > count / 2 + 1) ++shift;
        const int64_t n_buckets = (n_cols >> shift) + 1;
        const int32_t* base = features + feature_ptr[node];
        int64_t at = 0;
        for (int64_t b = 0; b < n_buckets; ++b) {
            buckets.starts.push_back(static_cast<uint32_t>(at));
            while (at < count && (base[at] >> shift) == b) ++at;
        }
        buckets.starts.push_back(static_cast<uint32_t>(count));
        buckets.ptr.push_back(static_cast<int64_t>(buckets.starts.size()));
        buckets.shift.push_back(shift);
    }
    return buckets;
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

// Pruned rows: a feature's surviving weights as (child, weight) pairs.
template <class Child, class Weight>
struct SparseWeights {
    const int64_t* feature_ptr;
    const int64_t* weight_ptr;
    const uint32_t* row_start;
    const Child* child;
    const Weight* weights;
    const float* scale;  // per inner node, what its int8 weights are multiples of; null for other types

    // A node's weights as floats, widened once for a batch that will read them often; null if they are
    // floats.
    const float* unpack(int64_t node, std::vector<float>& space) const {
        if constexpr (std::is_same_v<Weight, float>) return nullptr;
        const int64_t count = weight_ptr[node + 1] - weight_ptr[node];
        space.resize(static_cast<size_t>(count));
        if constexpr (std::is_same_v<Weight, int8_t>) {
            std::copy(weights + weight_ptr[node], weights + weight_ptr[node + 1], space.begin());
        } else {
            simd().widen(reinterpret_cast<const uint16_t*>(weights + weight_ptr[node]), count, space.data());
        }
        return space.data();
    }

    void add(int64_t node, int32_t, const int32_t* rows, const float* values, int64_t count,
             const float* unpacked, float* scores) const {
        if (unpacked != nullptr) {
            add_rows(node, unpacked, rows, values, count, scores);
        } else {
            add_rows(node, weights + weight_ptr[node], rows, values, count, scores);
        }
    }

  private:
    template <class Number>
    void add_rows(int64_t node, const Number* node_weights, const int32_t* rows, const float* values,
                  int64_t count, float* scores) const {
        const uint32_t* start = row_start + feature_ptr[node];
        const int64_t n_features = feature_ptr[node + 1] - feature_ptr[node];
        const Child* node_child = child + weight_ptr[node];
        const auto total = static_cast<uint32_t>(weight_ptr[node + 1] - weight_ptr[node]);
        const float factor = scale != nullptr ? scale[node] : 1.0f;
        for (int64_t i = 0; i < count; ++i) {
            if (i + 2 * kAhead < count) __builtin_prefetch(start + rows[i + 2 * kAhead]);
            if (i + kAhead < count) {
                const uint32_t next = start[rows[i + kAhead]];
                __builtin_prefetch(node_child + next);
                __builtin_prefetch(node_weights + next);
            }
            const uint32_t end = rows[i] + 1 < n_features ? start[rows[i] + 1] : total;
            const float value = values[i] * factor;
            for (uint32_t e = start[rows[i]]; e < end; ++e) {
                scores[node_child[e]] += value * widen(node_weights[e]);
            }
        }
    }
};

}  // namespace labelwood
