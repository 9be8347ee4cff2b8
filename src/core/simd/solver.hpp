// The hot loops of the label tree solver, once per instruction set.
//
// The .cpp files of this folder are compiled once per instruction set, each time into a namespace of that
// name, and a table of functions is chosen at run time. They share plain structs with other code, and no
// functions but those that are always inlined: an out-of-line copy that was compiled here could be linked
// into code for older machines.
#pragma once

#include <cstdint>

#include "base/vectors.hpp"

namespace labelwood::simd {

// Widest block of siblings solved at once: one AVX-512 register or one cache line of weights per feature.
constexpr int kMaxLanes = 16;

// A node's training rows on its own, compacted features. Every row carries the bias as its last entry.
struct NodeRows {
    const int64_t* indptr;
    const int32_t* features;  // compacted ids
    const float* values;
    const float* diagonal;  // per row: squared norm including the bias
    int64_t n_rows;
    const int64_t* start;              // where each row's entries begin: indptr, unless a window holds only some rows
    Vectors vectors{};                 // dense columns beside the features; width 0 if there are none
    const int32_t* members = nullptr;  // the row of `vectors`, for each row
    const float* wide = nullptr;       // the vectors of all rows, scaled, padded(width) apart; null: too many
    const float* bias = nullptr;       // if the bias is the only entry of every row, or there is none: its value
};

// Rows with vectors are visited in batches: their products with the weights are one small matrix product.
constexpr int kBatch = 12;

// One block of `lanes` siblings in training; arrays are row-major with `lanes` columns.
struct SiblingLanes {
    int lanes;
    float* weights;             // [features, lanes]
    float* duals;               // [rows, lanes]: alpha (squared hinge) or its logit (logistic)
    const uint16_t* positives;  // per row: bit s set if lane s is positive there
    uint16_t active;            // bits of the lanes still in training; other lanes stay untouched
    float cost;                 // C
    float offset;               // fixed part of every margin
    float skip;                 // a smaller projected gradient causes no update
    float* vector_weights;      // [vectors.width, lanes]
    float* batch;               // room for kBatch rows of padded(vectors.width)
};

// The range of each lane's projected gradients in a pass, from which the solver decides when to stop; `read`
// and `written` count the non-zeros of rows whose weights the pass read and changed.
struct GradientSpread {
    float highest[kMaxLanes];
    float lowest[kMaxLanes];
    int64_t read;
    int64_t written;
};

struct SolverKernels {
    // One pass of dual coordinate descent over the rows in `order`. Lists the rows that caused an update in
    // `restless`, which may be `order` itself, and returns their number.
    int64_t (*squared_hinge_pass)(const NodeRows&, const int32_t* order, int64_t count, const SiblingLanes&,
                                  GradientSpread*, int32_t* restless);
    int64_t (*logistic_pass)(const NodeRows&, const int32_t* order, int64_t count, const SiblingLanes&, GradientSpread*,
                             int32_t* restless);
    // Finds the rows of a block [count, width] in which one of the `lanes` exceeds `threshold` in size: their
    // numbers, and the bits of these lanes. Returns how many; `rows` and `found` need room for one more.
    int64_t (*larger_entries)(const float* block, int64_t count, int width, uint16_t lanes, float threshold,
                              int32_t* rows, uint16_t* found);
    // The squared length of a dense row.
    float (*square)(const char* row, VectorType type, int64_t count);
    // sum[0:width] += a row of `vectors`.
    void (*add_vector)(const Vectors& vectors, int64_t row, float* sum);
    float (*dot)(const float* a, const float* b, int64_t width);
};

// The best kernels this machine can run, or those that the environment variable LABELWOOD_ISA names.
const SolverKernels& solver();

// The name of the instruction set in use.
const char* isa();

}  // namespace labelwood::simd
