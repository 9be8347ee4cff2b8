// One node of an LdSM tree: M linear regressors, trained by an objective that favours balanced, pure splits
// (Algorithms 2 and 3 of the paper).
//
// The running probabilities are kept as sums: T_m = C_v P_m and S_m^k = l_v[k] P_m^k. Times C_v, the terms of
// J that an assignment s of one example with labels y can change are
//
//     sum_{j<l} |T_j - T_l + |y| (s_j - s_l)|  -  lambda_1 sum_{j<l} sum_{k in y} |S_j^k - S_l^k + s_j - s_l|
//     + lambda_2 |sum_j T_j + |y| sum_j s_j - C_v|
//
// so labels that the example does not have cancel. The inner sums depend only on s_j - s_l in {-1, 0, 1} and
// are tabulated: the argmin takes O(|y| M^2 + 2^M M^2).
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>

#include "base/csr.hpp"
#include "base/parallel.hpp"
#include "base/rng.hpp"
#include "base/span.hpp"
#include "simd/forest/ldsm.hpp"
#include "simd/solver.hpp"

namespace labelwood::forest::ldsm {

enum class Optimizer { kNag, kAdagrad, kSgd };
enum class Loss { kLogistic, kSquared, kClamped };  // of the margin; the last: squares of the clamped margin

struct Options {
    int32_t first_tree;  // number of the first tree; random draws depend on a tree's number
    int32_t n_trees;
    int32_t arity;
    int64_t max_nodes;
    int32_t epochs;
    double lambda_integrity;
    double lambda_multiway;
    Optimizer optimizer;
    float learning_rate;
    float weight_threshold;  // weights that move a margin by less are dropped after training
    Loss loss;
    float start_weights;  // weights start between minus this and this, drawn at random
    bool first_of_ties;   // of assignments with the same J, the first; else one at random
    bool partial_splits;  // keep splits of which some children get no row or all rows
    bool shuffle_epoch;   // a new order each epoch, else one order per tree
    bool divide_by_rows;  // leaf counts divided by the leaf's rows, else by their sum
    int32_t leaf_size;    // most frequent labels kept in a leaf; 0: all
    uint64_t seed;
};

// The regressors of one node and their running sums. The object is reused from node to node, and clears only
// what a node touched.
template <int M>
class Node {
  public:
    static constexpr int kPairs = M * (M - 1) / 2;
    using PerChild = FixedVector<float, M>;

    Node(const Csr& x, const Csr& y, const Options& options)
        : x_(x),
          y_(y),
          options_(options),
          local_(x.n_cols, -1),
          records_((x.n_cols + 1) * kRecord, 0.0f),
          scales_(x.n_cols + 1, 0.0f),
          labels_(y.n_cols) {
        int64_t longest = 0;
        for (int64_t row = 0; row < x.n_rows; ++row) longest = std::max(longest, x.row_nnz(row));
        for (auto* part : {&own_weights_, &own_squares_, &own_values_, &own_scales_, &products_}) {
            part->assign((longest + 1) * kLanes + simd::kMaxLanes, 1.0f);
        }
    }

    // Algorithm 2: `epochs` passes over the rows. After the first pass, all features have their scales and all rows
    // their norms.
    void train(const Vector<int32_t>& rows, Rng& rng, const Monitor& monitor) {
        load(rows);
        clear();
        touch(bias_, 1.0f, rng);
        for (int32_t epoch = 0; epoch < options_.epochs; ++epoch) {
            if (options_.shuffle_epoch) rng.shuffle(order_.data(), order_.size());
            if (epoch == 1) {
                for (int64_t i = 0; i < rows.size(); ++i) norms_[i] = norm(place(i));
            }
            for (int64_t i = 0; i < order_.size(); ++i) {
                if ((i & 1023) == 0) monitor.check();
                if (i + 2 < order_.size()) prefetch(order_[i + 2]);
                if (epoch == 0) meet(place(order_[i]), rng);
                if (epoch == 0) norms_[order_[i]] = norm(place(order_[i]));
                learn(order_[i], rng);
            }
        }
        prune();
    }

    // w_m^T x for every m, where x is the i-th row of the node.
    PerChild margins(int64_t i) const {
        PerChild sum;
        for (int m = 0; m < M; ++m) sum[m] = bias(m);
        const int64_t row = place(i);
        for (int64_t j = own_.indptr[row]; j < own_.indptr[row + 1]; ++j) {
            const float* weights = record(own_.indices[j]);
            for (int m = 0; m < M; ++m) sum[m] += own_.data[j] * weights[m];
        }
        return sum;
    }

    // Appends the nonzero weights of a child by ascending feature.
    void emit(int m, Vector<int32_t>* features, Vector<float>* weights) const {
        for (int64_t f = 0; f < bias_; ++f) {
            const float w = record(f)[m];
            if (w == 0.0f) continue;
            features->push_back(is_copied_ ? features_[f] : static_cast<int32_t>(f));
            weights->push_back(w);
        }
    }
    float bias(int m) const { return record(bias_)[m]; }

    // J of Equation 1 by the running probabilities, as in Figures 3 and 7.
    double running_objective() const {
        double balance = 0.0, integrity = 0.0, sum = 0.0;
        for (int j = 0; j < M; ++j) {
            sum += total_[j];
            for (int l = j + 1; l < M; ++l) {
                balance += std::abs(total_[j] - total_[l]);
                for (const int32_t k : touched_labels_) {
                    const Label& label = labels_[k];
                    integrity += std::abs(label.sum[j] - label.sum[l]);
                }
            }
        }
        return (balance - options_.lambda_integrity * integrity + options_.lambda_multiway * std::abs(sum - count_)) /
               count_;
    }

  private:
    static constexpr int32_t kLanes = M <= 2 ? 2 : M <= 4 ? 4 : 8;
    static constexpr int64_t kRecord = 2 * kLanes;  // floats of a feature; see simd/forest/ldsm.hpp

    struct Label {
        FixedVector<double, M> sum{};
        bool seen = false;
    };

    static constexpr int64_t kCopied = int64_t{1} << 22;  // entries of a node's rows
    static constexpr float kTiny = 1e-20f;                // avoids a division by zero if all gradients are zero

    float* record(int64_t feature) { return records_.data() + feature * kRecord; }
    const float* record(int64_t feature) const { return records_.data() + feature * kRecord; }

    // Copies the rows with the node's features numbered from 0, so that what a node uses lies together. The rows of a
    // very large node are read where they lie.
    void load(const Vector<int32_t>& rows) {
        rows_ = Span<const int32_t>(rows.data(), rows.size());
        order_.resize(rows.size());
        std::iota(order_.begin(), order_.end(), 0);
        norms_.resize(rows.size());
        int64_t entries = 0;
        for (const int32_t row : rows) entries += x_.row_nnz(row);
        is_copied_ = entries <= kCopied;
        own_ = x_;
        bias_ = x_.n_cols;
        if (is_copied_) copy(entries);
    }

    void copy(int64_t entries) {
        features_.clear();
        for (const int32_t row : rows_) {
            for (int64_t j = x_.indptr[row]; j < x_.indptr[row + 1]; ++j) {
                int32_t& number = local_[x_.indices[j]];
                if (number < 0) features_.push_back(x_.indices[j]);
                number = 0;
            }
        }
        std::sort(features_.begin(), features_.end());
        for (int64_t f = 0; f < features_.size(); ++f) local_[features_[f]] = static_cast<int32_t>(f);
        ptr_.assign(1, 0);
        columns_.resize(entries);
        values_.resize(entries);
        int64_t at = 0;
        for (const int32_t row : rows_) {
            for (int64_t j = x_.indptr[row]; j < x_.indptr[row + 1]; ++j, ++at) {
                columns_[at] = local_[x_.indices[j]];
                values_[at] = x_.data[j];
            }
            ptr_.push_back(at);
        }
        for (const int32_t feature : features_) local_[feature] = -1;
        bias_ = features_.size();
        own_ = {ptr_.data(), columns_.data(), values_.data(), rows_.size(), bias_};
    }

    // The row of own_ that is the i-th of the node.
    int64_t place(int64_t i) const { return is_copied_ ? i : rows_[i]; }

    void clear() {
        std::fill_n(records_.begin(), (bias_ + 1) * kRecord, 0.0f);
        std::fill_n(scales_.begin(), bias_ + 1, 0.0f);
        for (const int32_t k : touched_labels_) labels_[k] = Label();
        touched_labels_.clear();
        total_.fill(0.0);
        count_ = squares_ = 0.0;
        visits_ = 0;
    }

    void prune() {
        for (int64_t feature = 0; feature < bias_; ++feature) {
            for (int m = 0; m < M; ++m) {
                float& w = record(feature)[m];
                if (std::abs(w) * scales_[feature] < options_.weight_threshold) w = 0.0f;
            }
        }
    }

    void touch(int64_t feature, float scale, Rng& rng) {
        scales_[feature] = scale;
        if (options_.start_weights == 0.0f) return;
        for (int m = 0; m < M; ++m) {
            record(feature)[m] = options_.start_weights * static_cast<float>(2.0 * rng.uniform() - 1.0);
        }
    }

    // Records the row's new features and larger scales; NAG rescales the weights of the latter.
    void meet(int64_t row, Rng& rng) {
        for (int64_t j = own_.indptr[row]; j < own_.indptr[row + 1]; ++j) {
            const int32_t feature = own_.indices[j];
            const float size = std::abs(own_.data[j]), scale = scales_[feature];
            if (size <= scale) continue;
            if (scale == 0.0f) {
                touch(feature, size, rng);
                continue;
            }
            if (options_.optimizer == Optimizer::kNag) {
                for (int m = 0; m < M; ++m) record(feature)[m] *= scale / size;
            }
            scales_[feature] = size;
        }
    }

    // The sum of a row's squared features, scaled.
    double norm(int64_t row) const {
        double sum = 0.0;
        for (int64_t j = own_.indptr[row]; j < own_.indptr[row + 1]; ++j) {
            const float ratio = own_.data[j] / scales_[own_.indices[j]];
            sum += static_cast<double>(ratio * ratio);
        }
        return sum;
    }

    void prefetch(int64_t i) const {
        const int64_t row = place(i), begin = own_.indptr[row], end = own_.indptr[row + 1];
        for (int64_t j = begin; j < end; j += 16) {
            __builtin_prefetch(own_.indices + j);
            __builtin_prefetch(own_.data + j);
        }
        __builtin_prefetch(y_.indices + y_.indptr[rows_[i]]);
    }

    double predicted(double margin) const {
        switch (options_.loss) {
            case Loss::kSquared:
                return margin;
            case Loss::kClamped:
                return std::clamp(margin, 0.0, 1.0);
            case Loss::kLogistic:
                break;
        }
        return 1.0 / (1.0 + std::exp(-margin));
    }

    // One gradient step on the i-th row of the node.
    void learn(int64_t i, Rng& rng) {
        const bool nag = options_.optimizer == Optimizer::kNag;
        const simd::Regressors all{records_.data(), nag ? scales_.data() : nullptr, bias_, kLanes};
        const simd::RowRegressors own{own_weights_.data(), own_squares_.data(), own_values_.data(), own_scales_.data(),
                                      products_.data()};
        const int32_t row = rows_[i];
        const int64_t begin = own_.indptr[place(i)], count = x_.row_nnz(row);
        const auto n_labels = static_cast<double>(y_.row_nnz(row));
        count_ += n_labels;
        ++visits_;
        squares_ += 1.0;  // the bias
        squares_ += norms_[i];
        FixedVector<float, kLanes> before, after;
        simd::ldsm().fetch(all, own_.indices + begin, own_.data + begin, count, own, before.data());
        const uint32_t target = best_assignment(row, n_labels, rng);
        FixedVector<float, simd::kMaxLanes> gradient{};
        for (int m = 0; m < M; ++m) {
            const double wanted = (target >> m) & 1u ? 1.0 : 0.0, z = before[m];
            for (int lane = m; lane < simd::kMaxLanes; lane += kLanes) {
                gradient[lane] = static_cast<float>(predicted(z) - wanted);
            }
        }
        const simd::Step step{gradient.data(), rate(), kTiny, options_.optimizer != Optimizer::kSgd};
        simd::ldsm().step(all, own_.indices + begin, count, own, step, after.data());
        FixedVector<double, M> clamped;
        for (int m = 0; m < M; ++m) {
            clamped[m] = static_cast<double>(std::clamp(after[m], 0.0f, 1.0f));
            total_[m] += n_labels * clamped[m];
        }
        for (int64_t j = y_.indptr[row]; j < y_.indptr[row + 1]; ++j) {
            Label& label = labels_[y_.indices[j]];
            for (int m = 0; m < M; ++m) label.sum[m] += clamped[m];
        }
    }

    float rate() const {
        const float rate = options_.learning_rate;
        if (options_.optimizer != Optimizer::kNag) return rate;
        return static_cast<float>(static_cast<double>(rate) * std::sqrt(static_cast<double>(visits_) / squares_));
    }

    // Algorithm 3: the best of the 2^M - 1 assignments; ties are broken at random.
    uint32_t best_assignment(int32_t row, double n_labels, Rng& rng) {
        FixedVector<FixedVector<double, 3>, kPairs> integrity{};  // by s_j - s_l + 1
        for (int64_t i = y_.indptr[row]; i < y_.indptr[row + 1]; ++i) {
            Label& label = labels_[y_.indices[i]];
            if (!label.seen) {
                label.seen = true;
                touched_labels_.push_back(y_.indices[i]);
            }
            int pair = 0;
            for (int j = 0; j < M; ++j) {
                for (int l = j + 1; l < M; ++l, ++pair) {
                    const double gap = label.sum[j] - label.sum[l];
                    auto& table = integrity[pair];
                    table[0] += std::abs(gap - 1.0);
                    table[1] += std::abs(gap);
                    table[2] += std::abs(gap + 1.0);
                }
            }
        }
        double sum = 0.0;
        for (int m = 0; m < M; ++m) sum += total_[m];
        double lowest = 0.0;
        uint32_t n_best = 0;
        std::array<uint32_t, (1u << M)> best;
        for (uint32_t s = 1; s < (1u << M); ++s) {
            double balance = 0.0, pure = 0.0;
            int pair = 0, sent = 0;
            for (int j = 0; j < M; ++j) {
                sent += static_cast<int>((s >> j) & 1u);
                for (int l = j + 1; l < M; ++l, ++pair) {
                    const int gap = static_cast<int>((s >> j) & 1u) - static_cast<int>((s >> l) & 1u);
                    balance += std::abs(total_[j] - total_[l] + n_labels * gap);
                    pure += integrity[pair][gap + 1];
                }
            }
            const double objective = balance - options_.lambda_integrity * pure +
                                     options_.lambda_multiway * std::abs(sum + n_labels * sent - count_);
            if (n_best == 0 || objective < lowest) {
                lowest = objective;
                n_best = 0;
            }
            if (objective == lowest) best[n_best++] = s;
        }
        return best[n_best > 1 && !options_.first_of_ties ? rng.below(n_best) : 0];
    }

    const Csr x_, y_;
    const Options options_;
    // The rows of the node, and those of x_ or their copies.
    Span<const int32_t> rows_{};
    Csr own_{};
    bool is_copied_ = false;
    int64_t bias_ = 0;       // number of the bias's record: the number of features
    Vector<int32_t> local_;  // number of a feature within the node; -1 between uses
    Vector<int32_t> features_, columns_, order_;
    Vector<int64_t> ptr_;
    Vector<float> values_;
    Vector<double> norms_;   // of the rows, after the first pass
    Vector<float> records_;  // of the features; the last one is the bias
    Vector<float> scales_;   // largest |x| so far, by feature
    Vector<float> own_weights_, own_squares_, own_values_, own_scales_, products_;  // of one row
    Vector<Label> labels_;
    Vector<int32_t> touched_labels_;
    FixedVector<double, M> total_{};  // T_m
    double count_ = 0.0;              // C_v
    double squares_ = 0.0;            // N of NAG: the sum of squared, scaled features
    int64_t visits_ = 0;              // t of NAG
};

}  // namespace labelwood::forest::ldsm
