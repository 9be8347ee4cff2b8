// Loops over dense rows. Part of simd/solver.cpp and simd/search.cpp.
#pragma once

#include "base/half.hpp"
#include "base/vectors.hpp"
#include "simd/lanes.hpp"

namespace labelwood::simd::LABELWOOD_ISA {
namespace {

[[maybe_unused]] inline float brain(uint16_t bits) {
    const uint32_t wide = static_cast<uint32_t>(bits) << 16;
    float value;
    __builtin_memcpy(&value, &wide, 4);
    return value;
}

[[maybe_unused]] inline float sum_of(Lanes<16> lanes) {
    using L = Lanes<16>;
    for (int n = 1; n < L::N; ++n) lanes.v[0] += lanes.v[n];
#if defined(__AVX2__)
#if defined(__AVX512F__)
    const __m512 all = reinterpret_cast<__m512>(lanes.v[0]);
    const __m256 wide =
        _mm256_add_ps(_mm512_maskz_extractf32x8_ps(0xff, all, 0), _mm512_maskz_extractf32x8_ps(0xff, all, 1));
#else
    const __m256 wide = reinterpret_cast<__m256>(lanes.v[0]);
#endif
    const __m128 half = _mm_add_ps(_mm256_castps256_ps128(wide), _mm256_extractf128_ps(wide, 1));
    const __m128 pair = _mm_add_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_add_ss(pair, _mm_movehdup_ps(pair)));
#else
    return (lanes.v[0][0] + lanes.v[0][2]) + (lanes.v[0][1] + lanes.v[0][3]);
#endif
}

// Sixteen numbers of a stored type as native vectors of floats.
[[maybe_unused]] inline void widen_16(const char* from, VectorType type, Lanes<16>* to) {
    using L = Lanes<16>;
    alignas(64) float wide[16];
    if (type == VectorType::kFloat) {
        for (int n = 0; n < L::N; ++n) to->v[n] = load<L::F>(reinterpret_cast<const float*>(from) + n * L::W);
        return;
    }
#if defined(__AVX512F__)
    if (type == VectorType::kHalf) {
        to->v[0] = reinterpret_cast<L::F>(_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))));
        return;
    }
    if (type == VectorType::kBrain) {
        const __m512i bits = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
        to->v[0] = reinterpret_cast<L::F>(_mm512_slli_epi32(bits, 16));
        return;
    }
    to->v[0] = reinterpret_cast<L::F>(
        _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)))));
    return;
#endif
    if (type == VectorType::kHalf) {
        Half half[16];
        __builtin_memcpy(half, from, sizeof(half));
        for (int i = 0; i < 16; ++i) wide[i] = widen(half[i]);
    } else if (type == VectorType::kBrain) {
        uint16_t bits[16];
        __builtin_memcpy(bits, from, sizeof(bits));
        for (int i = 0; i < 16; ++i) wide[i] = brain(bits[i]);
    } else {
        for (int i = 0; i < 16; ++i) wide[i] = static_cast<float>(reinterpret_cast<const int8_t*>(from)[i]);
    }
    for (int n = 0; n < L::N; ++n) to->v[n] = load<L::F>(wide + n * L::W);
}

[[maybe_unused]] inline float widen_1(const char* from, VectorType type) {
    if (type == VectorType::kInt8) return static_cast<float>(*reinterpret_cast<const int8_t*>(from));
    if (type == VectorType::kFloat) {
        float value;
        __builtin_memcpy(&value, from, 4);
        return value;
    }
    uint16_t bits;
    __builtin_memcpy(&bits, from, 2);
    return type == VectorType::kHalf ? widen(Half{bits}) : brain(bits);
}

// The numbers times `factor`, then zeros up to padded(count).
[[maybe_unused]] void widen_row(const char* from, VectorType type, int64_t count, float factor, float* to) {
    using L = Lanes<16>;
    const int64_t size = bytes_of(type);
    int64_t i = 0;
    for (; i + 16 <= count; i += 16) {
        L wide;
        widen_16(from + i * size, type, &wide);
        for (int n = 0; n < L::N; ++n) store(to + i + n * L::W, wide.v[n] * factor);
    }
    for (; i < count; ++i) to[i] = widen_1(from + i * size, type) * factor;
    for (; i < padded(count); ++i) to[i] = 0.0f;
}

// The squared length of a row.
[[maybe_unused]] float square(const char* from, VectorType type, int64_t count) {
    using L = Lanes<16>;
    const int64_t size = bytes_of(type);
    L sum{};
    int64_t i = 0;
    for (; i + 16 <= count; i += 16) {
        L wide;
        widen_16(from + i * size, type, &wide);
        for (int n = 0; n < L::N; ++n) sum.v[n] += wide.v[n] * wide.v[n];
    }
    float total = sum_of(sum);
    for (; i < count; ++i) total += widen_1(from + i * size, type) * widen_1(from + i * size, type);
    return total;
}

[[maybe_unused]] void add_vector(const Vectors& vectors, int64_t row, float* sum) {
    using L = Lanes<16>;
    const int64_t size = bytes_of(vectors.type);
    const char* from = vectors.row(row);
    const float factor = vectors.factor(row);
    int64_t i = 0;
    for (; i + 16 <= vectors.width; i += 16) {
        L wide;
        widen_16(from + i * size, vectors.type, &wide);
        for (int n = 0; n < L::N; ++n) {
            store(sum + i + n * L::W, load<L::F>(sum + i + n * L::W) + wide.v[n] * factor);
        }
    }
    for (; i < vectors.width; ++i) sum[i] += widen_1(from + i * size, vectors.type) * factor;
}

// The dot products of a padded row with R padded rows.
template <int R>
[[maybe_unused]] inline void dots(const float* row, const float* const* others, int64_t stride, float* out) {
    using L = Lanes<16>;
    L sum[size_t{R}] = {};
    for (int64_t j = 0; j < stride; j += 16) {
        for (int n = 0; n < L::N; ++n) {
            const L::F own = load<L::F>(row + j + n * L::W);
            for (int r = 0; r < R; ++r) sum[r].v[n] += own * load<L::F>(others[r] + j + n * L::W);
        }
    }
    for (int r = 0; r < R; ++r) out[r] = sum_of(sum[r]);
}

// The dot product of two rows. Two sets of accumulators hide the latency of the additions.
[[maybe_unused]] inline float dot(const float* a, const float* b, int64_t width) {
    using L = Lanes<16>;
    L even{}, odd{};
    int64_t j = 0;
    for (; j + 32 <= width; j += 32) {
        for (int n = 0; n < L::N; ++n) {
            even.v[n] += load<L::F>(a + j + n * L::W) * load<L::F>(b + j + n * L::W);
            odd.v[n] += load<L::F>(a + j + 16 + n * L::W) * load<L::F>(b + j + 16 + n * L::W);
        }
    }
    for (; j + 16 <= width; j += 16) {
        for (int n = 0; n < L::N; ++n) even.v[n] += load<L::F>(a + j + n * L::W) * load<L::F>(b + j + n * L::W);
    }
    for (int n = 0; n < L::N; ++n) even.v[n] += odd.v[n];
    float total = sum_of(even);
    for (; j < width; ++j) total += a[j] * b[j];
    return total;
}

}  // namespace
}  // namespace labelwood::simd::LABELWOOD_ISA
