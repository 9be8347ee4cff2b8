// Routing and averaging, compiled once per instruction set like simd.cpp.
#include "simd_forest.hpp"

#include "lanes.hpp"

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

inline float widen_one(float plain) {
    return plain;
}
inline float widen_one(uint16_t half) {
#if defined(__F16C__)
    return _cvtsh_ss(half);
#else
    uint32_t bits = static_cast<uint32_t>(half & 0x7fffu) << 13;
    float value;
    __builtin_memcpy(&value, &bits, 4);
    value *= 0x1.0p112f;  // moves the exponent's bias from 15 to 127; subnormals come out right as well
    __builtin_memcpy(&bits, &value, 4);
    bits |= static_cast<uint32_t>(half & 0x8000u) << 16;
    __builtin_memcpy(&value, &bits, 4);
    return value;
#endif
}

inline void widen_eight(const float* plain, float* out) {
    __builtin_memcpy(out, plain, 32);
}
inline void widen_eight(const uint16_t* half, float* out) {
#if defined(__F16C__)
    _mm256_storeu_ps(out, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(half))));
#else
    for (int n = 0; n < 8; ++n) out[n] = widen_one(half[n]);
#endif
}

#if defined(__AVX512F__)
inline __m512i load_ids(const uint16_t* ids, __mmask16 mask) {
    return _mm512_maskz_cvtepu16_epi32(mask, _mm256_maskz_loadu_epi16(mask, ids));
}
inline __m512i load_ids(const int32_t* ids, __mmask16 mask) {
    return _mm512_maskz_loadu_epi32(mask, ids);
}
inline __m512 load_values(const uint16_t* values, __mmask16 mask) {
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
        const __m512 there =
            _mm512_mask_i32gather_ps(_mm512_setzero_ps(), mask, load_ids(ids + i, mask), dense, 4);
        const __m512 own = load_values(values + i, mask);
        low = _mm512_fmadd_pd(low_half(own), low_half(there), low);
        high = _mm512_fmadd_pd(high_half(own), high_half(there), high);
    }
    double sums[8];
    _mm512_storeu_pd(sums, _mm512_add_pd(low, high));
    return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

// Thirty-two ids at a time meet the filter in registers; few get through and are listed. Neither how many of
// them there are nor which row one belongs to is branched upon, as no processor guesses it. Neighbours in the
// list belong to one row mostly: two sums of a row do not wait for each other.
template <class Value>
void gather_filtered(const uint16_t* ids, const Value* values, const int64_t* ptr, int32_t n,
                     const float* dense, const uint16_t* filter, double* dots) {
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
            static_cast<double>(widen_one(values[at])) * static_cast<double>(dense[ids[at]]);
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
            const auto mask =
                static_cast<__mmask32>(to - i >= 32 ? 0xffffffffu : 0xffffffffu >> (32 - (to - i)));
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
// Eight independent sums, so that the additions pipeline; a product of two floats is exact in double
// precision.
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
    for (; i < count; ++i)
        sum += static_cast<double>(widen_one(values[i])) * static_cast<double>(dense[ids[i]]);
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

// The ids of a row differ, so the additions do not wait for each other.
template <bool Marks, class Id, class Value>
void add_to_sums(const Id* ids, const Value* values, int64_t count, float share, float* sums,
                 uint8_t* marks) {
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
        sums[ids[i]] += share * widen_one(values[i]);
        if constexpr (Marks) marks[ids[i] / kMarked] = 1;
    }
}

template <class Id, class Value>
void add_leaf(const Id* ids, const Value* values, int64_t count, float share, float* sums, uint8_t* marks) {
    if (marks == nullptr) return add_to_sums<false>(ids, values, count, share, sums, marks);
    add_to_sums<true>(ids, values, count, share, sums, marks);
}

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
inline __m512d eight_doubles(const uint16_t* half) {
    return _mm512_maskz_cvtps_pd(0xff,
                                 _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(half))));
}
inline __m512d eight_doubles(const float* plain) {
    return _mm512_maskz_cvtps_pd(0xff, _mm256_loadu_ps(plain));
}
inline __m256d four_doubles(const uint16_t* half) {
    return _mm256_cvtps_pd(_mm_cvtph_ps(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(half))));
}
inline __m256d four_doubles(const float* plain) {
    return _mm256_cvtps_pd(_mm_loadu_ps(plain));
}

// Two sets of accumulators hide the latency of the additions. `Lanes` are as lanes_read() says.
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
                sums[n] +=
                    static_cast<double>(values[i]) * static_cast<double>(widen_one(block[at[i] + lane + n]));
            }
        }
        __builtin_memcpy(scores + lane, sums, sizeof(sums));
    }
}
#endif

int64_t find_columns(const int32_t* columns, const float* values, int64_t count, const int32_t* position,
                     int32_t* at, float* found) {
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
    const __m512i counts =
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4));
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
        const __m512i second =
            _mm512_mask_i32gather_epi64(_mm512_setzero_si512(), static_cast<__mmask8>(mask >> 8),
                                        _mm512_maskz_extracti32x8_epi32(0xff, word, 1), ranks, 8);
        const __m512i before = _mm512_permutex2var_epi32(first, evens, second);
        const __m512i bits = _mm512_permutex2var_epi32(first, _mm512_add_epi32(evens, one), second);
        const __m512i bit = _mm512_sllv_epi32(one, _mm512_and_si512(column, _mm512_set1_epi32(31)));
        const __mmask16 there = _mm512_mask_test_epi32_mask(mask, bits, bit);
        const __m512i below = _mm512_and_si512(bits, _mm512_sub_epi32(bit, one));
        const __m512i row = _mm512_add_epi32(before, count_bits(below));
        const __m512i place = _mm512_add_epi32(_mm512_mullo_epi32(row, stride),
                                               _mm512_mullo_epi32(upper_product(row, inverse), gap));
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
// Without a branch: what is not found is overwritten by the next.
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
