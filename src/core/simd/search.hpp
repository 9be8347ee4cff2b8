// The hot loops of searching a packed label tree, once per instruction set; see simd/solver.hpp.
#pragma once

#include <cstdint>

#include "base/half.hpp"

namespace labelwood::simd {

// Prefetch distance in loop steps.
constexpr int64_t kAhead = 6;

// 32 columns in the feature index of a node: `bits` marks the columns that are features, `before` counts the
// features of earlier words. `before` is undefined where bits is 0.
struct Rank {
    uint32_t before;
    uint32_t bits;
};

// A node's pruned weights: row r has the (child, weight) pairs start[r] .. start[r + 1]; the last row ends at
// `total`.
struct PairRows {
    const uint32_t* start;
    int64_t n_rows;
    uint32_t total;
    const void* child;
    int child_bytes;      // 1, 2 or 4
    const void* weights;  // Half or float
    bool half;
};

struct SearchKernels {
    // out[0:width] += sum_i values[i] * matrix[rows[i], 0:width].
    void (*accumulate)(const int32_t* rows, const float* values, int64_t count, const float* matrix, int64_t width,
                       float* out);
    // Finds the columns that are features of a node: their positions among its features, and their values.
    // Returns how many.
    int64_t (*match)(const int32_t* columns, const float* values, int64_t count, const Rank* ranks, int32_t* rows,
                     float* matched);
    // scores[child] += values[i] * weight for the pairs of every row.
    void (*add_pairs)(const PairRows&, const int32_t* rows, const float* values, int64_t count, float* scores);
    // Widens half-precision numbers.
    void (*widen)(const Half* half, int64_t count, float* out);
};

const SearchKernels& search();

}  // namespace labelwood::simd
