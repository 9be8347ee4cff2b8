// The hot loops that exist once per instruction set, behind one table of functions chosen at run time.
//
// simd.cpp is compiled several times with different flags; it may use nothing but plain pointers, since an
// inline function of a shared header compiled there could be linked into code that runs on older machines.
#pragma once

#include <cstdint>

namespace labelwood {

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
struct Block {
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
struct Spread {
    float highest[kMaxLanes];
    float lowest[kMaxLanes];
    int64_t read;
    int64_t written;
};

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
    const void* weights;  // uint16_t (half precision) or float
    bool half;
};

// The state of a cut in training (graph_cut.hpp), on a node's own features. Arrays over features are padded
// with zeros to whole vectors of kMaxLanes.
struct CutState {
    float* weights;
    float* z;          // of FTRL-Proximal: the weights follow from it
    float* spread;     // root of the sum of squared gradients
    float* gradient;   // zero between steps
    float* margins;    // as long as an example has partners, padded
    int32_t* touched;  // room for the features of one step, or null where visiting all features is cheaper
    int64_t n_features;
    float rate, beta, l1;
    const float* dense;  // [rows, width], the rows with their zeros, or null where that is dearer
    int64_t width;       // n_features, padded
};

struct Simd {
    const char* name;
    // One pass of dual coordinate descent over the rows in `order`. Writes the rows at which some lane's
    // projected gradient was worth an update to `restless` (which may be `order` itself) and returns their
    // number.
    int64_t (*squared_hinge_pass)(const NodeRows&, const int32_t* order, int64_t count, const Block&, Spread*,
                                  int32_t* restless);
    int64_t (*logistic_pass)(const NodeRows&, const int32_t* order, int64_t count, const Block&, Spread*,
                             int32_t* restless);
    // Rows of a block (`count` of `width` columns) in which one of the `lanes` holds more than `threshold` in
    // size: their numbers and which lanes do. Returns how many; `rows` and `found` need room for one more.
    int64_t (*larger_entries)(const float* block, int64_t count, int width, uint16_t lanes, float threshold,
                              int32_t* rows, uint16_t* found);
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
    void (*widen)(const uint16_t* half, int64_t count, float* out);
    // w . x for one row.
    float (*row_dot)(const NodeRows&, int32_t row, const float* weights);
    // One example of a cut: its first n_near partners are drawn to its side, the others of n to the other.
    void (*cut_step)(const NodeRows&, int32_t example, const int32_t* partners, int32_t n_near, int32_t n,
                     const CutState&);
    // scores[0:lanes] += sum_i values[i] * block[position[columns[i]], 0:lanes], in double precision and in
    // the order of the entries; lanes is a multiple of 8.
    void (*block_scores)(const int32_t* columns, const float* values, int64_t count, const int32_t* position,
                         const float* block, int lanes, double* scores);
};

// The best table this machine can run; the environment variable LABELWOOD_ISA names another.
const Simd& simd();

}  // namespace labelwood
