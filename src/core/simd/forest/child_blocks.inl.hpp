// Dense blocks of the weights of a node's children: finding a row's columns in them, and scoring. Part of
// simd/forest/router.cpp.
#pragma once

#include "simd/forest/packed_rows.inl.hpp"
#include "simd/forest/router.hpp"
#include "simd/lanes.hpp"

namespace labelwood::simd::LABELWOOD_ISA {
namespace {

template <int S>
struct Doubles {
    typedef double D __attribute__((vector_size(S * 8)));
};

// Several accumulators hide the latency of the additions.
template <int S>
void scores_of(const int32_t* rows, const float* values, int64_t count, const float* block, int64_t stride,
               double* scores) {
    using F = typename Native<S>::F;
    using D = typename Doubles<S>::D;
    D sums[4] = {};
    int64_t i = 0;
    for (; i + 4 <= count; i += 4) {
        for (int n = 0; n < 4; ++n) {
            const F there = load<F>(block + rows[i + n] * stride);
            sums[n] += static_cast<double>(values[i + n]) * __builtin_convertvector(there, D);
        }
    }
    for (; i < count; ++i) {
        const F there = load<F>(block + rows[i] * stride);
        sums[0] += static_cast<double>(values[i]) * __builtin_convertvector(there, D);
    }
    const D sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    __builtin_memcpy(scores, &sum, sizeof(D));
}

void row_scores(const int32_t* rows, const float* values, int64_t count, const float* block, int lanes,
                double* scores) {
    if (lanes == 2) return scores_of<2>(rows, values, count, block, 2, scores);
    if (lanes == 4) return scores_of<4>(rows, values, count, block, 4, scores);
    for (int lane = 0; lane < lanes; lane += 8) {
        scores_of<8>(rows, values, count, block + lane, lanes, scores + lane);
    }
}

#if defined(__AVX512F__)
inline __m512d eight_doubles(const Half* half) {
    return _mm512_maskz_cvtps_pd(0xff, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(half))));
}
inline __m512d eight_doubles(const float* plain) {
    return _mm512_maskz_cvtps_pd(0xff, _mm256_loadu_ps(plain));
}
inline __m256d four_doubles(const Half* half) {
    return _mm256_cvtps_pd(_mm_cvtph_ps(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(half))));
}
inline __m256d four_doubles(const float* plain) {
    return _mm256_cvtps_pd(_mm_loadu_ps(plain));
}

// Two sets of accumulators hide the latency of the additions. `Lanes` is lanes_read(lanes).
template <int Lanes, class Value>
void scores_in_lanes(const int32_t* at, const float* values, int64_t count, const Value* block,
                     const Ahead<Value>& next, double* scores) {
    __m512d low[2] = {_mm512_setzero_pd(), _mm512_setzero_pd()}, high[2] = {low[0], low[0]};
    __m256d short_high[2] = {_mm256_setzero_pd(), _mm256_setzero_pd()};
    auto add = [&](int64_t i, int to) {
        const Value* there = block + at[i];
        const __m512d own = _mm512_maskz_cvtps_pd(0xff, _mm256_broadcast_ss(values + i));
        low[to] = _mm512_fmadd_pd(own, eight_doubles(there), low[to]);
        if constexpr (Lanes == 12) {
            const __m256d own4 = _mm512_castpd512_pd256(own);
            short_high[to] = _mm256_fmadd_pd(own4, four_doubles(there + 8), short_high[to]);
        } else if constexpr (Lanes == 16) {
            high[to] = _mm512_fmadd_pd(own, eight_doubles(there + 8), high[to]);
        }
    };
    const int64_t both = count < next.count ? count : next.count;
    int64_t i = 0;
    for (; i + 2 <= both; i += 2) {
        __builtin_prefetch(next.block + next.at[i]);
        __builtin_prefetch(next.block + next.at[i + 1]);
        add(i, 0);
        add(i + 1, 1);
    }
    for (int64_t rest = i; rest < next.count; ++rest) __builtin_prefetch(next.block + next.at[rest]);
    for (; i + 2 <= count; i += 2) {
        add(i, 0);
        add(i + 1, 1);
    }
    if (i < count) add(i, 0);
    _mm512_storeu_pd(scores, _mm512_add_pd(low[0], low[1]));
    if constexpr (Lanes == 12) _mm256_storeu_pd(scores + 8, _mm256_add_pd(short_high[0], short_high[1]));
    if constexpr (Lanes == 16) _mm512_storeu_pd(scores + 8, _mm512_add_pd(high[0], high[1]));
}

template <class Value>
void lane_scores(const int32_t* at, const float* values, int64_t count, const Value* block, int lanes,
                 const Ahead<Value>& next, double* scores) {
    if (lanes <= 8) return scores_in_lanes<8>(at, values, count, block, next, scores);
    if (lanes <= 12) return scores_in_lanes<12>(at, values, count, block, next, scores);
    scores_in_lanes<16>(at, values, count, block, next, scores);
}
#else
template <class Value>
void lane_scores(const int32_t* at, const float* values, int64_t count, const Value* block, int lanes,
                 const Ahead<Value>& next, double* scores) {
    for (int64_t i = 0; i < next.count; ++i) __builtin_prefetch(next.block + next.at[i]);
    for (int lane = 0; lane < lanes; lane += 4) {
        double sums[4] = {};
        for (int64_t i = 0; i < count; ++i) {
            for (int n = 0; n < 4; ++n) {
                sums[n] += static_cast<double>(values[i]) * static_cast<double>(widen(block[at[i] + lane + n]));
            }
        }
        __builtin_memcpy(scores + lane, sums, sizeof(sums));
    }
}
#endif

int64_t find_columns(const int32_t* columns, const float* values, int64_t count, const int32_t* position, int32_t* at,
                     float* found) {
    int64_t n = 0;
    for (int64_t i = 0; i < count; ++i) {
        const int32_t there = position[columns[i]];
        at[n] = there;
        found[n] = values[i];
        n += there != 0;
    }
    return n;
}

#if defined(__AVX512F__)
inline __m512i count_bits(__m512i v) {
    const __m512i counts = _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4));
    const __m512i nibble = _mm512_set1_epi8(15);
    const __m512i low = _mm512_shuffle_epi8(counts, _mm512_and_si512(v, nibble));
    const __m512i high = _mm512_shuffle_epi8(counts, _mm512_and_si512(_mm512_srli_epi32(v, 4), nibble));
    const __m512i pairs = _mm512_maddubs_epi16(_mm512_add_epi8(low, high), _mm512_set1_epi8(1));
    return _mm512_madd_epi16(pairs, _mm512_set1_epi16(1));
}

// The upper halves of 32-bit products.
inline __m512i upper_product(__m512i v, __m512i factor) {
    const __m512i even = _mm512_srli_epi64(_mm512_mul_epu32(v, factor), 32);
    const __m512i odd = _mm512_mul_epu32(_mm512_srli_epi64(v, 32), factor);
    return _mm512_mask_blend_epi32(0xaaaa, even, odd);
}

int64_t find_places(const int32_t* columns, const float* values, int64_t count, const Rank* ranks,
                    const RowPlaces& places, int32_t* at, float* found) {
    const __m512i one = _mm512_set1_epi32(1), stride = _mm512_set1_epi32(places.stride);
    const __m512i gap = _mm512_set1_epi32(places.gap);
    const __m512i inverse = _mm512_set1_epi32(static_cast<int32_t>(places.inverse));
    const __m512i evens = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    int64_t n = 0;
    for (int64_t i = 0; i < count; i += 16) {
        const auto mask = static_cast<__mmask16>(count - i >= 16 ? 0xffffu : 0xffffu >> (16 - (count - i)));
        const __m512i column = _mm512_maskz_loadu_epi32(mask, columns + i);
        const __m512i word = _mm512_srli_epi32(column, 5);
        const __m512i first = _mm512_mask_i32gather_epi64(_mm512_setzero_si512(), static_cast<__mmask8>(mask),
                                                          _mm512_castsi512_si256(word), ranks, 8);
        const __m512i second = _mm512_mask_i32gather_epi64(_mm512_setzero_si512(), static_cast<__mmask8>(mask >> 8),
                                                           _mm512_maskz_extracti32x8_epi32(0xff, word, 1), ranks, 8);
        const __m512i before = _mm512_permutex2var_epi32(first, evens, second);
        const __m512i bits = _mm512_permutex2var_epi32(first, _mm512_add_epi32(evens, one), second);
        const __m512i bit = _mm512_sllv_epi32(one, _mm512_and_si512(column, _mm512_set1_epi32(31)));
        const __mmask16 there = _mm512_mask_test_epi32_mask(mask, bits, bit);
        const __m512i below = _mm512_and_si512(bits, _mm512_sub_epi32(bit, one));
        const __m512i row = _mm512_add_epi32(before, count_bits(below));
        const __m512i place =
            _mm512_add_epi32(_mm512_mullo_epi32(row, stride), _mm512_mullo_epi32(upper_product(row, inverse), gap));
        const int more = __builtin_popcount(there);
        const auto room = static_cast<__mmask16>((1u << more) - 1u);
        _mm512_mask_storeu_epi32(at + n, room, _mm512_maskz_compress_epi32(there, place));
        const __m512 own = _mm512_maskz_loadu_ps(mask, values + i);
        _mm512_mask_storeu_ps(found + n, room, _mm512_maskz_compress_ps(there, own));
        n += more;
    }
    return n;
}
#else
// Branch-free: a column that is not found is overwritten by the next one.
int64_t find_places(const int32_t* columns, const float* values, int64_t count, const Rank* ranks,
                    const RowPlaces& places, int32_t* at, float* found) {
    int64_t n = 0;
    for (int64_t i = 0; i < count; ++i) {
        const Rank word = ranks[columns[i] >> 5];
        const uint32_t bit = 1u << (columns[i] & 31);
        const auto row = static_cast<int32_t>(word.before) + __builtin_popcount(word.bits & (bit - 1));
        const auto lines = static_cast<int32_t>((static_cast<uint64_t>(row) * places.inverse) >> 32);
        at[n] = row * places.stride + lines * places.gap;
        found[n] = values[i];
        n += (word.bits & bit) != 0;
    }
    return n;
}
#endif

}  // namespace
}  // namespace labelwood::simd::LABELWOOD_ISA
