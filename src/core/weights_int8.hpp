// Pruned rows whose weights are int8, multiples of a number per node. They are predicted from as they are, so
// that a small model stays small in memory.
#pragma once

#include <cstdint>
#include <vector>

#include "weights.hpp"

namespace labelwood {

struct QuantizedWeights {
    SparseWeights pairs;  // everything but the weights
    const int8_t* weights;
    const float* scale;  // per inner node

    // Never unpacked, not for a batch either: sums would round differently, and a row's scores depend on how
    // many others are asked about with it.
    const float* unpack(int64_t, std::vector<float>&) const { return nullptr; }

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
    void add_rows(int64_t node, const int32_t* rows, const float* values, int64_t count,
                  float* scores) const {
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

}  // namespace labelwood
