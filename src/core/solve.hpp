// Dual coordinate descent for all siblings of a node, a block of lanes at a time.
//
//   min_w  1/2 |w|^2 + C sum_i loss(y_i w.x_i)          Hsieh et al. 2008 (squared hinge), Yu et al. 2011
//   (logistic)
//
// Siblings see the same rows, so one visit to a row serves all lanes of a block: its non-zeros are streamed
// once, each meeting a contiguous row of weights. A lane that has converged is written out and refilled with
// the next sibling of its group; when none is left and half the lanes are idle, the block is repacked to half
// its width. The visiting order of pass p is a function of (seed, group, p) and a group of (node) alone:
// threads cannot change it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "common.hpp"
#include "node_problem.hpp"
#include "parallel.hpp"
#include "simd.hpp"

namespace labelwood {

enum class Loss : int { kSquaredHinge = 0, kLogistic = 1 };

struct SolverOptions {
    Loss loss;
    float cost;       // C
    float tolerance;  // a sibling stops when its projected gradients spread less than this
    float skip;       // share of the tolerance below which a coordinate is left alone
    int max_passes;
    float bias;
    float offset;
};

// Which rows are positive for each child of the node: child c has rows positive_rows[positive_ptr[c]..] (row
// numbers within the problem).
struct Positives {
    std::vector<int64_t> ptr;
    std::vector<int32_t> rows;
};

// Buffers of one worker, kept between nodes.
struct SolverSpace {
    std::vector<float> weights, duals;
    std::vector<uint16_t> masks;
    std::vector<int32_t> order;
};

// Solves the given children and calls sink(child, column, stride) with each finished weight column:
// weight of compacted feature f at column[f * stride], the bias weight last.
template <class Sink>
void solve_group(const NodeProblem& problem, const Positives& positives, const int32_t* children,
                 int32_t n_siblings, const SolverOptions& options, uint64_t seed, SolverSpace& space,
                 Monitor& monitor, Sink&& sink) {
    const NodeRows rows = problem.rows();
    const auto n_rows = static_cast<size_t>(rows.n_rows);
    const auto n_weights = static_cast<size_t>(problem.n_features() + (options.bias != 0.0f ? 1 : 0));
    int lanes = n_siblings <= 4 ? 4 : n_siblings <= 8 ? 8 : kMaxLanes;
    // A logit so low that its alpha is 0 in float: where the dual of the logistic loss starts.
    const float initial = options.loss == Loss::kLogistic ? -80.0f : 0.0f;
    const auto pass = options.loss == Loss::kLogistic ? simd().logistic_pass : simd().squared_hinge_pass;

    space.weights.assign(n_weights * static_cast<size_t>(lanes), 0.0f);
    space.duals.assign(n_rows * static_cast<size_t>(lanes), initial);
    space.masks.assign(n_rows, 0);
    space.order.resize(n_rows);
    for (size_t i = 0; i < n_rows; ++i) space.order[i] = static_cast<int32_t>(i);

    int32_t child_of[kMaxLanes];
    int passes_of[kMaxLanes] = {};
    uint16_t active = 0;
    int32_t next = 0;

    auto mark = [&](int32_t child, int lane, bool on) {
        const auto bit = static_cast<uint16_t>(1u << lane);
        for (int64_t j = positives.ptr[static_cast<size_t>(child)];
             j < positives.ptr[static_cast<size_t>(child) + 1]; ++j) {
            uint16_t& mask = space.masks[static_cast<size_t>(positives.rows[static_cast<size_t>(j)])];
            mask = static_cast<uint16_t>(on ? mask | bit : mask & ~bit);
        }
    };
    auto fill = [&](int lane) {
        child_of[lane] = children[next++];
        passes_of[lane] = 0;
        active = static_cast<uint16_t>(active | (1u << lane));
        mark(child_of[lane], lane, true);
    };
    auto wipe = [&](int lane) {
        for (size_t f = 0; f < n_weights; ++f) space.weights[f * static_cast<size_t>(lanes) + lane] = 0.0f;
        for (size_t i = 0; i < n_rows; ++i) space.duals[i * static_cast<size_t>(lanes) + lane] = initial;
    };
    // Moves the active lanes to the front of a block half as wide; in place, since targets never pass
    // sources.
    auto repack = [&] {
        const int narrow = lanes / 2;
        int source[kMaxLanes], kept = 0;
        for (int lane = 0; lane < lanes; ++lane) {
            if (active >> lane & 1) source[kept++] = lane;
        }
        auto squeeze = [&](std::vector<float>& array, size_t count, float blank) {
            for (size_t i = 0; i < count; ++i) {
                float held[kMaxLanes];
                for (int k = 0; k < kept; ++k) held[k] = array[i * static_cast<size_t>(lanes) + source[k]];
                for (int k = kept; k < narrow; ++k) held[k] = blank;
                for (int k = 0; k < narrow; ++k) array[i * static_cast<size_t>(narrow) + k] = held[k];
            }
        };
        squeeze(space.weights, n_weights, 0.0f);
        squeeze(space.duals, n_rows, initial);
        std::fill(space.masks.begin(), space.masks.end(), static_cast<uint16_t>(0));
        for (int k = 0; k < kept; ++k) {
            child_of[k] = child_of[source[k]];
            passes_of[k] = passes_of[source[k]];
            mark(child_of[k], k, true);
        }
        lanes = narrow;
        active = static_cast<uint16_t>((1u << kept) - 1);
    };

    for (int lane = 0; lane < lanes && next < n_siblings; ++lane) fill(lane);
    Rng rng(seed, static_cast<uint64_t>(children[0]));
    while (active != 0) {
        if (monitor.stopped()) throw Interrupted();
        rng.shuffle(space.order.data(), static_cast<int64_t>(n_rows));
        const Block block{lanes,  space.weights.data(), space.duals.data(), space.masks.data(),
                          active, options.cost,         options.offset,     options.skip * options.tolerance};
        Spread spread;
        pass(rows, space.order.data(), block, &spread);
        for (int lane = 0; lane < lanes; ++lane) {
            if (!(active >> lane & 1)) continue;
            // LIBLINEAR's rules: the spread of projected gradients, or for the logistic loss their largest
            // size.
            const float gap = options.loss == Loss::kLogistic
                                  ? std::max(spread.highest[lane], -spread.lowest[lane])
                                  : spread.highest[lane] - spread.lowest[lane];
            const bool converged = gap <= options.tolerance;
            if (++passes_of[lane] < options.max_passes && !converged) continue;
            sink(child_of[lane], space.weights.data() + lane, lanes);
            monitor.add(rows.indptr[n_rows]);
            mark(child_of[lane], lane, false);
            active = static_cast<uint16_t>(active & ~(1u << lane));
            if (next < n_siblings) {
                wipe(lane);
                fill(lane);
            }
        }
        int idle = lanes;
        for (int lane = 0; lane < lanes; ++lane) idle -= active >> lane & 1;
        while (active != 0 && lanes > 4 && idle * 2 >= lanes) {
            const int was = lanes;
            repack();
            idle -= was - lanes;
        }
    }
}

}  // namespace labelwood
