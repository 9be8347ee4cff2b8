// The hot loops of a graph forest's cuts, once per instruction set; see simd/solver.hpp.
#pragma once

#include <cstdint>

#include "simd/solver.hpp"

namespace labelwood::simd {

// The state of a cut in training (forest/graph/cut.hpp) on a node's own features. Arrays over features are
// padded with zeros to whole vectors of kMaxLanes.
struct CutState {
    float* weights;
    float* z;          // FTRL-Proximal's z, which determines the weights
    float* spread;     // root of the sum of squared gradients
    float* gradient;   // zero between steps
    float* margins;    // one per partner of an example, padded
    int32_t* touched;  // room for the features of one step; null where visiting all features is cheaper
    int64_t n_features;
    float rate, beta, l1;
    const float* dense;  // [rows, width], the rows with their zeros; null where sparse rows are cheaper
    int64_t width;       // n_features, padded
};

struct CutKernels {
    // w . x for one row.
    float (*row_dot)(const NodeRows&, int32_t row, const float* weights);
    // One step on an example: draws its first n_near partners to its side, and the other n - n_near to the
    // other side.
    void (*step)(const NodeRows&, int32_t example, const int32_t* partners, int32_t n_near, int32_t n, const CutState&);
};

const CutKernels& cut();

}  // namespace labelwood::simd
