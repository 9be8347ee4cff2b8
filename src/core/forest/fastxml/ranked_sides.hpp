// The two sides of a FastXML node: label rankings and assignment in turn, until no row changes sides.
//
// A side's ranking sorts the labels by their gains, g_l sum_i I(y_i) over the side's rows with label l, which
// maximises the rows' summed nDCG. A row then goes to the side whose ranking gives it the higher nDCG minus log
// loss. Both steps raise the objective, so the turns end.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "base/csr.hpp"
#include "base/span.hpp"

namespace labelwood::forest::fastxml {

// The sides of one worker's nodes.
class RankedSides {
  public:
    // `weights` of the labels; empty: all are 1.
    RankedSides(const Csr& y, Span<const float> weights) : y_(y), weights_(weights), local_(y.n_cols, -1) {
        int64_t most = 0;
        for (int64_t row = 0; row < y.n_rows; ++row) most = std::max(most, y.row_nnz(row));
        ideal_.assign(most + 1, 0.0);
        double total = 0.0;
        for (int64_t count = 1; count <= most; ++count) {
            total += discount_of(count - 1);
            ideal_[count] = 1.0 / total;
        }
    }

    // The rows of the next node.
    void load(Span<const int32_t> rows) {
        labels_.clear();
        ptr_.assign(1, 0);
        ids_.clear();
        for (const int32_t row : rows) {
            for (int64_t j = y_.indptr[row]; j < y_.indptr[row + 1]; ++j) {
                int32_t& id = local_[y_.indices[j]];
                if (id < 0) labels_.push_back(y_.indices[j]);
                id = 0;
            }
        }
        std::sort(labels_.begin(), labels_.end());
        for (int64_t l = 0; l < labels_.size(); ++l) local_[labels_[l]] = static_cast<int32_t>(l);
        for (const int32_t row : rows) {
            for (int64_t j = y_.indptr[row]; j < y_.indptr[row + 1]; ++j) ids_.push_back(local_[y_.indices[j]]);
            ptr_.push_back(ids_.size());
        }
        for (const int32_t label : labels_) local_[label] = -1;
        while (discounts_.size() < labels_.size()) discounts_.push_back(discount_of(discounts_.size()));
    }

    // Improves `side` (1 positive, 0 negative) in place. `loss[s]` has the log loss of every row on side s; it is
    // empty before the first separator.
    void assign(const std::array<Vector<double>, 2>& loss, Vector<uint8_t>& side) {
        double before = 0.0;
        for (int turn = 0; turn < kMostTurns; ++turn) {
            rank(side, 0);
            rank(side, 1);
            int64_t moved = 0;
            double total = 0.0;
            for (int64_t i = 0; i < side.size(); ++i) {
                double good = gain(i, 1), bad = gain(i, 0);
                if (!loss[0].empty()) {
                    good -= loss[1][i];
                    bad -= loss[0][i];
                }
                total += std::max(good, bad);
                if (std::abs(good - bad) <= kLeastGap) continue;
                const uint8_t better = good > bad ? 1 : 0;
                moved += better != side[i];
                side[i] = better;
            }
            total /= static_cast<double>(side.size());
            if (moved == 0 || (turn > 0 && total - before < kLeastRise)) return;
            before = total;
        }
    }

  private:
    static constexpr int kMostTurns = 100;
    static constexpr double kLeastRise = 1e-5, kLeastGap = 1e-10;

    static double discount_of(int64_t rank) { return 1.0 / std::log(2.0 + static_cast<double>(rank)); }
    double weight(int32_t id) const { return weights_.empty() ? 1.0 : static_cast<double>(weights_[labels_[id]]); }
    int64_t n_labels(int64_t i) const { return ptr_[i + 1] - ptr_[i]; }

    // Writes the weighted discount of every label in the ranking of one side.
    void rank(const Vector<uint8_t>& side, int which) {
        gains_.assign(labels_.size(), 0.0);
        for (int64_t i = 0; i < side.size(); ++i) {
            if (side[i] != which) continue;
            const double ideal = ideal_[n_labels(i)];
            for (int64_t j = ptr_[i]; j < ptr_[i + 1]; ++j) gains_[ids_[j]] += ideal * weight(ids_[j]);
        }
        order_.resize(labels_.size());
        for (int64_t l = 0; l < order_.size(); ++l) order_[l] = static_cast<int32_t>(l);
        std::sort(order_.begin(), order_.end(),
                  [&](int32_t a, int32_t b) { return gains_[a] != gains_[b] ? gains_[a] > gains_[b] : a < b; });
        Vector<double>& worth = worth_[static_cast<size_t>(which)];
        worth.resize(labels_.size());
        for (int64_t r = 0; r < order_.size(); ++r) worth[order_[r]] = weight(order_[r]) * discounts_[r];
    }

    double gain(int64_t i, int which) const {
        const Vector<double>& worth = worth_[static_cast<size_t>(which)];
        double total = 0.0;
        for (int64_t j = ptr_[i]; j < ptr_[i + 1]; ++j) total += worth[ids_[j]];
        return total * ideal_[n_labels(i)];
    }

    const Csr y_;
    const Span<const float> weights_;
    Vector<double> ideal_;      // I(y) by the number of labels
    Vector<double> discounts_;  // by rank
    Vector<int32_t> local_;     // -1 between nodes
    Vector<int32_t> labels_;    // of the node, ascending
    Vector<int64_t> ptr_;
    Vector<int32_t> ids_;  // labels of the rows, by their place in labels_
    Vector<double> gains_;
    Vector<int32_t> order_;
    std::array<Vector<double>, 2> worth_;
};

}  // namespace labelwood::forest::fastxml
