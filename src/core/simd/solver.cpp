// Dual coordinate descent on a block of siblings, compiled once per instruction set; see simd/solver.hpp.
#include "simd/solver.hpp"

#include "simd/lanes.hpp"

namespace labelwood::simd::LABELWOOD_ISA {
namespace {

// Margins of all lanes for one row: z = sum_j x_j W[j]. Two sets of accumulators hide the latency of the
// additions.
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
inline void add_row(const int32_t* features, const float* values, int64_t count, const Lanes<S>& step, float* weights) {
    using L = Lanes<S>;
    using F = typename L::F;
    for (int64_t j = 0; j < count; ++j) {
        float* w = weights + static_cast<int64_t>(features[j]) * S;
        for (int n = 0; n < L::N; ++n) store(w + n * L::W, load<F>(w + n * L::W) + values[j] * step.v[n]);
    }
}

// Rows are visited in random order, so the hardware does not prefetch them.
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
    static void update(F z, F sign, F alpha, float diagonal, const SiblingLanes& block, F* gradient, F* projected,
                       F* next) {
        const float ridge = 0.5f / block.cost;
        const F g = sign * (z + block.offset) - 1.0f + alpha * ridge;
        *gradient = g;
        *projected = alpha > 0.0f ? g : smaller(g, F{});
        *next = larger(alpha - g * (1.0f / (diagonal + ridge)), F{});
    }
    template <class F, class I>
    static F change(F alpha, F next, const SiblingLanes&) {
        return next - alpha;
    }
};

// Logistic: the dual variable is kept as its logit t, alpha = C sigmoid(t), and the gradient is t + y z. The
// optimum of one coordinate is the root of t' + y z + q (C sigmoid(t') - alpha), which rises in t' with a
// slope in [1, 1 + q C / 4]: Newton's method inside a shrinking bracket finds it.
struct Logistic {
    template <class F, class I>
    static F sigmoid(F t) {
        return 1.0f / (1.0f + exponential<F, I>(-t));
    }
    template <class F, class I>
    static void update(F z, F sign, F logit, float diagonal, const SiblingLanes& block, F* gradient, F* projected,
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
            const F inside = ((newton >= low) & (newton <= high)) ? newton : middle;
            const F moved = magnitude(inside - t) > 1e-4f ? splat<F>(1.0f) : F{};
            t = inside;
            if (!any(moved)) break;
        }
        *gradient = logit + margin;
        *projected = *gradient;
        *next = t;
    }
    template <class F, class I>
    static F change(F logit, F next, const SiblingLanes& block) {
        return block.cost * (sigmoid<F, I>(next) - sigmoid<F, I>(logit));
    }
};

template <int S, class Loss>
int64_t pass(const NodeRows& rows, const int32_t* order, int64_t count, const SiblingLanes& block,
             GradientSpread* spread, int32_t* restless) {
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
            Loss::template update<F, I>(z.v[n], sign, dual, rows.diagonal[row], block, &gradient, &projected, &next);
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
int64_t pass_of(const NodeRows& rows, const int32_t* order, int64_t count, const SiblingLanes& block,
                GradientSpread* spread, int32_t* restless) {
    switch (block.lanes) {
        case 4:
            return pass<4, Loss>(rows, order, count, block, spread, restless);
        case 8:
            return pass<8, Loss>(rows, order, count, block, spread, restless);
        default:
            return pass<16, Loss>(rows, order, count, block, spread, restless);
    }
}

// Branch-free: a row without a large entry is overwritten by the next one.
template <int S>
int64_t larger_of(const float* block, int64_t count, uint32_t lanes, float threshold, int32_t* rows, uint16_t* found) {
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

int64_t larger_entries(const float* block, int64_t count, int width, uint16_t lanes, float threshold, int32_t* rows,
                       uint16_t* found) {
    switch (width) {
        case 4:
            return larger_of<4>(block, count, lanes, threshold, rows, found);
        case 8:
            return larger_of<8>(block, count, lanes, threshold, rows, found);
        default:
            return larger_of<16>(block, count, lanes, threshold, rows, found);
    }
}

}  // namespace

extern const SolverKernels solver_kernels;
const SolverKernels solver_kernels = {pass_of<SquaredHinge>, pass_of<Logistic>, larger_entries};

}  // namespace labelwood::simd::LABELWOOD_ISA
