// A block of lanes as an array of native vectors. Included by the .cpp files of this folder only: everything
// here is compiled once per instruction set and lives in that set's namespace.
//
// gcc spills vector types wider than a register, so a block of 16 floats is written as 1, 2 or 4 native
// vectors.
#pragma once

#include <cstddef>
#include <cstdint>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace labelwood::simd::LABELWOOD_ISA {

#if defined(__AVX512F__)
constexpr int kNative = 16;
#elif defined(__AVX2__)
constexpr int kNative = 8;
#else
constexpr int kNative = 4;
#endif

template <int W>
struct Native {
    typedef float F __attribute__((vector_size(W * 4)));
    typedef int32_t I __attribute__((vector_size(W * 4)));
};

template <int S>
struct Lanes {
    static constexpr int W = S < kNative ? S : kNative;
    static constexpr int N = S / W;
    using F = typename Native<W>::F;
    using I = typename Native<W>::I;
    F v[size_t{N}];
};

template <class F>
inline F splat(float x) {
    return F{} + x;
}

template <class F>
inline F load(const float* p) {
    F v;
    __builtin_memcpy(&v, p, sizeof(F));
    return v;
}

template <class F>
inline void store(float* p, F v) {
    __builtin_memcpy(p, &v, sizeof(F));
}

template <class F>
inline F larger(F a, F b) {
    return a > b ? a : b;
}

template <class F>
inline F smaller(F a, F b) {
    return a < b ? a : b;
}

template <class F>
inline F magnitude(F a) {
    return larger(a, -a);
}

// Rounded to the nearest, unlike the estimates of some instruction sets.
template <class F>
inline F square_root(F x) {
#if defined(__AVX512F__)
    if constexpr (sizeof(F) == 64) return reinterpret_cast<F>(_mm512_sqrt_ps(reinterpret_cast<__m512>(x)));
#endif
#if defined(__AVX2__)
    if constexpr (sizeof(F) == 32) return reinterpret_cast<F>(_mm256_sqrt_ps(reinterpret_cast<__m256>(x)));
#endif
#if defined(__SSE2__)
    if constexpr (sizeof(F) == 16) return reinterpret_cast<F>(_mm_sqrt_ps(reinterpret_cast<__m128>(x)));
#endif
    for (unsigned i = 0; i < sizeof(F) / 4; ++i) x[i] = __builtin_sqrtf(x[i]);
    return x;
}

// True if any lane differs from zero.
template <class F>
inline bool any(F v) {
#if defined(__AVX512F__)
    if constexpr (sizeof(F) == 64) {
        return _mm512_cmp_ps_mask(reinterpret_cast<__m512>(v), _mm512_setzero_ps(), _CMP_NEQ_UQ) != 0;
    }
#endif
#if defined(__AVX2__)
    if constexpr (sizeof(F) == 32) {
        const __m256 m = reinterpret_cast<__m256>(v);
        return _mm256_movemask_ps(_mm256_cmp_ps(m, _mm256_setzero_ps(), _CMP_NEQ_UQ)) != 0;
    }
#endif
#if defined(__SSE2__)
    if constexpr (sizeof(F) == 16) {
        return _mm_movemask_ps(_mm_cmpneq_ps(reinterpret_cast<__m128>(v), _mm_setzero_ps())) != 0;
    }
#endif
    bool found = false;
    for (unsigned i = 0; i < sizeof(F) / 4; ++i) found |= v[i] != 0.0f;
    return found;
}

// Bit i is set where lane i is larger than `limit`.
template <class F>
inline uint32_t bits_above(F v, F limit) {
#if defined(__AVX512F__)
    if constexpr (sizeof(F) == 64) {
        return _mm512_cmp_ps_mask(reinterpret_cast<__m512>(v), reinterpret_cast<__m512>(limit), _CMP_GT_OQ);
    }
#endif
#if defined(__AVX2__)
    if constexpr (sizeof(F) == 32) {
        const __m256 m = reinterpret_cast<__m256>(v);
        return static_cast<uint32_t>(_mm256_movemask_ps(_mm256_cmp_ps(m, reinterpret_cast<__m256>(limit), _CMP_GT_OQ)));
    }
#endif
#if defined(__SSE2__)
    if constexpr (sizeof(F) == 16) {
        const __m128 m = reinterpret_cast<__m128>(v);
        return static_cast<uint32_t>(_mm_movemask_ps(_mm_cmpgt_ps(m, reinterpret_cast<__m128>(limit))));
    }
#endif
    uint32_t found = 0;
    for (unsigned i = 0; i < sizeof(F) / 4; ++i) found |= static_cast<uint32_t>(v[i] > limit[i]) << i;
    return found;
}

// Lane i is -1 where bit i of `bits` is set, else 0.
template <class I>
inline I spread_bits(uint32_t bits) {
    constexpr int W = sizeof(I) / 4;
    I selector{};
    for (int i = 0; i < W; ++i) selector[i] = 1 << i;
    const I all = I{} + static_cast<int32_t>(bits);
    return (all & selector) != 0;
}

// exp(x) for |x| <= 87 to about 2 ulp: 2^n * p(r), r = x - n ln 2 in [-ln2/2, ln2/2], p the Taylor series to
// r^6.
template <class F, class I>
inline F exponential(F x) {
    x = larger(smaller(x, splat<F>(87.0f)), splat<F>(-87.0f));
    // 1.5 * 2^23: adding it leaves the rounded integer in the low bits of the mantissa.
    const F shifter = splat<F>(12582912.0f);
    const F shifted = x * 1.44269504f + shifter;
    const F n = shifted - shifter;
    const F r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    F p = splat<F>(1.0f / 720.0f);
    p = p * r + 1.0f / 120.0f;
    p = p * r + 1.0f / 24.0f;
    p = p * r + 1.0f / 6.0f;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    I bits;
    __builtin_memcpy(&bits, &shifted, sizeof(bits));
    const I exponent = (bits + 127) << 23;  // the low bits of `shifted` hold n in two's complement
    F scale;
    __builtin_memcpy(&scale, &exponent, sizeof(scale));
    return p * scale;
}

}  // namespace labelwood::simd::LABELWOOD_ISA
