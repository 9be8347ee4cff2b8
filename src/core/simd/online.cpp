// Compiled once per instruction set; see simd/online.hpp.
#include "simd/online.hpp"

#include "simd/lanes.hpp"

namespace labelwood::simd::LABELWOOD_ISA {
namespace {

// Keeps the margins of S lanes from `first` on in registers over all rows.
template <int S>
void margins_of(const float* const* rows, const float* values, int64_t count, int32_t first, float* out) {
    using L = Lanes<S>;
    using F = typename L::F;
    L sum{};
    for (int64_t i = 0; i < count; ++i) {
        for (int n = 0; n < L::N; ++n) sum.v[n] += values[i] * load<F>(rows[i] + first + n * L::W);
    }
    for (int n = 0; n < L::N; ++n) store(out + first + n * L::W, sum.v[n]);
}

void margins(const float* const* rows, const float* values, int64_t count, int32_t lanes, float* out) {
    if (lanes == 4) return margins_of<4>(rows, values, count, 0, out);
    if (lanes == 8) return margins_of<8>(rows, values, count, 0, out);
    int32_t c = 0;
    // 64 lanes are four cache lines of a row, and four AVX-512 accumulators.
    for (; c + 64 <= lanes; c += 64) margins_of<64>(rows, values, count, c, out);
    for (; c < lanes; c += 16) margins_of<16>(rows, values, count, c, out);
}

template <int S>
void gradients_of(const float* margins, const float* signs, int32_t lanes, float* out) {
    using L = Lanes<S>;
    using F = typename L::F;
    for (int32_t c = 0; c < lanes; c += L::W) {
        const F sign = load<F>(signs + c);
        store(out + c, -sign / (1.0f + exponential<F, typename L::I>(sign * load<F>(margins + c))));
    }
}

void gradients(const float* margins, const float* signs, int32_t lanes, float* out) {
    if (lanes == 4) return gradients_of<4>(margins, signs, lanes, out);
    if (lanes == 8) return gradients_of<8>(margins, signs, lanes, out);
    gradients_of<16>(margins, signs, lanes, out);
}

template <int S>
void update_rows(float* const* rows, const float* values, int64_t count, const float* gradients, int32_t lanes,
                 float rate, float inside, float outside) {
    using L = Lanes<S>;
    using F = typename L::F;
    for (int64_t i = 0; i < count; ++i) {
        float* weights = rows[i];
        float* sums = rows[i] + lanes;
        for (int32_t c = 0; c < lanes; c += L::W) {
            const F step = load<F>(gradients + c) * values[i];
            const F sum = load<F>(sums + c) + step * step;
            store(sums + c, sum);
            store(weights + c, load<F>(weights + c) - rate * step / (square_root(sum + inside) + outside));
        }
    }
}

void update(float* const* rows, const float* values, int64_t count, const float* gradients, int32_t lanes, float rate,
            float inside, float outside) {
    if (lanes == 4) return update_rows<4>(rows, values, count, gradients, lanes, rate, inside, outside);
    if (lanes == 8) return update_rows<8>(rows, values, count, gradients, lanes, rate, inside, outside);
    update_rows<16>(rows, values, count, gradients, lanes, rate, inside, outside);
}

}  // namespace

extern const OnlineKernels online_kernels;
const OnlineKernels online_kernels = {margins, gradients, update};

}  // namespace labelwood::simd::LABELWOOD_ISA
