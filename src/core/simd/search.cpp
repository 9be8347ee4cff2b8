// Searching a packed label tree, compiled once per instruction set; see simd/solver.hpp.
#include "simd/search.hpp"

#include "simd/lanes.hpp"

namespace labelwood::simd::LABELWOOD_ISA {
namespace {

// Keeps N vectors of the sum in registers over all rows.
template <int N>
inline void accumulate_tile(const int32_t* rows, const float* values, int64_t count, const float* matrix, int64_t width,
                            float* out) {
    using F = Native<kNative>::F;
    F sum[size_t{N}];
    for (int n = 0; n < N; ++n) sum[n] = load<F>(out + n * kNative);
    for (int64_t i = 0; i < count; ++i) {
        const float* row = matrix + static_cast<int64_t>(rows[i]) * width;
        for (int n = 0; n < N; ++n) sum[n] += values[i] * load<F>(row + n * kNative);
    }
    for (int n = 0; n < N; ++n) store(out + n * kNative, sum[n]);
}

void accumulate(const int32_t* rows, const float* values, int64_t count, const float* matrix, int64_t width,
                float* out) {
    int64_t c = 0;
    for (; c + 8 * kNative <= width; c += 8 * kNative) {
        accumulate_tile<8>(rows, values, count, matrix + c, width, out + c);
    }
    for (; c + 2 * kNative <= width; c += 2 * kNative) {
        accumulate_tile<2>(rows, values, count, matrix + c, width, out + c);
    }
    for (; c + kNative <= width; c += kNative) {
        accumulate_tile<1>(rows, values, count, matrix + c, width, out + c);
    }
    for (; c < width; ++c) {
        for (int64_t i = 0; i < count; ++i) {
            out[c] += values[i] * matrix[static_cast<int64_t>(rows[i]) * width + c];
        }
    }
}

// Branch-free: a column without a match is overwritten by the next one.
int64_t match(const int32_t* columns, const float* values, int64_t count, const Rank* ranks, int32_t* rows,
              float* matched) {
    int64_t n = 0;
    for (int64_t i = 0; i < count; ++i) {
        const Rank word = ranks[columns[i] >> 5];
        const uint32_t bit = 1u << (columns[i] & 31);
        rows[n] = static_cast<int32_t>(word.before) + __builtin_popcount(word.bits & (bit - 1));
        matched[n] = values[i];
        n += (word.bits & bit) != 0;
    }
    return n;
}

void widen(const Half* half, int64_t count, float* out) {
    int64_t i = 0;
#if defined(__F16C__)
    for (; i + 8 <= count; i += 8) {
        const __m128i packed = _mm_loadu_si128(reinterpret_cast<const __m128i*>(half + i));
        _mm256_storeu_ps(out + i, _mm256_cvtph_ps(packed));
    }
#endif
    for (; i < count; ++i) out[i] = labelwood::widen(half[i]);
}

template <class Child, class Weight>
void add_pairs_of(const PairRows& pairs, const int32_t* rows, const float* values, int64_t count, float* scores) {
    const auto* child = static_cast<const Child*>(pairs.child);
    const auto* weights = static_cast<const Weight*>(pairs.weights);
    for (int64_t i = 0; i < count; ++i) {
        if (i + 2 * kAhead < count) __builtin_prefetch(pairs.start + rows[i + 2 * kAhead]);
        if (i + kAhead < count) {
            const uint32_t next = pairs.start[rows[i + kAhead]];
            __builtin_prefetch(child + next);
            __builtin_prefetch(weights + next);
        }
        const uint32_t end = rows[i] + 1 < pairs.n_rows ? pairs.start[rows[i] + 1] : pairs.total;
        const float value = values[i];
        for (uint32_t e = pairs.start[rows[i]]; e < end; ++e) {
            scores[child[e]] += value * labelwood::widen(weights[e]);
        }
    }
}

template <class Child>
void add_pairs_by(const PairRows& pairs, const int32_t* rows, const float* values, int64_t count, float* scores) {
    if (pairs.half) {
        add_pairs_of<Child, Half>(pairs, rows, values, count, scores);
    } else {
        add_pairs_of<Child, float>(pairs, rows, values, count, scores);
    }
}

void add_pairs(const PairRows& pairs, const int32_t* rows, const float* values, int64_t count, float* scores) {
    switch (pairs.child_bytes) {
        case 1:
            return add_pairs_by<uint8_t>(pairs, rows, values, count, scores);
        case 2:
            return add_pairs_by<uint16_t>(pairs, rows, values, count, scores);
        default:
            return add_pairs_by<int32_t>(pairs, rows, values, count, scores);
    }
}

}  // namespace

extern const SearchKernels search_kernels;
const SearchKernels search_kernels = {accumulate, match, add_pairs, widen};

}  // namespace labelwood::simd::LABELWOOD_ISA
