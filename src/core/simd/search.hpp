// The hot loops of searching a packed label tree, once per instruction set; see simd/solver.hpp.
#pragma once

#include <cstdint>

#include "base/half.hpp"

namespace labelwood::simd {

// How many steps ahead of its use memory is asked for.
constexpr int64_t kAhead = 6;

// 32 columns as a node of a packed tree sees them: which are its features, and how many features come before
// the first of them (undefined where there are none).
struct Rank {
    uint32_t before;
    uint32_t bits;
};

// A node's pruned weights: row r has the (child, weight) pairs start[r] .. start[r + 1], the last one to
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
    void (*accumulate)(const int32_t* rows, const float* values, int64_t count, const float* matrix,
                       int64_t width, float* out);
    // Positions among a node's features of the columns that it uses, and their values; returns their number.
    int64_t (*match)(const int32_t* columns, const float* values, int64_t count, const Rank* ranks,
                     int32_t* rows, float* matched);
    // scores[child] += values[i] * weight for the pairs of each of the rows.
    void (*add_pairs)(const PairRows&, const int32_t* rows, const float* values, int64_t count,
                      float* scores);
    // Widens half-precision numbers.
    void (*widen)(const Half* half, int64_t count, float* out);
};

const SearchKernels& search();

}  // namespace labelwood::simd
