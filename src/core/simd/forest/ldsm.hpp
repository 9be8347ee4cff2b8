// The hot loops of an LdSM node's regressors, once per instruction set; see simd/solver.hpp.
//
// Compiled without fused multiply-add, and margins are summed in the order of the columns: every instruction set
// gives the same bits.
#pragma once

#include <cstdint>

namespace labelwood::simd {

// The regressors of a node: a record per feature, the last one for the bias. A record holds one weight per child,
// then as many sums of squared gradients: 2 * lanes floats, where lanes is 2, 4 or 8.
struct Regressors {
    float* records;
    const float* scales;  // by feature; null: all 1
    int64_t bias;         // number of the bias's record
    int32_t lanes;
};

// One row's part of the regressors, its features side by side and the bias first. Every array has `lanes` floats
// per feature and room for whole vectors of kMaxLanes.
struct RowRegressors {
    float *weights, *squares;
    float *values, *scales;  // of a feature, repeated for every lane
    float* products;
};

struct Step {
    const float* gradient;  // of the loss by the margins: kMaxLanes floats, repeated after `lanes`
    float rate;
    float tiny;     // avoids a division by zero if all gradients are zero
    bool adaptive;  // else a plain gradient step
};

struct LdsmKernels {
    // Copies the row's part and writes its margins, values . weights.
    void (*fetch)(const Regressors&, const int32_t* features, const float* values, int64_t count, const RowRegressors&,
                  float* margins);
    // One step on the row's part, written back to the regressors. Writes the margins after it.
    void (*step)(const Regressors&, const int32_t* features, int64_t count, const RowRegressors&, const Step&,
                 float* margins);
};

const LdsmKernels& ldsm();

}  // namespace labelwood::simd
