// Routing and averaging, compiled once per instruction set like simd.cpp.
#include "simd/forest.hpp"

#include "simd/child_blocks.inl.hpp"
#include "simd/packed_rows.inl.hpp"

namespace labelwood::LABELWOOD_ISA {
namespace {

// MurmurHash3 (x86, 32 bits) of a four-byte key.
inline uint32_t murmur3(uint32_t key, uint32_t seed) {
    const uint32_t k = key * 0xcc9e2d51u;
    uint32_t h = seed ^ (((k << 15) | (k >> 17)) * 0x1b873593u);
    h = ((h << 13) | (h >> 19)) * 5u + 0xe6546b64u;
    h ^= 4u;
    h = (h ^ (h >> 16)) * 0x85ebca6bu;
    h = (h ^ (h >> 13)) * 0xc2b2ae35u;
    return h ^ (h >> 16);
}

void hash_columns(const int32_t* columns, const float* values, int64_t count, uint32_t seed,
                  uint32_t n_columns, int32_t* targets, float* signed_values) {
    for (int64_t i = 0; i < count; ++i) {
        const uint32_t h = murmur3(static_cast<uint32_t>(columns[i]), seed);
        targets[i] = static_cast<int32_t>((static_cast<uint64_t>(h) * n_columns) >> 32);
        uint32_t bits;
        __builtin_memcpy(&bits, values + i, 4);
        bits ^= (~h & 1u) << 31;
        __builtin_memcpy(signed_values + i, &bits, 4);
    }
}

template <class Id, class Value>
constexpr PackedSimd<Id, Value> packed() {
    return {gather_dot<Id, Value>, gather_dots<Id, Value>, add_leaf<Id, Value>};
}

}  // namespace

extern const ForestSimd forest_table;
const ForestSimd forest_table = {packed<uint16_t, uint16_t>(),
                                 packed<uint16_t, float>(),
                                 packed<int32_t, uint16_t>(),
                                 packed<int32_t, float>(),
                                 {lane_scores<uint16_t>},
                                 {lane_scores<float>},
                                 row_scores,
                                 find_columns,
                                 find_places,
                                 hash_columns};

}  // namespace labelwood::LABELWOOD_ISA
