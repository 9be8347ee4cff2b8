// Leaves that hold the mean label vector of their rows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/csr.hpp"
#include "base/span.hpp"
#include "forest/grown_forest.hpp"
#include "sparse/keep_largest.hpp"

namespace labelwood::forest {

// Writes leaves, one at a time; one per worker.
class MeanLabels {
  public:
    // `weights` multiply the share of the rows that have a label; empty: all are 1. `most` labels with the
    // largest values are kept; 0: all.
    MeanLabels(const Csr& y, int32_t most, Span<const float> weights = {})
        : y_(y), most_(most), weights_(weights), counts_(y.n_cols, 0) {}

    void write(Span<const int32_t> rows, GrownTree& tree, int64_t node) {
        labels_.clear();
        for (const int32_t row : rows) {
            for (int64_t j = y_.indptr[row]; j < y_.indptr[row + 1]; ++j) {
                if (counts_[y_.indices[j]]++ == 0) labels_.push_back(y_.indices[j]);
            }
        }
        std::sort(labels_.begin(), labels_.end());
        values_.clear();
        for (const int32_t label : labels_) {
            const auto count = static_cast<float>(std::exchange(counts_[label], 0));
            const float value = count / static_cast<float>(rows.size());
            values_.push_back(weights_.empty() ? value : value * weights_[label]);
        }
        tree.nodes[node].leaf_begin = tree.values.size();
        const int64_t most = most_ > 0 ? most_ : values_.size();
        sparse::for_largest(values_.data(), values_.size(), most, sizes_, [&](int64_t i) {
            tree.labels.push_back(labels_[i]);
            tree.values.push_back(values_[i]);
        });
        tree.nodes[node].leaf_end = tree.values.size();
    }

  private:
    const Csr y_;
    const int64_t most_;
    const Span<const float> weights_;
    Vector<int32_t> counts_;  // all zero between leaves
    Vector<int32_t> labels_;
    Vector<float> values_, sizes_;
};

}  // namespace labelwood::forest
