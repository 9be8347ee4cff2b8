// Compiled once per instruction set; see simd/forest/ldsm.hpp.
#include "simd/forest/ldsm.hpp"

#include "simd/lanes.hpp"

namespace labelwood::simd::LABELWOOD_ISA {
namespace {

using F = Native<kNative>::F;

// One feature: its weights or its squares.
template <int P>
using Lane = typename Native<P>::F;

// The structs are copied, so that the compiler knows that no store changes them.
template <int P>
void fetch_row(const Regressors all, const int32_t* features, const float* values, int64_t count,
               const RowRegressors row, float* margins) {
    using L = Lane<P>;
    auto copy = [&](int64_t at, int64_t feature, float value, float scale) {
        const float* record = all.records + feature * 2 * P;
        const L weights = load<L>(record);
        store(row.weights + at * P, weights);
        store(row.squares + at * P, load<L>(record + P));
        for (int lane = 0; lane < P; ++lane) {
            row.values[at * P + lane] = value;
            row.scales[at * P + lane] = scale;
        }
        return weights * value;
    };
    L sum = copy(0, all.bias, 1.0f, 1.0f);
    if (all.scales == nullptr) {
        for (int64_t i = 0; i < count; ++i) sum += copy(i + 1, features[i], values[i], 1.0f);
    } else {
        for (int64_t i = 0; i < count; ++i) sum += copy(i + 1, features[i], values[i], all.scales[features[i]]);
    }
    store(margins, sum);
}

// Moves one vector of the row's part, and writes the products of which the margins are sums.
template <bool Adaptive>
inline void move(const RowRegressors& row, int64_t at, F gradient, F rate, F tiny) {
    const F values = load<F>(row.values + at);
    const F d = gradient * values;
    F weights = load<F>(row.weights + at);
    if constexpr (Adaptive) {
        const F squares = load<F>(row.squares + at) + d * d;
        store(row.squares + at, squares);
        weights -= rate * d / (load<F>(row.scales + at) * square_root(squares + tiny));
    } else {
        weights -= rate * d;
    }
    store(row.weights + at, weights);
    store(row.products + at, values * weights);
}

// The additions of one block wait for each other, and the moves of the next block fill the time.
template <int P, bool Adaptive>
void step_row(const Regressors all, const int32_t* features, int64_t count, const RowRegressors row, const Step& step,
              float* margins) {
    using L = Lane<P>;
    constexpr int64_t kBlock = 16 / P;
    L sum{};
    auto put = [&](int64_t at, int64_t feature) {
        sum += load<L>(row.products + at * P);
        float* record = all.records + feature * 2 * P;
        store(record, load<L>(row.weights + at * P));
        if constexpr (Adaptive) store(record + P, load<L>(row.squares + at * P));
    };
    const F rate = splat<F>(step.rate), tiny = splat<F>(step.tiny);
    F gradient[size_t{16 / kNative}];
    for (int n = 0; n < 16 / kNative; ++n) gradient[n] = load<F>(step.gradient + n * kNative);
    const int64_t end = count + 1;
    for (int64_t from = 0; from < end; from += kBlock) {
        for (int n = 0; n < 16 / kNative; ++n) move<Adaptive>(row, from * P + n * kNative, gradient[n], rate, tiny);
        const int64_t to = from + kBlock < end ? from + kBlock : end;
        if (from == 0) put(0, all.bias);
        for (int64_t i = from == 0 ? 1 : from; i < to; ++i) put(i, features[i - 1]);
    }
    store(margins, sum);
}

void fetch(const Regressors& all, const int32_t* features, const float* values, int64_t count, const RowRegressors& row,
           float* margins) {
    if (all.lanes == 2) return fetch_row<2>(all, features, values, count, row, margins);
    if (all.lanes == 4) return fetch_row<4>(all, features, values, count, row, margins);
    fetch_row<8>(all, features, values, count, row, margins);
}

template <bool Adaptive>
void step_of(const Regressors& all, const int32_t* features, int64_t count, const RowRegressors& row, const Step& step,
             float* margins) {
    if (all.lanes == 2) return step_row<2, Adaptive>(all, features, count, row, step, margins);
    if (all.lanes == 4) return step_row<4, Adaptive>(all, features, count, row, step, margins);
    step_row<8, Adaptive>(all, features, count, row, step, margins);
}

void step(const Regressors& all, const int32_t* features, int64_t count, const RowRegressors& row, const Step& step,
          float* margins) {
    if (step.adaptive) return step_of<true>(all, features, count, row, step, margins);
    step_of<false>(all, features, count, row, step, margins);
}

}  // namespace

extern const LdsmKernels ldsm_kernels;
const LdsmKernels ldsm_kernels = {fetch, step};

}  // namespace labelwood::simd::LABELWOOD_ISA
