// Searching a packed label tree, compiled once per instruction set; see simd/solver.hpp.
#include "simd/search.hpp"

#include "simd/lanes.hpp"
#include "simd/vectors.inl.hpp"

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

void widen_block(const StoredBlock& block, float* out) {
    const int64_t row_bytes = block.n_children * bytes_of(block.type), stride = padded(block.n_children);
    for (int64_t j = 0; j < block.n_columns; ++j) {
        widen_row(block.weights + j * row_bytes, block.type, block.n_children, block.factor, out + j * stride);
    }
}

// Every sum is taken over the columns in order, in one accumulator: a row's scores do not depend on the rows
// beside it.
template <int R, int N>
inline void product_tile(const float* const* rows, const float* block, int64_t n_columns, int64_t stride, float* out) {
    using F = Native<kNative>::F;
    F sum[size_t{R}][size_t{N}] = {};
    for (int64_t j = 0; j < n_columns; ++j) {
        F w[size_t{N}];
        for (int n = 0; n < N; ++n) w[n] = load<F>(block + j * stride + n * kNative);
#pragma GCC unroll 16
        for (int r = 0; r < R; ++r) {
            const float x = rows[r][j];
            for (int n = 0; n < N; ++n) sum[r][n] += x * w[n];
        }
    }
    for (int r = 0; r < R; ++r) {
        for (int n = 0; n < N; ++n) store(out + r * stride + n * kNative, sum[r][n]);
    }
}

// Columns of tiles: as many vectors as fit, then one at a time; rows are padded to whole vectors.
template <int R>
inline void product_rows(const float* const* rows, const float* block, int64_t n_columns, int64_t stride, float* out) {
    constexpr int N = kNative == 16 ? 4 : 2;
    int64_t c = 0;
    for (; c + N * kNative <= stride; c += N * kNative) {
        product_tile<R, N>(rows, block + c, n_columns, stride, out + c);
    }
    for (; c < stride; c += kNative) product_tile<R, 1>(rows, block + c, n_columns, stride, out + c);
}

void products(const float* const* rows, int64_t n_rows, const float* block, int64_t n_columns, int64_t n_children,
              float* out) {
    constexpr int R = kNative == 4 ? 4 : 6;
    const int64_t stride = padded(n_children);
    int64_t r = 0;
    for (; r + R <= n_rows; r += R) product_rows<R>(rows + r, block, n_columns, stride, out + r * stride);
    for (; r < n_rows; ++r) product_rows<1>(rows + r, block, n_columns, stride, out + r * stride);
}

template <int N>
inline void product_of_vectors(const float* row, const StoredBlock& block, int64_t from, float* out) {
    using L = Lanes<16>;
    const int64_t size = bytes_of(block.type);
    L sum[size_t{N}] = {};
    for (int64_t j = 0; j < block.n_columns; ++j) {
        const char* weights = block.weights + (j * block.n_children + from) * size;
        for (int i = 0; i < N; ++i) {
            L wide;
            widen_16(weights + i * 16 * size, block.type, &wide);
            for (int n = 0; n < L::N; ++n) sum[i].v[n] += row[j] * (wide.v[n] * block.factor);
        }
    }
    for (int i = 0; i < N; ++i) {
        for (int n = 0; n < L::N; ++n) store(out + from + i * 16 + n * L::W, sum[i].v[n]);
    }
}

// The same for fewer than 16 children; `out` has room for 16.
inline void product_of_few(const float* row, const StoredBlock& block, float* out) {
    using L = Lanes<16>;
    const int64_t size = bytes_of(block.type);
    alignas(64) float wide[16] = {};
    L sum = {};
    for (int64_t j = 0; j < block.n_columns; ++j) {
        for (int64_t c = 0; c < block.n_children; ++c) {
            wide[c] = widen_1(block.weights + (j * block.n_children + c) * size, block.type) * block.factor;
        }
        for (int n = 0; n < L::N; ++n) sum.v[n] += row[j] * load<L::F>(wide + n * L::W);
    }
    for (int n = 0; n < L::N; ++n) store(out + n * L::W, sum.v[n]);
}

// The last vector overlaps the one before it: its sums come out the same.
void product(const float* row, const StoredBlock& block, float* out) {
    constexpr int N = kNative == 16 ? 8 : kNative == 8 ? 4 : 2;
    const int64_t count = block.n_children;
    int64_t c = 0;
    for (; c + N * 16 <= count; c += N * 16) product_of_vectors<N>(row, block, c, out);
    for (; c + 16 <= count; c += 16) product_of_vectors<1>(row, block, c, out);
    if (c < count && count >= 16) {
        product_of_vectors<1>(row, block, count - 16, out);
    } else if (c < count) {
        product_of_few(row, block, out);
    }
}

int64_t above(const float* values, int64_t count, float limit, int32_t* found) {
    using F = Native<kNative>::F;
    int64_t n = 0, i = 0;
    for (; i + kNative <= count; i += kNative) {
        for (uint32_t bits = bits_above(load<F>(values + i), splat<F>(limit)); bits != 0; bits &= bits - 1) {
            found[n++] = static_cast<int32_t>(i) + __builtin_ctz(bits);
        }
    }
    for (; i < count; ++i) {
        if (values[i] > limit) found[n++] = static_cast<int32_t>(i);
    }
    return n;
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
const SearchKernels search_kernels = {accumulate,  match,    add_pairs, widen, widen_row,
                                      widen_block, products, product,   above};

}  // namespace labelwood::simd::LABELWOOD_ISA
