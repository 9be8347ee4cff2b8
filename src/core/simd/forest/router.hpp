// The hot loops of routing and averaging in instance forests, once per instruction set; see simd/solver.hpp.
#pragma once

#include <cstdint>

#include "base/half.hpp"
#include "simd/search.hpp"

namespace labelwood::simd {

// How many lanes a kernel reads of a row of `lanes`. The lanes past the row belong to the next row, in the
// same cache line.
constexpr int lanes_read(int lanes) {
    return lanes <= 8 ? 8 : lanes <= 12 ? 12 : 16;
}

// Row r of a block begins at r * stride + r / rows_per_line * gap, where `inverse` is 2^32 / rows_per_line,
// rounded up. With gap 0, `inverse` does not matter.
struct RowPlaces {
    int32_t stride, gap;
    uint64_t inverse;

    int32_t operator()(int32_t row) const {
        return row * stride + static_cast<int32_t>((static_cast<uint64_t>(row) * inverse) >> 32) * gap;
    }
};

// Labels that share a mark: one cache line of sums.
constexpr int kMarked = 16;

// A filter of 1024 bits: two AVX-512 registers.
constexpr int kFilterWords = 64;

// Kernels on packed rows, for ids of 16 or 32 bits and values of half or full precision.
template <class Id, class Value>
struct PackedKernels {
    // sum_i values[i] * dense[ids[i]], in double precision.
    double (*gather_dot)(const Id* ids, const Value* values, int64_t count, const float* dense);
    // The same for n consecutive rows, ptr[0] .. ptr[n]. `filter` has bit id % 16 of word id / 16 %
    // kFilterWords set for every id with dense[id] != 0.
    void (*gather_dots)(const Id* ids, const Value* values, const int64_t* ptr, int32_t n, const float* dense,
                        const uint16_t* filter, double* dots);
    // sums[ids[i]] += share * values[i], and marks[ids[i] / kMarked] = 1 unless marks is null.
    void (*add_leaf)(const Id* ids, const Value* values, int64_t count, float share, float* sums, uint8_t* marks);
};

// The places of a block that the next call will read, for prefetching.
template <class Value>
struct Ahead {
    const int32_t* at = nullptr;
    int64_t count = 0;
    const Value* block = nullptr;
};
template <class Value>
Ahead(const int32_t*, int64_t, const Value*) -> Ahead<Value>;

// Kernels on blocks, for half and full precision.
template <class Value>
struct BlockKernels {
    // scores[0:lanes] = sum_i values[i] * block[at[i] : at[i] + lanes], in double precision; lanes is at most
    // kMaxLanes. Reads lanes_read(lanes) lanes of the block and writes as many scores; those past `lanes` are
    // meaningless. Prefetches what `next` names.
    void (*lane_scores)(const int32_t* at, const float* values, int64_t count, const Value* block, int lanes,
                        const Ahead<Value>& next, double* scores);
};

struct ForestKernels {
    PackedKernels<uint16_t, Half> u16_f16;
    PackedKernels<uint16_t, float> u16_f32;
    PackedKernels<int32_t, Half> i32_f16;
    PackedKernels<int32_t, float> i32_f32;
    BlockKernels<Half> block_f16;
    BlockKernels<float> block_f32;
    // scores[0:lanes] = sum_i values[i] * block[rows[i], 0:lanes], in double precision; lanes is 2, 4 or a
    // multiple of 8.
    void (*row_scores)(const int32_t* rows, const float* values, int64_t count, const float* block, int lanes,
                       double* scores);
    // scores[0:lanes] += sum_i values[i] * block[position[columns[i]], 0:lanes], in double precision and in
    // the order of the entries; lanes is a multiple of 8.
    void (*block_scores)(const int32_t* columns, const float* values, int64_t count, const int32_t* position,
                         const float* block, int lanes, double* scores);
    // Finds the columns with a position other than 0: the positions and the values. Returns how many; `at`
    // and `found` have room for `count`.
    int64_t (*find_columns)(const int32_t* columns, const float* values, int64_t count, const int32_t* position,
                            int32_t* at, float* found);
    // Finds the columns that a block has rows for: the places of the rows and the values. Returns how many;
    // `at` and `found` have room for `count`.
    int64_t (*find_places)(const int32_t* columns, const float* values, int64_t count, const Rank* ranks,
                           const RowPlaces& places, int32_t* at, float* found);
    // targets[i] = (h(columns[i]) * n_columns) >> 32. signed_values[i] is values[i], or -values[i] where the
    // last bit of h is 0. h is MurmurHash3 with a seed.
    void (*hash_columns)(const int32_t* columns, const float* values, int64_t count, uint32_t seed, uint32_t n_columns,
                         int32_t* targets, float* signed_values);
};

const ForestKernels& forest();

}  // namespace labelwood::simd
