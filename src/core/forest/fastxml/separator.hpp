// The hyperplane of one node: L1-regularised logistic regression,
//
//     minimise |w|_1 + sum_i C_i log(1 + exp(-delta_i w.x_i)),   C_i = C n / (rows on the side of row i)
//
// by Newton steps, each found by coordinate descent on the active features (Yuan, Ho and Lin, An improved GLMNET
// for L1-regularized logistic regression, JMLR 2012). A feature is active if its weight is not 0 or its gradient
// exceeds the penalty, so a step reads all features once and the few active ones several times.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "base/csr.hpp"
#include "base/parallel.hpp"
#include "base/rng.hpp"
#include "base/span.hpp"

namespace labelwood::forest::fastxml {

struct SeparatorOptions {
    double cost;       // C
    double tolerance;  // stop when the violation of optimality falls to this share of its start
    float bias;        // value of the bias feature; 0: none
};

// The separators of one worker's nodes. Buffers have an entry per feature.
class Separator {
  public:
    Separator(const Csr& x, const SeparatorOptions& options, const Monitor& monitor)
        : x_(x), options_(options), monitor_(monitor), local_(x.n_cols, 0) {}

    // Copies the rows of the next node column by column, the bias last, and sets all weights to 0.
    void load(Span<const int32_t> rows) {
        features_.clear();
        for (const int32_t row : rows) {
            for (int64_t j = x_.indptr[row]; j < x_.indptr[row + 1]; ++j) {
                if (local_[x_.indices[j]]++ == 0) features_.push_back(x_.indices[j]);
            }
        }
        std::sort(features_.begin(), features_.end());
        ptr_.assign(1, 0);
        for (const int32_t feature : features_) {
            const int64_t begin = ptr_.back();
            ptr_.push_back(begin + local_[feature]);
            local_[feature] = begin;
        }
        const bool has_bias = options_.bias != 0.0f;
        if (has_bias) ptr_.push_back(ptr_.back() + rows.size());
        entries_.resize(ptr_.back());
        for (int64_t i = 0; i < rows.size(); ++i) {
            const int32_t row = rows[i];
            for (int64_t j = x_.indptr[row]; j < x_.indptr[row + 1]; ++j) {
                entries_[local_[x_.indices[j]]++] = {static_cast<int32_t>(i), x_.data[j]};
            }
            if (has_bias) entries_[ptr_.back() - rows.size() + i] = {static_cast<int32_t>(i), options_.bias};
        }
        for (const int32_t feature : features_) local_[feature] = 0;
        weights_.assign(ptr_.size() - 1, 0.0);
        rows_.assign(rows.size(), Row());
    }

    // Moves the weights to the optimum for these sides (1 or 0), both of which have rows.
    void train(const Vector<uint8_t>& side, Rng& rng) {
        set_costs(side);
        double start = 0.0;
        for (int step = 0; step < kNewtonSteps; ++step) {
            monitor_.check();
            const double violation = find_active();
            if (step == 0) start = violation;
            if (violation <= options_.tolerance * start) return;
            descend(violation, rng);
            if (!line_search()) return;
        }
    }

    // 1 where w.x is not negative. Margins are summed anew: what a weight that fell back to 0 left of them in
    // rounding must not decide.
    void sides(Vector<uint8_t>& side) {
        for (Row& row : rows_) row.margin = 0.0;
        for (int64_t f = 0; f < weights_.size(); ++f) {
            if (weights_[f] == 0.0) continue;
            for (const Entry& e : column(f)) rows_[e.row].margin += weights_[f] * static_cast<double>(e.value);
        }
        side.resize(rows_.size());
        for (int64_t i = 0; i < rows_.size(); ++i) side[i] = rows_[i].margin >= 0.0 ? 1 : 0;
    }

    // The log loss of every row on both sides, with the costs of the last training.
    void losses(std::array<Vector<double>, 2>& loss) const {
        for (int s = 0; s < 2; ++s) {
            Vector<double>& own = loss[static_cast<size_t>(s)];
            own.resize(rows_.size());
            for (int64_t i = 0; i < rows_.size(); ++i) {
                own[i] = costs_[static_cast<size_t>(s)] * softplus(s == 1 ? -rows_[i].margin : rows_[i].margin);
            }
        }
    }

    // Appends the weights that are not 0; returns the bias.
    float emit(Vector<int32_t>& features, Vector<float>& weights) const {
        for (int64_t f = 0; f < features_.size(); ++f) {
            if (weights_[f] == 0.0) continue;
            features.push_back(features_[f]);
            weights.push_back(static_cast<float>(weights_[f]));
        }
        return weights_.size() > features_.size()
                   ? static_cast<float>(weights_.back() * static_cast<double>(options_.bias))
                   : 0.0f;
    }

  private:
    struct Entry {
        int32_t row;
        float value;
    };
    struct Row {
        double margin = 0.0;  // w.x
        double pull = 0.0;    // derivative of the loss
        double curve = 0.0;   // its second derivative
        double shift = 0.0;   // the step's effect on the margin
        double sign = 0.0, cost = 0.0;
    };

    static constexpr int kNewtonSteps = 30, kPasses = 10, kHalvings = 20;
    static constexpr double kInner = 0.1, kArmijo = 0.01, kTiny = 1e-12, kFarthest = 10.0;

    static double softplus(double z) { return z > 0.0 ? z + std::log1p(std::exp(-z)) : std::log1p(std::exp(z)); }

    // The distance of 0 from the subdifferential of one coordinate.
    static double violation_of(double weight, double gradient) {
        if (weight == 0.0) return std::max(std::abs(gradient) - 1.0, 0.0);
        return std::abs(gradient + (weight > 0.0 ? 1.0 : -1.0));
    }

    Span<const Entry> column(int64_t f) const { return {entries_.data() + ptr_[f], ptr_[f + 1] - ptr_[f]}; }

    void set_costs(const Vector<uint8_t>& side) {
        const auto n = static_cast<double>(side.size());
        const auto positive = static_cast<double>(std::count(side.begin(), side.end(), uint8_t{1}));
        costs_ = {options_.cost * n / (n - positive), options_.cost * n / positive};
        for (int64_t i = 0; i < side.size(); ++i) {
            rows_[i].sign = side[i] != 0 ? 1.0 : -1.0;
            rows_[i].cost = costs_[side[i]];
        }
    }

    // Gradients of all features; lists the active ones with their second derivatives. Returns the sum of
    // violations.
    double find_active() {
        for (Row& row : rows_) {
            const double p = 1.0 / (1.0 + std::exp(-row.margin));
            row.pull = row.cost * (p - (row.sign > 0.0 ? 1.0 : 0.0));
            row.curve = row.cost * p * (1.0 - p);
            row.shift = 0.0;
        }
        pulls_.resize(rows_.size());
        for (int64_t i = 0; i < rows_.size(); ++i) pulls_[i] = rows_[i].pull;
        active_.clear();
        double total = 0.0;
        for (int64_t f = 0; f < weights_.size(); ++f) {
            double gradient = 0.0;
            for (const Entry& e : column(f)) gradient += pulls_[e.row] * static_cast<double>(e.value);
            const double violation = violation_of(weights_[f], gradient);
            total += violation;
            if (weights_[f] == 0.0 && violation == 0.0) continue;
            double bend = 0.0;
            for (const Entry& e : column(f)) {
                const auto x = static_cast<double>(e.value);
                bend += rows_[e.row].curve * x * x;
            }
            active_.push_back({static_cast<int32_t>(f), gradient, bend + kTiny, weights_[f]});
        }
        return total;
    }

    // Coordinate descent on the quadratic model: moves the targets of the active features.
    void descend(double violation, Rng& rng) {
        for (int pass = 0; pass < kPasses; ++pass) {
            rng.shuffle(active_.data(), active_.size());
            double left = 0.0;
            for (Active& a : active_) {
                double slope = a.gradient;
                for (const Entry& e : column(a.feature)) {
                    const Row& row = rows_[e.row];
                    slope += row.curve * row.shift * static_cast<double>(e.value);
                }
                left += violation_of(a.target, slope);
                double to = 0.0;
                if (slope + 1.0 < a.bend * a.target) {
                    to = a.target - (slope + 1.0) / a.bend;
                } else if (slope - 1.0 > a.bend * a.target) {
                    to = a.target - (slope - 1.0) / a.bend;
                }
                to = std::clamp(to, a.target - kFarthest, a.target + kFarthest);
                const double move = to - a.target;
                a.target = to;
                if (move == 0.0) continue;
                for (const Entry& e : column(a.feature)) rows_[e.row].shift += move * static_cast<double>(e.value);
            }
            if (left <= kInner * violation) return;
        }
    }

    // Moves the weights towards the targets as far as the objective falls enough; false if it never does.
    bool line_search() {
        double fall = 0.0;
        for (const Active& a : active_) {
            const double w = weights_[a.feature];
            fall += a.gradient * (a.target - w) + std::abs(a.target) - std::abs(w);
        }
        double before = 0.0;
        for (const Row& row : rows_) before += row.cost * softplus(-row.sign * row.margin);
        double share = 1.0;
        for (int halving = 0; halving < kHalvings; ++halving, share *= 0.5) {
            double change = -before;
            for (const Row& row : rows_) change += row.cost * softplus(-row.sign * (row.margin + share * row.shift));
            for (const Active& a : active_) {
                change += std::abs(moved(a, share)) - std::abs(weights_[a.feature]);
            }
            if (change > kArmijo * share * fall) continue;
            for (const Active& a : active_) weights_[a.feature] = moved(a, share);
            for (Row& row : rows_) row.margin += share * row.shift;
            return true;
        }
        return false;
    }

    struct Active {
        int32_t feature;
        double gradient, bend, target;
    };

    double moved(const Active& a, double share) const {
        const double w = weights_[a.feature];
        return share == 1.0 ? a.target : w + share * (a.target - w);
    }

    const Csr x_;
    const SeparatorOptions options_;
    const Monitor& monitor_;
    Vector<int64_t> local_;  // 0 between nodes
    Vector<int32_t> features_;
    Vector<int64_t> ptr_;  // columns of entries_: features_, then the bias
    Vector<Entry> entries_;
    Vector<double> weights_, pulls_;
    Vector<Row> rows_;
    Vector<Active> active_;
    std::array<double, 2> costs_{};  // by side
};

}  // namespace labelwood::forest::fastxml
