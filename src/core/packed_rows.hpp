// Rows of (id, value) pairs in narrow types, and the functions for each pair of types.
#pragma once

#include <cstdint>

#include "simd_forest.hpp"
#include "weights.hpp"

namespace labelwood {

// The functions for packed rows of these types.
inline const auto& packed_simd(const uint16_t*, const Half*) {
    return forest_simd().u16_f16;
}
inline const auto& packed_simd(const uint16_t*, const float*) {
    return forest_simd().u16_f32;
}
inline const auto& packed_simd(const int32_t*, const Half*) {
    return forest_simd().i32_f16;
}
inline const auto& packed_simd(const int32_t*, const float*) {
    return forest_simd().i32_f32;
}
inline const float* bits_of(const float* values) {
    return values;
}
inline const uint16_t* bits_of(const Half* values) {
    return &values->bits;
}

}  // namespace labelwood
