// The hot loops of the solver of label trees, once per instruction set.
//
// The .cpp files of this folder are compiled several times with different flags, each into a namespace of its
// own. A function of a shared header that is compiled there could be linked into code that runs on older
// machines: they use plain structs, and of functions only those that are always inlined (base/half.hpp).
#pragma once

#include <cstdint>

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
    const int64_t* start;  // where a row's entries begin: indptr, unless only some rows are there
};

// One block of `lanes` siblings in training; arrays are row-major with `lanes` columns.
struct SiblingLanes {
    int lanes;
    float* weights;             // [features, lanes]
    float* duals;               // [rows, lanes]: alpha (squared hinge) or its logit (logistic)
    const uint16_t* positives;  // per row: bit s set if lane s is positive there
    uint16_t active;            // lanes still in training; the others are left untouched
    float cost;                 // C
    float offset;               // fixed part of every margin
    float skip;                 // projected gradients below this are not worth an update
};

// What a pass saw of each lane's projected gradient; its spread is the stopping rule.
// `read` and `written`: non-zeros of rows whose weights it read, and of those whose weights it changed.
struct GradientSpread {
    float highest[kMaxLanes];
    float lowest[kMaxLanes];
    int64_t read;
    int64_t written;
};

struct SolverKernels {
    // One pass of dual coordinate descent over the rows in `order`. Writes the rows at which some lane's
    // projected gradient was worth an update to `restless` (which may be `order` itself) and returns their
    // number.
    int64_t (*squared_hinge_pass)(const NodeRows&, const int32_t* order, int64_t count, const SiblingLanes&,
                                  GradientSpread*, int32_t* restless);
    int64_t (*logistic_pass)(const NodeRows&, const int32_t* order, int64_t count, const SiblingLanes&,
                             GradientSpread*, int32_t* restless);
    // Rows of a block (`count` of `width` columns) in which one of the `lanes` holds more than `threshold` in
    // size: their numbers and which lanes do. Returns how many; `rows` and `found` need room for one more.
    int64_t (*larger_entries)(const float* block, int64_t count, int width, uint16_t lanes, float threshold,
                              int32_t* rows, uint16_t* found);
};

// The best kernels this machine can run; the environment variable LABELWOOD_ISA names another set.
const SolverKernels& solver();

// The name of the instruction set in use.
const char* isa();

}  // namespace labelwood::simd
