// The hot loops, compiled once per instruction set (see CMakeLists.txt) into a namespace of that name.
#include "simd/solver.hpp"

#include "simd/lanes.hpp"

namespace labelwood::LABELWOOD_ISA {
namespace {

// Margins of all lanes for one row: z = sum_j x_j W[j]. Two sets of accumulators hide the latency of the
// adds.
template <int S>
inline Lanes<S> margins(const int32_t* features, const float* values, int64_t count, const float* weights) {
    using L = Lanes<S>;
    using F = typename L::F;
    L even{}, odd{};
    int64_t j = 0;
    for (; j + 1 < count; j += 2) {
        const float* a = weights + static_cast<int64_t>(features[j]) * S;
        const float* b = weights + static_cast<int64_t>(features[j + 1]) * S;
        for (int n = 0; n < L::N; ++n) {
            even.v[n] += values[j] * load<F>(a + n * L::W);
            odd.v[n] += values[j + 1] * load<F>(b + n * L::W);
        }
    }
    if (j < count) {
        const float* a = weights + static_cast<int64_t>(features[j]) * S;
        for (int n = 0; n < L::N; ++n) even.v[n] += values[j] * load<F>(a + n * L::W);
    }
    for (int n = 0; n < L::N; ++n) even.v[n] += odd.v[n];
    return even;
}

// W[j] += x_j * step for one row.
template <int S>
inline void add_row(const int32_t* features, const float* values, int64_t count, const Lanes<S>& step,
                    float* weights) {
    using L = Lanes<S>;
    using F = typename L::F;
    for (int64_t j = 0; j < count; ++j) {
        float* w = weights + static_cast<int64_t>(features[j]) * S;
        for (int n = 0; n < L::N; ++n) store(w + n * L::W, load<F>(w + n * L::W) + values[j] * step.v[n]);
    }
}

// The rows are visited in random order, which hides them from the hardware's prefetcher.
inline void prefetch_row(const NodeRows& rows, int32_t row) {
    const int64_t begin = rows.start[row], end = begin + rows.indptr[row + 1] - rows.indptr[row];
    for (int64_t j = begin; j < end; j += 16) {
        __builtin_prefetch(rows.features + j);
        __builtin_prefetch(rows.values + j);
    }
}

// Squared hinge: alpha >= 0, gradient G = y z - 1 + alpha / (2C).
struct SquaredHinge {
    template <class F, class I>
    static void update(F z, F sign, F alpha, float diagonal, const Block& block, F* gradient, F* projected,
                       F* next) {
        const float ridge = 0.5f / block.cost;
        const F g = sign * (z + block.offset) - 1.0f + alpha * ridge;
        *gradient = g;
        *projected = alpha > 0.0f ? g : smaller(g, F{});
        *next = larger(alpha - g * (1.0f / (diagonal + ridge)), F{});
    }
    template <class F, class I>
    static F change(F alpha, F next, const Block&) {
        return next - alpha;
    }
};

// Logistic: the dual variable is kept as its logit t, alpha = C sigmoid(t); the gradient is t + y z, and one
// coordinate's optimum is the root of t' + y z + q (C sigmoid(t') - alpha), increasing in t' with slope in
// [1, 1 + q C / 4]: Newton inside a shrinking bracket.
struct Logistic {
    template <class F, class I>
    static F sigmoid(F t) {
        return 1.0f / (1.0f + exponential<F, I>(-t));
    }
    template <class F, class I>
    static void update(F z, F sign, F logit, float diagonal, const Block& block, F* gradient, F* projected,
                       F* next) {
        const F margin = sign * (z + block.offset);
        const float q = diagonal;
        const F alpha = block.cost * sigmoid<F, I>(logit);
        const F shift = margin - q * alpha;
        F low = -shift - q * block.cost, high = -shift;
        F t = larger(smaller(-margin, high), low);
        for (int round = 0; round < 12; ++round) {
            const F s = sigmoid<F, I>(t);
            const F f = t + shift + q * block.cost * s;
            const F step = f / (1.0f + q * block.cost * s * (1.0f - s));
            high = f > 0.0f ? smaller(high, t) : high;
            low = f < 0.0f ? larger(low, t) : low;
            const F newton = t - step;
            const F middle = 0.5f * (low + high);
            const F inside = (newton >= low) & (newton <= high) ? newton : middle;
            const F moved = magnitude(inside - t) > 1e-4f ? splat<F>(1.0f) : F{};
            t = inside;
            if (!any(moved)) break;
        }
        *gradient = logit + margin;
        *projected = *gradient;
        *next = t;
    }
    template <class F, class I>
    static F change(F logit, F next, const Block& block) {
        return block.cost * (sigmoid<F, I>(next) - sigmoid<F, I>(logit));
    }
};

template <int S, class Loss>
int64_t pass(const NodeRows& rows, const int32_t* order, int64_t count, const Block& block, Spread* spread,
             int32_t* restless) {
    using L = Lanes<S>;
    using F = typename L::F;
    using I = typename L::I;
    F highest[L::N], lowest[L::N];
    I active[L::N];
    for (int n = 0; n < L::N; ++n) {
        highest[n] = splat<F>(-1e30f);
        lowest[n] = splat<F>(1e30f);
        active[n] = spread_bits<I>(static_cast<uint32_t>(block.active) >> (n * L::W));
    }
    int64_t n_restless = 0;
    spread->read = spread->written = 0;
    for (int64_t visit = 0; visit < count; ++visit) {
        const int32_t row = order[visit];
        if (visit + 2 < count) prefetch_row(rows, order[visit + 2]);
        const int64_t begin = rows.start[row], length = rows.indptr[row + 1] - rows.indptr[row];
        const Lanes<S> z = margins<S>(rows.features + begin, rows.values + begin, length, block.weights);
        spread->read += length;
        float* duals = block.duals + static_cast<int64_t>(row) * S;
        Lanes<S> step;
        bool moved = false;
        for (int n = 0; n < L::N; ++n) {
            const I positive = spread_bits<I>(static_cast<uint32_t>(block.positives[row]) >> (n * L::W));
            const F sign = positive ? splat<F>(1.0f) : splat<F>(-1.0f);
            const F dual = load<F>(duals + n * L::W);
            F gradient, projected, next;
            Loss::template update<F, I>(z.v[n], sign, dual, rows.diagonal[row], block, &gradient, &projected,
                                        &next);
            highest[n] = larger(highest[n], projected);
            lowest[n] = smaller(lowest[n], projected);
            const I worth = (magnitude(projected) > splat<F>(block.skip)) & active[n];
            next = worth ? next : dual;
            step.v[n] = worth ? sign * Loss::template change<F, I>(dual, next, block) : F{};
            store(duals + n * L::W, next);
            moved |= any(step.v[n]);
        }
        if (!moved) continue;
        add_row<S>(rows.features + begin, rows.values + begin, length, step, block.weights);
        restless[n_restless++] = row;
        spread->written += length;
    }
    for (int n = 0; n < L::N; ++n) {
        store(spread->highest + n * L::W, highest[n]);
        store(spread->lowest + n * L::W, lowest[n]);
    }
    return n_restless;
}

template <class Loss>
int64_t pass_of(const NodeRows& rows, const int32_t* order, int64_t count, const Block& block, Spread* spread,
                int32_t* restless) {
    switch (block.lanes) {
        case 4:
            return pass<4, Loss>(rows, order, count, block, spread, restless);
        case 8:
            return pass<8, Loss>(rows, order, count, block, spread, restless);
        default:
            return pass<16, Loss>(rows, order, count, block, spread, restless);
    }
}

// Without a branch, as in match().
template <int S>
int64_t larger_of(const float* block, int64_t count, uint32_t lanes, float threshold, int32_t* rows,
                  uint16_t* found) {
    using L = Lanes<S>;
    using F = typename L::F;
    int64_t n = 0;
    for (int64_t row = 0; row < count; ++row) {
        uint32_t bits = 0;
        for (int i = 0; i < L::N; ++i) {
            const F size = magnitude(load<F>(block + row * S + i * L::W));
            bits |= bits_above(size, splat<F>(threshold)) << (i * L::W);
        }
        bits &= lanes;
        rows[n] = static_cast<int32_t>(row);
        found[n] = static_cast<uint16_t>(bits);
        n += bits != 0;
    }
    return n;
}

int64_t larger_entries(const float* block, int64_t count, int width, uint16_t lanes, float threshold,
                       int32_t* rows, uint16_t* found) {
    switch (width) {
        case 4:
            return larger_of<4>(block, count, lanes, threshold, rows, found);
        case 8:
            return larger_of<8>(block, count, lanes, threshold, rows, found);
        default:
            return larger_of<16>(block, count, lanes, threshold, rows, found);
    }
}

// N vectors of the sum stay in registers while the rows go by.
template <int N>
inline void accumulate_tile(const int32_t* rows, const float* values, int64_t count, const float* matrix,
                            int64_t width, float* out) {
    using F = Native<kNative>::F;
    F sum[N];
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

// Without a branch: what is not matched is overwritten by the next.
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

inline float widen_one(uint16_t half) {
#if defined(__F16C__)
    return _cvtsh_ss(half);
#endif
    const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
    uint32_t rest = (static_cast<uint32_t>(half & 0x7fffu) << 13);
    float value;
    __builtin_memcpy(&value, &rest, 4);
    value *= 0x1.0p112f;  // moves the exponent's bias from 15 to 127; subnormals come out right as well
    __builtin_memcpy(&rest, &value, 4);
    rest |= sign;
    __builtin_memcpy(&value, &rest, 4);
    return value;
}

inline float widen_one(float plain) {
    return plain;
}

void widen(const uint16_t* half, int64_t count, float* out) {
    int64_t i = 0;
#if defined(__F16C__)
    for (; i + 8 <= count; i += 8) {
        const __m128i packed = _mm_loadu_si128(reinterpret_cast<const __m128i*>(half + i));
        _mm256_storeu_ps(out + i, _mm256_cvtph_ps(packed));
    }
#endif
    for (; i < count; ++i) out[i] = widen_one(half[i]);
}

template <class Child, class Weight>
void add_pairs_of(const PairRows& pairs, const int32_t* rows, const float* values, int64_t count,
                  float* scores) {
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
            scores[child[e]] += value * widen_one(weights[e]);
        }
    }
}

template <class Child>
void add_pairs_by(const PairRows& pairs, const int32_t* rows, const float* values, int64_t count,
                  float* scores) {
    if (pairs.half) {
        add_pairs_of<Child, uint16_t>(pairs, rows, values, count, scores);
    } else {
        add_pairs_of<Child, float>(pairs, rows, values, count, scores);
    }
}

void add_pairs(const PairRows& pairs, const int32_t* rows, const float* values, int64_t count,
               float* scores) {
    switch (pairs.child_bytes) {
        case 1:
            return add_pairs_by<uint8_t>(pairs, rows, values, count, scores);
        case 2:
            return add_pairs_by<uint16_t>(pairs, rows, values, count, scores);
        default:
            return add_pairs_by<int32_t>(pairs, rows, values, count, scores);
    }
}

// A product of two floats is exact in double precision, so a fused addition changes nothing: every
// instruction set gives the same bits.
template <int G>
inline void block_scores_of(const int32_t* columns, const float* values, int64_t count,
                            const int32_t* position, const float* block, int stride, double* scores) {
    using F8 = Native<8>::F;
    using D8 = double __attribute__((vector_size(64)));
    D8 sums[G];
    for (int g = 0; g < G; ++g) __builtin_memcpy(&sums[g], scores + 8 * g, 64);
    for (int64_t i = 0; i < count; ++i) {
        const float* row = block + static_cast<int64_t>(position[columns[i]]) * stride;
        const auto value = static_cast<double>(values[i]);
        for (int g = 0; g < G; ++g) sums[g] += value * __builtin_convertvector(load<F8>(row + 8 * g), D8);
    }
    for (int g = 0; g < G; ++g) __builtin_memcpy(scores + 8 * g, &sums[g], 64);
}

void block_scores(const int32_t* columns, const float* values, int64_t count, const int32_t* position,
                  const float* block, int lanes, double* scores) {
    int lane = 0;
    for (; lane + 16 <= lanes; lane += 16) {
        block_scores_of<2>(columns, values, count, position, block + lane, lanes, scores + lane);
    }
    if (lane < lanes)
        block_scores_of<1>(columns, values, count, position, block + lane, lanes, scores + lane);
}

#define LABELWOOD_TEXT_(x) #x
#define LABELWOOD_TEXT(x) LABELWOOD_TEXT_(x)

}  // namespace

// In simd_cut.cpp.
float row_dot(const NodeRows& rows, int32_t row, const float* weights);
void cut_step(const NodeRows& rows, int32_t example, const int32_t* partners, int32_t n_near, int32_t n,
              const CutState& state);

extern const Simd table;
const Simd table = {LABELWOOD_TEXT(LABELWOOD_ISA),
                    pass_of<SquaredHinge>,
                    pass_of<Logistic>,
                    larger_entries,
                    accumulate,
                    match,
                    add_pairs,
                    widen,
                    row_dot,
                    cut_step,
                    block_scores};

}  // namespace labelwood::LABELWOOD_ISA
