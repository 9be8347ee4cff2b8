// Dual coordinate descent on a block of siblings, compiled once per instruction set; see simd/solver.hpp.
#include "simd/solver.hpp"

#include "simd/lanes.hpp"
#include "simd/vectors.inl.hpp"

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

// The products of R rows of a batch with the weights of the vectors' columns.
template <int S, int R>
inline void multiply_rows(const float* const* rows, int64_t width, const float* weights, Lanes<S>* z) {
    using L = Lanes<S>;
    using F = typename L::F;
    F sum[size_t{R}][size_t{L::N}] = {};
    for (int64_t j = 0; j < width; ++j) {
        F w[size_t{L::N}];
        for (int n = 0; n < L::N; ++n) w[n] = load<F>(weights + j * S + n * L::W);
#pragma GCC unroll 16
        for (int r = 0; r < R; ++r) {
            const float x = rows[r][j];
            for (int n = 0; n < L::N; ++n) sum[r][n] += x * w[n];
        }
    }
    for (int r = 0; r < R; ++r) {
        for (int n = 0; n < L::N; ++n) z[r].v[n] = sum[r][n];
    }
}

template <int S>
inline void multiply_batch(const float* const* rows, int64_t count, int64_t width, const float* weights, Lanes<S>* z) {
    constexpr int R = Lanes<S>::N == 1 ? 12 : Lanes<S>::N == 2 ? 6 : 3;
    constexpr int few = R > 4 ? R / 3 : 1;
    int64_t r = 0;
    for (; count - r > R - few; r += R) multiply_rows<S, R>(rows + r, width, weights, z + r);
    for (; r < count; r += few) multiply_rows<S, few>(rows + r, width, weights, z + r);
}

// Adds R rows of a batch, each times its step, to the weights of the vectors' columns.
template <int S, int R>
inline void add_rows(const float* const* moved, int64_t width, const Lanes<S>* steps, float* weights) {
    using L = Lanes<S>;
    using F = typename L::F;
    const float* x[size_t{R}];
    Lanes<S> step[size_t{R}];
    for (int r = 0; r < R; ++r) {
        x[r] = moved[r];
        step[r] = steps[r];
    }
    // All of a column is read before any of it is written: the compiler cannot know that rows and weights lie apart.
    for (int64_t j = 0; j < width; ++j) {
        float* at = weights + j * S;
        F w[size_t{L::N}];
        for (int n = 0; n < L::N; ++n) w[n] = load<F>(at + n * L::W);
        for (int r = 0; r < R; ++r) {
            const float value = x[r][j];
            for (int n = 0; n < L::N; ++n) w[n] += value * step[r].v[n];
        }
        for (int n = 0; n < L::N; ++n) store(at + n * L::W, w[n]);
    }
}

// At most R rows, in one walk over the weights.
template <int S, int R>
inline void add_up_to(const float* const* moved, int count, int64_t width, const Lanes<S>* steps, float* weights) {
    if (count == R) return add_rows<S, R>(moved, width, steps, weights);
    if constexpr (R > 1) add_up_to<S, R - 1>(moved, count, width, steps, weights);
}

template <int S>
inline void add_batch(const float* const* moved, int n_moved, int64_t width, const Lanes<S>* steps, float* weights) {
    constexpr int R = Lanes<S>::N <= 2 ? 6 : 3;  // as many steps as registers hold
    for (; n_moved > R; n_moved -= R, moved += R, steps += R) add_rows<S, R>(moved, width, steps, weights);
    add_up_to<S, R>(moved, n_moved, width, steps, weights);
}

// How many dot products are computed at once; some of the last ones may be of no use.
constexpr int kDots = 4;

// Corrects the margins of the rows after row r of a batch for its step. `rows` may be read up to kDots - 1 past n.
template <int S>
inline void correct_later(const float* const* rows, int64_t stride, int r, int n, const Lanes<S>& step, Lanes<S>* z) {
    float products[kBatch + kDots];
    for (int later = r + 1; later < n; later += kDots) dots<kDots>(rows[r], rows + later, stride, products + later);
    for (int later = r + 1; later < n; ++later) {
        for (int i = 0; i < Lanes<S>::N; ++i) z[later].v[i] += products[later] * step.v[i];
    }
}

// One pass in progress: what it found so far, and the update of a row whose margins are known.
template <int S, class Loss>
class Pass {
    using L = Lanes<S>;
    using F = typename L::F;
    using I = typename L::I;

  public:
    Pass(const NodeRows& rows, const SiblingLanes& block, GradientSpread* spread, int32_t* restless)
        : rows_(rows), block_(block), spread_(spread), restless_(restless) {
        for (int n = 0; n < L::N; ++n) {
            highest_[n] = splat<F>(-1e30f);
            lowest_[n] = splat<F>(1e30f);
            active_[n] = spread_bits<I>(static_cast<uint32_t>(block.active) >> (n * L::W));
        }
        spread->read = spread->written = 0;
    }

    // Visits a row; `z` are the margins of its vector, or null. Returns true if a lane moved, by `step`.
    inline bool visit(int32_t row, const L* of_vector, L* step) {
        // Without sparse features, rows need no look-ups: their only entry is the bias.
        static constexpr int32_t kFirst = 0;
        const bool plain = rows_.bias != nullptr;
        const int64_t begin = plain ? 0 : rows_.start[row];
        const int64_t length = plain ? (*rows_.bias != 0.0f ? 1 : 0) : rows_.indptr[row + 1] - rows_.indptr[row];
        const int32_t* features = plain ? &kFirst : rows_.features + begin;
        const float* values = plain ? rows_.bias : rows_.values + begin;
        L z = margins<S>(features, values, length, block_.weights);
        if (of_vector != nullptr) {
            for (int n = 0; n < L::N; ++n) z.v[n] += of_vector->v[n];
        }
        const int64_t entries = length + rows_.vectors.width;
        spread_->read += entries;
        float* duals = block_.duals + static_cast<int64_t>(row) * S;
        bool moved = false;
        for (int n = 0; n < L::N; ++n) {
            const I positive = spread_bits<I>(static_cast<uint32_t>(block_.positives[row]) >> (n * L::W));
            const F sign = positive ? splat<F>(1.0f) : splat<F>(-1.0f);
            const F dual = load<F>(duals + n * L::W);
            F gradient, projected, next;
            Loss::template update<F, I>(z.v[n], sign, dual, rows_.diagonal[row], block_, &gradient, &projected, &next);
            highest_[n] = larger(highest_[n], projected);
            lowest_[n] = smaller(lowest_[n], projected);
            const I worth = (magnitude(projected) > splat<F>(block_.skip)) & active_[n];
            next = worth ? next : dual;
            step->v[n] = worth ? sign * Loss::template change<F, I>(dual, next, block_) : F{};
            store(duals + n * L::W, next);
            moved |= any(step->v[n]);
        }
        if (!moved) return false;
        add_row<S>(features, values, length, *step, block_.weights);
        restless_[n_restless_++] = row;
        spread_->written += entries;
        return true;
    }

    int64_t finish() {
        for (int n = 0; n < L::N; ++n) {
            store(spread_->highest + n * L::W, highest_[n]);
            store(spread_->lowest + n * L::W, lowest_[n]);
        }
        return n_restless_;
    }

  private:
    const NodeRows& rows_;
    const SiblingLanes& block_;
    GradientSpread* spread_;
    int32_t* restless_;
    F highest_[size_t{L::N}], lowest_[size_t{L::N}];
    I active_[size_t{L::N}];
    int64_t n_restless_ = 0;
};

// Prefetches what the visit of a row with a vector reads.
template <int S>
inline void prefetch_visit(const NodeRows& rows, const SiblingLanes& block, int32_t row) {
    const Vectors& vectors = rows.vectors;
    const bool is_wide = rows.wide != nullptr;
    const char* vector = is_wide ? reinterpret_cast<const char*>(rows.wide + row * padded(vectors.width))
                                 : vectors.row(rows.members[row]);
    const int64_t bytes = vectors.width * (is_wide ? 4 : bytes_of(vectors.type));
    for (int64_t j = 0; j < bytes; j += 64) __builtin_prefetch(vector + j, 0, 2);
    __builtin_prefetch(block.duals + static_cast<int64_t>(row) * S, 1);
    __builtin_prefetch(block.positives + row);
    __builtin_prefetch(rows.diagonal + row);
}

// The weights of the vectors' columns stay as they are within a batch. A row that moves changes the margins of
// the later rows of its batch by the dot products with them.
template <int S, class Loss>
int64_t pass_in_batches(const NodeRows& rows, const int32_t* order, int64_t count, const SiblingLanes& block,
                        GradientSpread* spread, int32_t* restless) {
    Pass<S, Loss> pass(rows, block, spread, restless);
    const Vectors& vectors = rows.vectors;
    const int64_t stride = padded(vectors.width);
    Lanes<S> z[size_t{kBatch}], steps[size_t{kBatch}];
    const float* x[kBatch + kDots];
    const float* moved[kBatch];
    for (const float*& row : x) row = block.batch;  // a product of fewer rows may read others
    for (int64_t begin = 0; begin < count; begin += kBatch) {
        const int n = static_cast<int>(count - begin < kBatch ? count - begin : kBatch);
        for (int r = 0; r < n; ++r) {
            const int32_t row = order[begin + r];
            if (rows.wide != nullptr) {
                x[r] = rows.wide + row * stride;
            } else {
                const int32_t member = rows.members[row];
                float* to = block.batch + r * stride;
                widen_row(vectors.row(member), vectors.type, vectors.width, vectors.factor(member), to);
                x[r] = to;
            }
            if (begin + kBatch + r < count) prefetch_visit<S>(rows, block, order[begin + kBatch + r]);
        }
        multiply_batch<S>(x, n, vectors.width, block.vector_weights, z);
        int n_moved = 0;
        for (int r = 0; r < n; ++r) {
            Lanes<S>& step = steps[n_moved];
            if (!pass.visit(order[begin + r], &z[r], &step)) continue;
            moved[n_moved++] = x[r];
            correct_later<S>(x, stride, r, n, step, z);
        }
        if (n_moved > 0) add_batch<S>(moved, n_moved, vectors.width, steps, block.vector_weights);
    }
    return pass.finish();
}

template <int S, class Loss>
int64_t pass(const NodeRows& rows, const int32_t* order, int64_t count, const SiblingLanes& block,
             GradientSpread* spread, int32_t* restless) {
    if (rows.vectors.width > 0) return pass_in_batches<S, Loss>(rows, order, count, block, spread, restless);
    Pass<S, Loss> pass(rows, block, spread, restless);
    Lanes<S> step;
    for (int64_t visit = 0; visit < count; ++visit) {
        if (visit + 2 < count) prefetch_row(rows, order[visit + 2]);
        pass.visit(order[visit], nullptr, &step);
    }
    return pass.finish();
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
const SolverKernels solver_kernels = {
    pass_of<SquaredHinge>, pass_of<Logistic>, larger_entries, square, add_vector, dot};

}  // namespace labelwood::simd::LABELWOOD_ISA
