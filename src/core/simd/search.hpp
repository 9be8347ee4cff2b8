// The hot loops of searching a packed label tree, once per instruction set; see simd/solver.hpp.
#pragma once

#include <cstdint>

#include "base/half.hpp"
#include "base/vectors.hpp"

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

// A dense block of weights [n_columns, n_children] as it is stored; each weight is multiplied by `factor`.
struct StoredBlock {
    const char* weights;
    VectorType type;
    float factor;
    int64_t n_columns;
    int32_t n_children;
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
    // The numbers of a dense row times `factor`, then zeros up to padded(count).
    void (*widen_row)(const char* row, VectorType type, int64_t count, float factor, float* out);
    // Widens a block; its rows are padded(n_children) apart, padded with zeros.
    void (*widen_block)(const StoredBlock&, float* out);
    // out[r, 0:n_children] = rows[r] . block for every row, from a widened block; rows of `out` are
    // padded(n_children) apart.
    void (*products)(const float* const* rows, int64_t n_rows, const float* block, int64_t n_columns,
                     int64_t n_children, float* out);
    // The same for one row, from the block as it is stored: the same bits.
    void (*product)(const float* row, const StoredBlock&, float* out);
    // Lists the numbers i with values[i] > limit; `found` has room for `count`. Returns how many.
    int64_t (*above)(const float* values, int64_t count, float limit, int32_t* found);
};

const SearchKernels& search();

}  // namespace labelwood::simd
