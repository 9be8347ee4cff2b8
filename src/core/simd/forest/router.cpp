// Routing and averaging, compiled once per instruction set; see simd/solver.hpp.
#include "simd/forest/router.hpp"

#include "base/murmur3.hpp"
#include "simd/forest/child_blocks.inl.hpp"
#include "simd/forest/packed_rows.inl.hpp"

namespace labelwood::simd::LABELWOOD_ISA {
namespace {

// A product of two floats is exact in double precision, so that fused additions change nothing: every
// instruction set gives the same bits.
template <int G>
inline void block_scores_of(const int32_t* columns, const float* values, int64_t count, const int32_t* position,
                            const float* block, int stride, double* scores) {
    using F8 = Native<8>::F;
    using D8 = double __attribute__((vector_size(64)));
    D8 sums[size_t{G}];
    for (int g = 0; g < G; ++g) __builtin_memcpy(&sums[g], scores + 8 * g, 64);
    for (int64_t i = 0; i < count; ++i) {
        const float* row = block + static_cast<int64_t>(position[columns[i]]) * stride;
        const auto value = static_cast<double>(values[i]);
        for (int g = 0; g < G; ++g) sums[g] += value * __builtin_convertvector(load<F8>(row + 8 * g), D8);
    }
    for (int g = 0; g < G; ++g) __builtin_memcpy(scores + 8 * g, &sums[g], 64);
}

void block_scores(const int32_t* columns, const float* values, int64_t count, const int32_t* position,
                  const float* block, int lanes, double* scores) {
    int lane = 0;
    for (; lane + 16 <= lanes; lane += 16) {
        block_scores_of<2>(columns, values, count, position, block + lane, lanes, scores + lane);
    }
    if (lane < lanes) block_scores_of<1>(columns, values, count, position, block + lane, lanes, scores + lane);
}

void hash_columns(const int32_t* columns, const float* values, int64_t count, uint32_t seed, uint32_t n_columns,
                  int32_t* targets, float* signed_values) {
    for (int64_t i = 0; i < count; ++i) {
        const uint32_t h = murmur3::of(static_cast<uint32_t>(columns[i]), seed);
        targets[i] = static_cast<int32_t>((static_cast<uint64_t>(h) * n_columns) >> 32);
        uint32_t bits;
        __builtin_memcpy(&bits, values + i, 4);
        bits ^= (~h & 1u) << 31;
        __builtin_memcpy(signed_values + i, &bits, 4);
    }
}

template <class Id, class Value>
constexpr PackedKernels<Id, Value> packed() {
    return {gather_dot<Id, Value>, gather_dots<Id, Value>, add_leaf<Id, Value>};
}

}  // namespace

extern const ForestKernels forest_kernels;
const ForestKernels forest_kernels = {packed<uint16_t, Half>(),
                                      packed<uint16_t, float>(),
                                      packed<int32_t, Half>(),
                                      packed<int32_t, float>(),
                                      {lane_scores<Half>},
                                      {lane_scores<float>},
                                      row_scores,
                                      block_scores,
                                      find_columns,
                                      find_places,
                                      hash_columns};

}  // namespace labelwood::simd::LABELWOOD_ISA
