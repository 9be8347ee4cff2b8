// One step of a cut's optimiser, compiled once per instruction set; see simd/solver.hpp.
#include "simd/forest/cut.hpp"

#include "simd/lanes.hpp"

namespace labelwood::simd::LABELWOOD_ISA {
namespace {

using F = Native<kNative>::F;
using I = Native<kNative>::I;

inline F gather(const float* dense, const int32_t* at) {
#if defined(__AVX512F__)
    // With a full mask over zeros: the plain form waits for the register's previous value.
    const __m512i ids = _mm512_loadu_si512(at);
    const __m512 there = _mm512_mask_i32gather_ps(_mm512_setzero_ps(), 0xffff, ids, dense, 4);
    return reinterpret_cast<F>(there);
#elif defined(__AVX2__)
    const __m256i ids = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
    return reinterpret_cast<F>(_mm256_i32gather_ps(dense, ids, 4));
#else
    F v;
    for (int n = 0; n < kNative; ++n) v[n] = dense[at[n]];
    return v;
#endif
}

// AVX-512 estimates to 14 bits; one Newton step doubles the bits at a fifth of the cost of the exact
// instructions. The floor avoids 0 / 0 in the root of zero.
inline F root(F v) {
#if defined(__AVX512F__)
    const F positive = larger(v, splat<F>(1e-30f));
    const F guess = reinterpret_cast<F>(_mm512_maskz_rsqrt14_ps(0xffff, reinterpret_cast<__m512>(positive)));
    return v * guess * (1.5f - 0.5f * positive * guess * guess);
#elif defined(__AVX2__)
    return reinterpret_cast<F>(_mm256_sqrt_ps(reinterpret_cast<__m256>(v)));
#else
    for (int n = 0; n < kNative; ++n) v[n] = __builtin_sqrtf(v[n]);
    return v;
#endif
}

inline F quotient(F a, F b) {
#if defined(__AVX512F__)
    const F guess = reinterpret_cast<F>(_mm512_maskz_rcp14_ps(0xffff, reinterpret_cast<__m512>(b)));
    return a * guess * (2.0f - b * guess);
#else
    return a / b;
#endif
}

inline float total(F v) {
    typedef float Quad __attribute__((vector_size(16)));
    float lanes[kNative];
    store(lanes, v);
    Quad sums = load<Quad>(lanes);
    for (int n = 4; n < kNative; n += 4) sums += load<Quad>(lanes + n);
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

float row_dot(const NodeRows& rows, int32_t row, const float* weights) {
    const int64_t end = rows.indptr[row + 1];
    int64_t j = rows.indptr[row];
    F even{}, odd{};
    for (; j + 2 * kNative <= end; j += 2 * kNative) {
        even += load<F>(rows.values + j) * gather(weights, rows.features + j);
        odd += load<F>(rows.values + j + kNative) * gather(weights, rows.features + j + kNative);
    }
    if (j + kNative <= end) {
        even += load<F>(rows.values + j) * gather(weights, rows.features + j);
        j += kNative;
    }
    float rest = 0.0f;
#if defined(__AVX512F__)
    const auto mask = static_cast<__mmask16>((1u << (end - j)) - 1u);
    const __m512i ids = _mm512_maskz_loadu_epi32(mask, rows.features + j);
    const __m512 there = _mm512_mask_i32gather_ps(_mm512_setzero_ps(), mask, ids, weights, 4);
    odd += reinterpret_cast<F>(_mm512_mul_ps(_mm512_maskz_loadu_ps(mask, rows.values + j), there));
#else
    for (; j < end; ++j) rest += rows.values[j] * weights[rows.features[j]];
#endif
    return rest + total(even + odd);
}

inline void scatter(float* dense, const int32_t* at, F v) {
#if defined(__AVX512F__)
    _mm512_i32scatter_ps(dense, _mm512_loadu_si512(at), reinterpret_cast<__m512>(v), 4);
#else
    for (int n = 0; n < kNative; ++n) dense[at[n]] = v[n];
#endif
}

// Partners are drawn at random, so the hardware does not prefetch their rows.
inline void prefetch(const NodeRows& rows, int32_t row) {
    const int64_t end = rows.indptr[row + 1];
    for (int64_t j = rows.indptr[row]; j < end; j += 16) {
        __builtin_prefetch(rows.features + j);
        __builtin_prefetch(rows.values + j);
    }
}

// One vector of FTRL-Proximal with AdaGrad rates per coordinate. A zero gradient changes nothing.
struct Coordinates {
    F z, spread, weights;

    void step(F g, const CutState& s, float per_rate) {
        const F grown = g == 0.0f ? spread : root(spread * spread + g * g);
        z += g - (grown - spread) * per_rate * weights;
        const F beyond = magnitude(z) - s.l1;
        const F size = quotient(beyond, (s.beta + grown) * per_rate);
        const F against = z > 0.0f ? -size : size;
        spread = grown;
        weights = beyond > 0.0f ? against : F{};
    }
};

void step_all(const CutState& s) {
    const float per_rate = 1.0f / s.rate;
    for (int64_t f = 0; f < s.n_features; f += kNative) {  // the arrays are padded to whole vectors
        Coordinates c{load<F>(s.z + f), load<F>(s.spread + f), load<F>(s.weights + f)};
        c.step(load<F>(s.gradient + f), s, per_rate);
        store(s.z + f, c.z);
        store(s.spread + f, c.spread);
        store(s.weights + f, c.weights);
        store(s.gradient + f, F{});
    }
}

// A feature is listed twice if its gradient passed zero. The second visit then finds a zero gradient, or both
// are lanes of one vector and write the same values.
void step_touched(const CutState& s, int64_t count) {
    const float per_rate = 1.0f / s.rate;
    while (count % kNative != 0) s.touched[count++] = s.touched[0];
    for (int64_t i = 0; i < count; i += kNative) {
        const int32_t* at = s.touched + i;
        Coordinates c{gather(s.z, at), gather(s.spread, at), gather(s.weights, at)};
        c.step(gather(s.gradient, at), s, per_rate);
        scatter(s.z, at, c.z);
        scatter(s.spread, at, c.spread);
        scatter(s.weights, at, c.weights);
        scatter(s.gradient, at, F{});
    }
}

// Derivatives of the partners' terms by their margins, with the sign they have in the gradient; dot(row) is
// w.x of a row.
template <class Dot>
inline void slopes(int32_t example, const int32_t* partners, int32_t n_near, int32_t n, const CutState& s, Dot&& dot) {
    const float side = dot(example) >= 0.0f ? 1.0f : -1.0f;
    for (int32_t p = 0; p < n; ++p) s.margins[p] = (p < n_near ? side : -side) * dot(partners[p]);
    for (int32_t p = 0; p < n; p += kNative) {
        store(s.margins + p, 1.0f / (1.0f + exponential<F, I>(load<F>(s.margins + p))));
    }
    for (int32_t p = 0; p < n; ++p) {
        if ((p < n_near) == (side > 0.0f)) s.margins[p] = -s.margins[p];
    }
}

inline float dense_dot(const float* row, const float* weights, int64_t width) {
    F even{}, odd{};
    int64_t f = 0;
    for (; f + 2 * kNative <= width; f += 2 * kNative) {
        even += load<F>(row + f) * load<F>(weights + f);
        odd += load<F>(row + f + kNative) * load<F>(weights + f + kNative);
    }
    if (f < width) even += load<F>(row + f) * load<F>(weights + f);
    return total(even + odd);
}

// Keeps the gradient of N vectors of features in registers from the first partner to the step.
template <int N>
inline void step_features(const int32_t* partners, int32_t n, int64_t f, const CutState& s) {
    F gradient[size_t{N}] = {};
    for (int32_t p = 0; p < n; ++p) {
        const float* row = s.dense + partners[p] * s.width + f;
        for (int i = 0; i < N; ++i) gradient[i] += s.margins[p] * load<F>(row + i * kNative);
    }
    const float per_rate = 1.0f / s.rate;
    for (int i = 0; i < N; ++i, f += kNative) {
        Coordinates c{load<F>(s.z + f), load<F>(s.spread + f), load<F>(s.weights + f)};
        c.step(gradient[i], s, per_rate);
        store(s.z + f, c.z);
        store(s.spread + f, c.spread);
        store(s.weights + f, c.weights);
    }
}

void dense_step(int32_t example, const int32_t* partners, int32_t n_near, int32_t n, const CutState& s) {
    slopes(example, partners, n_near, n, s,
           [&](int32_t row) { return dense_dot(s.dense + row * s.width, s.weights, s.width); });
    int64_t f = 0;
    for (; f + 4 * kNative <= s.width; f += 4 * kNative) step_features<4>(partners, n, f, s);
    for (; f < s.width; f += kNative) step_features<1>(partners, n, f, s);
}

void cut_step(const NodeRows& rows, int32_t example, const int32_t* partners, int32_t n_near, int32_t n,
              const CutState& s) {
    if (s.dense != nullptr) return dense_step(example, partners, n_near, n, s);
    for (int32_t p = 0; p < n; ++p) prefetch(rows, partners[p]);
    slopes(example, partners, n_near, n, s, [&](int32_t row) { return row_dot(rows, row, s.weights); });
    int64_t count = 0;
    for (int32_t p = 0; p < n; ++p) {
        const float slope = s.margins[p];
        const int64_t end = rows.indptr[partners[p] + 1];
        for (int64_t j = rows.indptr[partners[p]]; j < end; ++j) {
            float& cell = s.gradient[rows.features[j]];
            if (s.touched != nullptr) {
                s.touched[count] = rows.features[j];
                count += cell == 0.0f;
            }
            cell += slope * rows.values[j];
        }
    }
    if (s.touched == nullptr) return step_all(s);
    if (count > 0) step_touched(s, count);
}

}  // namespace

extern const CutKernels cut_kernels;
const CutKernels cut_kernels = {row_dot, cut_step};

}  // namespace labelwood::simd::LABELWOOD_ISA
