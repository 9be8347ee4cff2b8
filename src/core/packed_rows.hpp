// Rows of (id, value) pairs in narrow types, and the functions for each pair of types.
#pragma once

#include <algorithm>
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

// Nanoseconds, roughly: an element gathered; a column searched for.
constexpr double kGather = 0.4, kFind = 12.0;

// Dot product by searching ascending ids for the columns of a row.
template <class Id, class Value>
double find_dot(const Query& row, const Id* ids, const Value* values, int64_t length) {
    double sum = 0.0;
    for (int64_t j = 0; j < row.count; ++j) {
        const Id* at = std::lower_bound(ids, ids + length, row.columns[j],
                                        [](Id a, int32_t b) { return static_cast<int32_t>(a) < b; });
        if (at != ids + length && static_cast<int32_t>(*at) == row.columns[j]) {
            sum += static_cast<double>(row.values[j]) * static_cast<double>(widen(values[at - ids]));
        }
    }
    return sum;
}

// Dot product with a row that is also laid out in `dense`, the cheaper way.
template <class Id, class Value>
double sparse_dot(const Query& row, const float* dense, const Id* ids, const Value* values, int64_t length) {
    if (kGather * static_cast<double>(length) > kFind * static_cast<double>(row.count)) {
        return find_dot(row, ids, values, length);
    }
    return packed_simd(ids, values).gather_dot(ids, bits_of(values), length, dense);
}

inline void lay_out(const Query& row, float* dense) {
    for (int64_t j = 0; j < row.count; ++j) dense[row.columns[j]] += row.values[j];
}
inline void clear(const Query& row, float* dense) {
    for (int64_t j = 0; j < row.count; ++j) dense[row.columns[j]] = 0.0f;
}

}  // namespace labelwood
