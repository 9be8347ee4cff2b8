// Dual coordinate descent for the siblings of a node, a block of lanes at a time.
//
//   min_w  1/2 |w|^2 + C sum_i loss(y_i (w.x_i + offset))
//
// Hsieh et al. 2008 (squared hinge), Yu et al. 2011 (logistic). Siblings share their rows, so one visit to a
// row serves all lanes of a block: every non-zero meets one contiguous row of weights.
//
// Intercepts start at `offset` (-1: most labels are rare) and are learned through a constant feature of value
// `bias`. A negative row of a rare label then lies exactly on its margin until the features of a positive row
// reach it, and needs no update. So the first passes visit the rows that are positive in any lane. Then full
// passes alternate with partial passes over the rows that the last pass updated, until these settle. Only a
// full pass finishes a lane. With a coarse tolerance, full passes after the first skip the rows whose alpha
// is 0 in every lane: most of them were visited once and found on the right side.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "base/csr.hpp"
#include "base/parallel.hpp"
#include "base/rng.hpp"
#include "base/span.hpp"
#include "label_tree/node_problem.hpp"
#include "label_tree/row_window.hpp"
#include "memory/allocators.hpp"
#include "simd/solver.hpp"

namespace labelwood::label_tree {

enum class Loss : int { kSquaredHinge = 0, kLogistic = 1 };

struct SolverOptions {
    Loss loss;
    float cost;       // C
    float tolerance;  // a sibling stops when its projected gradients spread less than this
    float skip;       // coordinates with gradients below this share of the tolerance are skipped
    int max_passes;   // full and partial ones
    float bias;
    float offset;
};

// Buffers of one worker, kept between nodes.
struct SolverScratch {
    memory::AlignedVector<float> weights, duals;
    memory::AlignedVector<float> vector_weights, batch;
    Vector<uint16_t> masks;
    Vector<int32_t> order;
    Vector<int32_t> large;         // features of a finished block with a weight to keep
    Vector<uint16_t> large_lanes;  // and in which lanes
    RowWindow window;
    int64_t weight_bytes = 0;  // moved between memory and registers so far
};

// Siblings that finished in one pass. The weight of lane l for compacted feature f is weights[f * width + l],
// the bias last, and for column j of the vectors vector_weights[j * width + l]; lane l is child[l].
struct Finished {
    const float* weights;
    const float* vector_weights;
    int width;
    uint16_t lanes;  // bit l set: lane l has finished
    const int32_t* child;

    template <class Visit>
    void each(Visit&& visit) const {
        for (int lane = 0; lane < width; ++lane) {
            if ((lanes >> lane & 1) != 0) visit(lane, child[lane]);
        }
    }
};

// Partial passes between two full passes, at most.
constexpr int kPartialPasses = 2;

// From this tolerance on, a row is trusted to stay on the side where a full pass found it.
constexpr float kCoarse = 0.5f;

// One block of at most kMaxLanes siblings in training.
class BlockSolver {
  public:
    // `positives`: for each child of the node the rows that are positive, as numbers within the problem.
    BlockSolver(const NodeProblem& problem, const RowLists& positives, const SolverOptions& options,
                SolverScratch& scratch)
        : problem_(problem),
          rows_(problem.rows()),
          positives_(positives),
          options_(options),
          scratch_(scratch),
          n_rows_(rows_.n_rows),
          n_weights_(problem.n_features() + (options.bias != 0.0f ? 1 : 0)),
          n_columns_(rows_.vectors.width),
          // The dual of the logistic loss starts at a logit so low that its alpha is 0 in float.
          initial_(options.loss == Loss::kLogistic ? -80.0f : 0.0f) {}

    // Solves the children and calls sink(Finished) whenever some are done.
    template <class Sink>
    void run(const int32_t* children, int n_siblings, uint64_t seed, Monitor& monitor, Sink&& sink) {
        start(children, n_siblings);
        const auto pass =
            options_.loss == Loss::kLogistic ? simd::solver().logistic_pass : simd::solver().squared_hinge_pass;
        Rng rng(seed, static_cast<uint64_t>(children[0]));
        bool full = false, seen = false;
        int partial = 0;
        int64_t n_visits = positive_rows();
        for (int passes = 1; active_ != 0; ++passes) {
            monitor.check();
            if (full) {
                n_visits = seen && options_.tolerance >= kCoarse ? held_rows() : all_rows();
                seen = true;
            }
            rng.shuffle(scratch_.order.data(), n_visits);
            const simd::SiblingLanes block{lanes_,
                                           scratch_.weights.data(),
                                           scratch_.duals.data(),
                                           scratch_.masks.data(),
                                           active_,
                                           options_.cost,
                                           options_.offset,
                                           options_.skip * options_.tolerance,
                                           scratch_.vector_weights.data(),
                                           scratch_.batch.data()};
            simd::GradientSpread spread;
            n_visits = visit(pass, n_visits, block, &spread);
            scratch_.weight_bytes += (spread.read + 2 * spread.written) * lanes_ * int64_t{sizeof(float)};
            const bool last = passes >= options_.max_passes;
            bool settled = true;
            unsigned done = 0;
            for (int lane = 0; lane < lanes_; ++lane) {
                if (!is_active(lane)) continue;
                const bool converged = gap(spread, lane) <= options_.tolerance;
                settled &= converged;
                if (!last && !(full && converged)) continue;
                monitor.add(rows_.indptr[n_rows_] + n_rows_ * n_columns_);
                done |= 1u << lane;
            }
            if (done != 0) {
                sink(Finished{scratch_.weights.data(), scratch_.vector_weights.data(), lanes_,
                              static_cast<uint16_t>(done), child_of_});
            }
            active_ = static_cast<uint16_t>(active_ & ~done);
            narrow();
            partial = full ? 0 : partial + 1;
            full = settled || n_visits == 0 || partial == kPartialPasses;
        }
    }

  private:
    // One pass over the first n_visits rows of the order: all at once, or window by window if they are not
    // held.
    template <class Pass>
    int64_t visit(Pass pass, int64_t n_visits, const simd::SiblingLanes& block, simd::GradientSpread* spread) {
        int32_t* order = scratch_.order.data();
        if (problem_.is_held()) return pass(rows_, order, n_visits, block, spread, order);
        std::fill_n(spread->highest, simd::kMaxLanes, -1e30f);
        std::fill_n(spread->lowest, simd::kMaxLanes, 1e30f);
        spread->read = spread->written = 0;
        int64_t n_restless = 0;
        for (int64_t start = 0, count; start < n_visits; start += count) {
            count = scratch_.window.gather(problem_, order + start, n_visits - start);
            simd::GradientSpread part;
            n_restless += pass(scratch_.window.rows(problem_), order + start, count, block, &part, order + n_restless);
            for (int lane = 0; lane < lanes_; ++lane) {
                spread->highest[lane] = std::max(spread->highest[lane], part.highest[lane]);
                spread->lowest[lane] = std::min(spread->lowest[lane], part.lowest[lane]);
            }
            spread->read += part.read;
            spread->written += part.written;
        }
        return n_restless;
    }

    bool is_active(int lane) const { return (active_ >> lane & 1) != 0; }

    void start(const int32_t* children, int n_siblings) {
        lanes_ = n_siblings <= 4 ? 4 : n_siblings <= 8 ? 8 : simd::kMaxLanes;
        scratch_.weights.assign(n_weights_ * lanes_, 0.0f);
        scratch_.duals.assign(n_rows_ * lanes_, initial_);
        scratch_.vector_weights.assign(n_columns_ * lanes_, 0.0f);
        scratch_.batch.resize(n_columns_ > 0 ? simd::kBatch * padded(n_columns_) : 0);
        scratch_.order.resize(n_rows_);
        std::copy(children, children + n_siblings, child_of_);
        mark(n_siblings);
    }

    // Sets the bits of the first `count` lanes' positive rows and makes just these lanes active.
    void mark(int count) {
        scratch_.masks.assign(n_rows_, 0);
        for (int lane = 0; lane < count; ++lane) {
            for (const int32_t row : positives_[child_of_[lane]]) {
                uint16_t& mask = scratch_.masks[row];
                mask = static_cast<uint16_t>(mask | 1u << lane);
            }
        }
        active_ = static_cast<uint16_t>((1u << count) - 1);
    }

    // Puts the wanted rows into the order and returns their number.
    template <class Wanted>
    int64_t rows_where(Wanted&& wanted) {
        int64_t count = 0;
        for (int64_t row = 0; row < n_rows_; ++row) {
            if (wanted(row)) scratch_.order[count++] = static_cast<int32_t>(row);
        }
        return count;
    }

    int64_t all_rows() {
        return rows_where([](int64_t) { return true; });
    }

    // Rows that are positive in any lane.
    int64_t positive_rows() {
        return rows_where([&](int64_t row) { return scratch_.masks[row] != 0; });
    }

    // Rows with an alpha above 0 in a lane that is still in training.
    int64_t held_rows() {
        float least[simd::kMaxLanes];
        for (int lane = 0; lane < lanes_; ++lane) {
            least[lane] = is_active(lane) ? initial_ : std::numeric_limits<float>::infinity();
        }
        return rows_where([&](int64_t row) {
            const float* duals = scratch_.duals.data() + row * lanes_;
            unsigned held = 0;
            for (int lane = 0; lane < lanes_; ++lane) held |= static_cast<unsigned>(duals[lane] > least[lane]);
            return held != 0;
        });
    }

    // LIBLINEAR's stopping rules: the spread of projected gradients, or for the logistic loss the largest in
    // size.
    float gap(const simd::GradientSpread& spread, int lane) const {
        return options_.loss == Loss::kLogistic ? std::max(spread.highest[lane], -spread.lowest[lane])
                                                : spread.highest[lane] - spread.lowest[lane];
    }

    // Moves the active lanes to the front of a narrower block, if at most half of the lanes are active.
    void narrow() {
        int source[simd::kMaxLanes], kept = 0;
        for (int lane = 0; lane < lanes_; ++lane) {
            if (is_active(lane)) source[kept++] = lane;
        }
        int width = lanes_;
        while (width > 4 && kept <= width / 2) width /= 2;
        if (kept == 0 || width == lanes_) return;
        squeeze(scratch_.weights, n_weights_, source, kept, width, 0.0f);
        squeeze(scratch_.duals, n_rows_, source, kept, width, initial_);
        squeeze(scratch_.vector_weights, n_columns_, source, kept, width, 0.0f);
        for (int lane = 0; lane < kept; ++lane) child_of_[lane] = child_of_[source[lane]];
        lanes_ = width;
        mark(kept);
    }

    // In place: a row never moves past its old position.
    void squeeze(memory::AlignedVector<float>& array, int64_t count, const int* source, int kept, int width,
                 float blank) const {
        for (int64_t i = 0; i < count; ++i) {
            float held[simd::kMaxLanes];
            for (int k = 0; k < kept; ++k) held[k] = array[i * lanes_ + source[k]];
            for (int k = kept; k < width; ++k) held[k] = blank;
            for (int k = 0; k < width; ++k) array[i * width + k] = held[k];
        }
    }

    const NodeProblem& problem_;
    const simd::NodeRows rows_;
    const RowLists& positives_;
    const SolverOptions& options_;
    SolverScratch& scratch_;
    const int64_t n_rows_, n_weights_, n_columns_;  // n_columns_: of the vectors
    const float initial_;
    int lanes_ = 0;
    uint16_t active_ = 0;
    int32_t child_of_[simd::kMaxLanes];
};

}  // namespace labelwood::label_tree
