// Online logistic regression with AdaGrad on a block of siblings, once per instruction set; see
// simd/solver.hpp.
//
// Compiled without fused multiply-add: a lane rounds the same wherever it lies in a block and on every
// machine. A copied or inverted classifier therefore equals, bit for bit, one that is trained in place.
#pragma once

#include <cstdint>

namespace labelwood::simd {

// A row holds the weights of `lanes` siblings, then their sums of squared gradients: 2 * lanes floats.
// `lanes` is 4, 8 or a multiple of 16.
struct OnlineKernels {
    // margins[lane] = sum_i values[i] * rows[i][lane], added in the order of the rows.
    void (*margins)(const float* const* rows, const float* values, int64_t count, int32_t lanes, float* margins);
    // gradients[lane] = -sign / (1 + exp(sign * margin)): flipping sign and margin flips the gradient,
    // exactly.
    void (*gradients)(const float* margins, const float* signs, int32_t lanes, float* gradients);
    // AdaGrad on every row: d = gradient * value, sum += d * d, weight -= rate * d / (sqrt(sum + inside) + outside).
    void (*update)(float* const* rows, const float* values, int64_t count, const float* gradients, int32_t lanes,
                   float rate, float inside, float outside);
};

const OnlineKernels& online();

}  // namespace labelwood::simd
