// Dot products of packed rows with a dense row, and sums of leaves. Part of simd/forest/router.cpp.
#pragma once

#include "simd/forest/router.hpp"
#include "simd/lanes.hpp"

namespace labelwood::simd::LABELWOOD_ISA {
namespace {

inline void widen_eight(const float* plain, float* out) {
    __builtin_memcpy(out, plain, 32);
}
inline void widen_eight(const Half* half, float* out) {
#if defined(__F16C__)
    _mm256_storeu_ps(out, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(half))));
#else
    for (int n = 0; n < 8; ++n) out[n] = widen(half[n]);
#endif
}

#if defined(__AVX512F__)
inline __m512i load_ids(const uint16_t* ids, __mmask16 mask) {
    return _mm512_maskz_cvtepu16_epi32(mask, _mm256_maskz_loadu_epi16(mask, ids));
}
inline __m512i load_ids(const int32_t* ids, __mmask16 mask) {
    return _mm512_maskz_loadu_epi32(mask, ids);
}
inline __m512 load_values(const Half* values, __mmask16 mask) {
    return _mm512_maskz_cvtph_ps(mask, _mm256_maskz_loadu_epi16(mask, values));
}
inline __m512 load_values(const float* values, __mmask16 mask) {
    return _mm512_maskz_loadu_ps(mask, values);
}
inline __m512d low_half(__m512 v) {
    return _mm512_maskz_cvtps_pd(0xff, _mm512_castps512_ps256(v));
}
inline __m512d high_half(__m512 v) {
    return _mm512_maskz_cvtps_pd(0xff, _mm512_maskz_extractf32x8_ps(0xff, v, 1));
}

// Sixteen independent sums; a product of two floats is exact in double precision.
template <class Id, class Value>
double gather_dot(const Id* ids, const Value* values, int64_t count, const float* dense) {
    __m512d low = _mm512_setzero_pd(), high = _mm512_setzero_pd();
    for (int64_t i = 0; i < count; i += 16) {
        const auto mask = static_cast<__mmask16>(count - i >= 16 ? 0xffffu : 0xffffu >> (16 - (count - i)));
        const __m512 there = _mm512_mask_i32gather_ps(_mm512_setzero_ps(), mask, load_ids(ids + i, mask), dense, 4);
        const __m512 own = load_values(values + i, mask);
        low = _mm512_fmadd_pd(low_half(own), low_half(there), low);
        high = _mm512_fmadd_pd(high_half(own), high_half(there), high);
    }
    double sums[8];
    _mm512_storeu_pd(sums, _mm512_add_pd(low, high));
    return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

// Tests 32 ids at a time against the filter, which stays in registers, and lists the few that pass. Neither
// their number nor the row of an id is branched on, since both are unpredictable. Neighbours in the list
// mostly belong to one row: two sums per row keep the additions independent.
template <class Value>
void gather_filtered(const uint16_t* ids, const Value* values, const int64_t* ptr, int32_t n, const float* dense,
                     const uint16_t* filter, double* dots) {
    const __m512i low = _mm512_loadu_si512(filter), high = _mm512_loadu_si512(filter + 32);
    const __m512i bits = _mm512_set1_epi16(15), one = _mm512_set1_epi16(1);
    int32_t ends[16];
    for (int32_t row = 0; row < 16; ++row) {
        ends[row] = row < n ? static_cast<int32_t>(ptr[row + 1] - ptr[0]) : 0x7fffffff;
    }
    const __m512i row_ends = _mm512_loadu_si512(ends);
    double even[16] = {}, odd[16] = {};
    ids += ptr[0];
    values += ptr[0];
    auto add = [&](int32_t at, double* sums) {
        const __mmask16 before = _mm512_cmple_epi32_mask(row_ends, _mm512_set1_epi32(at));
        sums[__builtin_popcount(before)] +=
            static_cast<double>(widen(values[at])) * static_cast<double>(dense[ids[at]]);
    };
    constexpr int64_t kListed = 1024;
    int32_t listed[kListed + 16];
    const __m512i upwards = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const int64_t count = ptr[n] - ptr[0];
    for (int64_t from = 0; from < count; from += kListed) {
        const int64_t to = from + kListed < count ? from + kListed : count;
        int32_t n_listed = 0;
        auto list = [&](__mmask16 through, int64_t start) {
            const __m512i at = _mm512_add_epi32(upwards, _mm512_set1_epi32(static_cast<int32_t>(start)));
            _mm512_storeu_si512(listed + n_listed, _mm512_maskz_compress_epi32(through, at));
            n_listed += __builtin_popcount(through);
        };
        for (int64_t i = from; i < to; i += 32) {
            const auto mask = static_cast<__mmask32>(to - i >= 32 ? 0xffffffffu : 0xffffffffu >> (32 - (to - i)));
            const __m512i own = _mm512_maskz_loadu_epi16(mask, ids + i);
            const __m512i words = _mm512_permutex2var_epi16(low, _mm512_srli_epi16(own, 4), high);
            const __m512i wanted = _mm512_sllv_epi16(one, _mm512_and_si512(own, bits));
            const __mmask32 through = _mm512_mask_test_epi16_mask(mask, words, wanted);
            list(static_cast<__mmask16>(through), i);
            list(static_cast<__mmask16>(through >> 16), i + 16);
        }
        int32_t i = 0;
        for (; i + 2 <= n_listed; i += 2) {
            add(listed[i], even);
            add(listed[i + 1], odd);
        }
        if (i < n_listed) add(listed[i], even);
    }
    for (int32_t row = 0; row < n; ++row) dots[row] = even[row] + odd[row];
}

#else
// Eight independent sums pipeline the additions; a product of two floats is exact in double precision.
template <class Id, class Value>
double gather_dot(const Id* ids, const Value* values, int64_t count, const float* dense) {
    using D = double __attribute__((vector_size(64)));
    D sums{};
    int64_t i = 0;
    for (; i + 8 <= count; i += 8) {
        float own[8];
        widen_eight(values + i, own);
        D left, right;
        for (int n = 0; n < 8; ++n) {
            left[n] = static_cast<double>(own[n]);
            right[n] = static_cast<double>(dense[ids[i + n]]);
        }
        sums += left * right;
    }
    double sum = 0.0;
    for (; i < count; ++i) sum += static_cast<double>(widen(values[i])) * static_cast<double>(dense[ids[i]]);
    for (int n = 0; n < 8; ++n) sum += sums[n];
    return sum;
}
#endif

template <class Id, class Value>
void gather_dots(const Id* ids, const Value* values, const int64_t* ptr, int32_t n, const float* dense,
                 [[maybe_unused]] const uint16_t* filter, double* dots) {
#if defined(__AVX512F__)
    if constexpr (sizeof(Id) == 2) {
        if (n <= 16) return gather_filtered(ids, values, ptr, n, dense, filter, dots);
    }
#endif
    for (int32_t row = 0; row < n; ++row) {
        dots[row] = gather_dot(ids + ptr[row], values + ptr[row], ptr[row + 1] - ptr[row], dense);
    }
}

// The ids of a row differ, so the additions are independent.
template <bool Marks, class Id, class Value>
void add_to_sums(const Id* ids, const Value* values, int64_t count, float share, float* sums, uint8_t* marks) {
    int64_t i = 0;
    for (; i + 8 <= count; i += 8) {
        float own[8];
        widen_eight(values + i, own);
        for (int n = 0; n < 8; ++n) {
            sums[ids[i + n]] += share * own[n];
            if constexpr (Marks) marks[ids[i + n] / kMarked] = 1;
        }
    }
    for (; i < count; ++i) {
        sums[ids[i]] += share * widen(values[i]);
        if constexpr (Marks) marks[ids[i] / kMarked] = 1;
    }
}

template <class Id, class Value>
void add_leaf(const Id* ids, const Value* values, int64_t count, float share, float* sums, uint8_t* marks) {
    if (marks == nullptr) return add_to_sums<false>(ids, values, count, share, sums, marks);
    add_to_sums<true>(ids, values, count, share, sums, marks);
}

}  // namespace
}  // namespace labelwood::simd::LABELWOOD_ISA
