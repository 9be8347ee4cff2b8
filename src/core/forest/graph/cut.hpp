// The hyperplane of one node: maximises, example by example,
//
//     sum_{j in N_i} log s(c_i w.x_j) + sum_{j in S-} log s(-c_i w.x_j) - l1 |w|_1,   c_i = sign(w.x_i)
//
// with FTRL-Proximal and AdaGrad rates. The penalty is in the leader's objective once, not once per step. The
// 2k gradients of an example are taken at the same w and applied as one step. Features of few of the node's
// rows are left out: they separate those rows, not groups of rows.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

#include "base/csr.hpp"
#include "base/parallel.hpp"
#include "base/rng.hpp"
#include "base/span.hpp"
#include "forest/graph/label_graph.hpp"
#include "simd/forest/cut.hpp"

namespace labelwood::forest::graph {

enum class CutStart : int { rows = 0, zero = 1, gaussian = 2 };

struct CutOptions {
    int32_t n_negatives;
    bool match_negatives;  // as many negatives as neighbours, at most n_negatives
    int32_t epochs;
    float l1;
    float rate;
    float beta;       // AdaGrad rates are rate / (beta + root of the sum of squared gradients)
    float tolerance;  // stop when at most this share of the rows changes sides in an epoch
    CutStart start;
    int32_t feature_rows;  // features of fewer rows are left out
};

// The cuts of one worker. Buffers have an entry per feature.
class Cut {
  public:
    Cut(const Csr& x, const Monitor& monitor) : x_(x), monitor_(monitor), local_(x.n_cols, -1) {}

    // Copies the rows, without the features that occur in fewer than `feature_rows` of them.
    void load(const int32_t* rows, int32_t n, int32_t feature_rows) {
        features_.clear();
        ptr_.assign(1, 0);
        columns_.clear();
        values_.clear();
        for (int32_t i = 0; i < n; ++i) {
            for (int64_t j = x_.indptr[rows[i]]; j < x_.indptr[rows[i] + 1]; ++j) {
                if (++local_[x_.indices[j]] == 0) features_.push_back(x_.indices[j]);
            }
        }
        std::erase_if(features_, [&](int32_t feature) {
            int32_t& others = local_[feature];
            const bool rare = others + 1 < feature_rows;
            if (rare) others = -1;
            return rare;
        });
        std::sort(features_.begin(), features_.end());
        for (int64_t f = 0; f < features_.size(); ++f) {
            local_[features_[f]] = static_cast<int32_t>(f);
        }
        for (int32_t i = 0; i < n; ++i) {
            for (int64_t j = x_.indptr[rows[i]]; j < x_.indptr[rows[i] + 1]; ++j) {
                const int32_t id = local_[x_.indices[j]];
                if (id < 0) continue;
                columns_.push_back(id);
                values_.push_back(x_.data[j]);
            }
            ptr_.push_back(columns_.size());
        }
        for (const int32_t feature : features_) local_[feature] = -1;
        rows_ = {ptr_.data(), columns_.data(), values_.data(), nullptr, n, ptr_.data()};
        weights_.assign(padded(features_.size()), 0.0f);
    }

    // Rows without neighbours are not visited. They serve as negatives and get a side at the end.
    void train(const LabelGraph& graph, const CutOptions& options, Rng rng) {
        const auto n = static_cast<int32_t>(rows_.n_rows);
        begin(options, rng);
        order_.clear();
        int32_t most = 0;
        for (int32_t i = 0; i < n; ++i) {
            const auto degree = static_cast<int32_t>(degree_of(graph, i));
            if (degree > 0) order_.push_back(i);
            most = std::max(most, degree);
        }
        partners_.resize(most + options.n_negatives);
        margins_.assign(padded(partners_.size()), 0.0f);
        simd::CutState state{weights_.data(), z_.data(),    spread_.data(), gradient_.data(), margins_.data(), nullptr,
                             n_features(),    options.rate, options.beta,   options.l1,       nullptr,         0};
        if (!lay_out(&state)) make_room(partners_.size(), &state);
        sides(&before_);
        for (int32_t epoch = 0; epoch < options.epochs && !order_.empty(); ++epoch) {
            rng.shuffle(order_.data(), order_.size());
            for (const int32_t i : order_) {
                monitor_.check();
                visit(graph, i, options, rng, state);
            }
            sides(&after_);
            int64_t moved = 0;
            for (int64_t i = 0; i < after_.size(); ++i) moved += after_[i] != before_[i];
            before_.swap(after_);
            if (static_cast<double>(moved) <= static_cast<double>(options.tolerance) * n) break;
        }
    }

    // The hyperplane midway between two rows, which separates any two that differ; returns its bias. Rows of
    // equal length need no bias: rounding must not decide for rows that are far from both.
    float separate(int32_t a, int32_t b) {
        std::fill(weights_.begin(), weights_.end(), 0.0f);
        add_row(a, 1.0f);
        add_row(b, -1.0f);
        const float bias = 0.5f * (square(b) - square(a));
        return std::fabs(bias) < 1e-5f * square(a) ? 0.0f : bias;
    }

    // 1 for the rows on the positive side.
    void sides(Vector<uint8_t>* side, float bias = 0.0f) const {
        side->resize(rows_.n_rows);
        for (int32_t i = 0; i < rows_.n_rows; ++i) {
            (*side)[i] = simd::cut().row_dot(rows_, i, weights_.data()) + bias >= 0.0f;
        }
    }

    // Appends the nonzero weights by ascending column.
    void emit(Vector<int32_t>* columns, Vector<float>* values) const {
        for (int64_t f = 0; f < features_.size(); ++f) {
            if (weights_[f] == 0.0f) continue;
            columns->push_back(features_[f]);
            values->push_back(weights_[f]);
        }
    }

  private:
    static int64_t padded(int64_t count) { return (count + simd::kMaxLanes - 1) / simd::kMaxLanes * simd::kMaxLanes; }
    static int64_t degree_of(const LabelGraph& graph, int32_t i) { return graph.ptr[i + 1] - graph.ptr[i]; }
    int64_t n_features() const { return features_.size(); }

    void add_row(int32_t row, float factor) {
        for (int64_t j = ptr_[row]; j < ptr_[row + 1]; ++j) {
            weights_[columns_[j]] += factor * values_[j];
        }
    }

    float square(int32_t row) const {
        float sum = 0.0f;
        for (int64_t j = ptr_[row]; j < ptr_[row + 1]; ++j) {
            sum += values_[j] * values_[j];
        }
        return sum;
    }

    // The initial weights, and the z that yields them.
    void begin(const CutOptions& options, Rng& rng) {
        const auto n = static_cast<uint32_t>(rows_.n_rows);
        std::fill(weights_.begin(), weights_.end(), 0.0f);
        if (options.start == CutStart::rows && n > 1) {
            const uint32_t a = rng.below(n), b = rng.below(n - 1);
            add_row(static_cast<int32_t>(a), 1.0f);
            add_row(static_cast<int32_t>(b < a ? b : b + 1), -1.0f);
        } else if (options.start == CutStart::gaussian) {
            for (int64_t f = 0; f < features_.size(); ++f) {
                const double u = 1.0 - rng.uniform(), v = rng.uniform();
                weights_[f] = static_cast<float>(standard_normal(u, v));
            }
        }
        z_.resize(weights_.size());
        for (int64_t f = 0; f < weights_.size(); ++f) {
            const float w = weights_[f];
            z_[f] = w == 0.0f ? 0.0f : -w * (options.beta / options.rate) - std::copysign(options.l1, w);
        }
        spread_.assign(weights_.size(), 0.0f);
        gradient_.assign(weights_.size(), 0.0f);
    }

    // Dense rows are faster if rows are not too sparse and all of them fit in the cache.
    bool lay_out(simd::CutState* state) {
        const int64_t width = weights_.size(), n = rows_.n_rows;
        if (width * n > kDenseMost || width * n > kDenseWorth * columns_.size()) return false;
        dense_.assign(width * n, 0.0f);
        for (int64_t i = 0; i < n; ++i) {
            for (int64_t j = ptr_[i]; j < ptr_[i + 1]; ++j) {
                dense_[i * width + columns_[j]] = values_[j];
            }
        }
        state->dense = dense_.data();
        state->width = static_cast<int64_t>(width);
        return true;
    }

    // Visiting all features is a sequential pass; a list of touched features costs more per feature.
    void make_room(int64_t n_partners, simd::CutState* state) {
        int64_t longest = 0;
        for (int64_t i = 0; i + 1 < ptr_.size(); ++i) longest = std::max(longest, ptr_[i + 1] - ptr_[i]);
        const double touched =
            static_cast<double>(n_partners) * static_cast<double>(columns_.size()) / static_cast<double>(rows_.n_rows);
        if (static_cast<double>(n_features()) < kListWorth * touched) return;
        touched_.resize(padded((longest * n_partners) + 1));
        state->touched = touched_.data();
    }

    void visit(const LabelGraph& graph, int32_t i, const CutOptions& options, Rng& rng, const simd::CutState& state) {
        const auto n_near = static_cast<int32_t>(degree_of(graph, i));
        const int32_t n_negatives =
            options.match_negatives ? std::min(options.n_negatives, n_near) : options.n_negatives;
        std::copy_n(graph.neighbors.data() + graph.ptr[i], n_near, partners_.data());
        for (int32_t p = 0; p < n_negatives; ++p) {
            partners_[n_near + p] = static_cast<int32_t>(rng.below(static_cast<uint32_t>(rows_.n_rows)));
        }
        simd::cut().step(rows_, i, partners_.data(), n_near, n_near + n_negatives, state);
    }

    static constexpr double kListWorth = 2.0;
    static constexpr int64_t kDenseMost = int64_t{1} << 17, kDenseWorth = 20;

    const Csr x_;
    const Monitor& monitor_;
    Vector<int32_t> local_;  // number of a feature within the node; -1 between uses
    Vector<int32_t> features_, columns_, order_, partners_, touched_;
    Vector<int64_t> ptr_;
    Vector<float> values_, weights_, z_, spread_, gradient_, margins_, dense_;
    Vector<uint8_t> before_, after_;
    simd::NodeRows rows_{};
};

struct Hyperplane {
    Vector<int32_t> columns;
    Vector<float> weights;
    Vector<uint8_t> side;  // of each row
};

// The cut of all rows.
inline Hyperplane cut_graph(const Csr& x, const LabelGraph& graph, const CutOptions& options, uint64_t seed) {
    Vector<int32_t> rows(x.n_rows);
    std::iota(rows.begin(), rows.end(), 0);
    Hyperplane found;
    const Monitor monitor;
    Cut cut(x, monitor);
    cut.load(rows.data(), static_cast<int32_t>(x.n_rows), options.feature_rows);
    cut.train(graph, options, Rng(seed));
    cut.sides(&found.side);
    cut.emit(&found.columns, &found.weights);
    return found;
}

}  // namespace labelwood::forest::graph
