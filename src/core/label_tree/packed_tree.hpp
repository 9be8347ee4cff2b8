// A packed label tree, ready to be searched.
#pragma once

#include <cstdint>
#include <variant>

#include "base/csr.hpp"
#include "base/parallel.hpp"
#include "label_tree/feature_index.hpp"
#include "label_tree/search.hpp"
#include "label_tree/tree.hpp"
#include "label_tree/weights.hpp"

namespace labelwood::label_tree {

// The arrays of a packed tree, owned by the caller.
struct PackedTreeView {
    Tree tree;
    const int32_t* inner_of;  // tree node -> number among inner nodes
    int64_t n_inner;
    const int64_t* feature_ptr;
    const int32_t* features;
    const float* bias;
    std::variant<DenseWeights, SparseWeights, QuantizedWeights> weights;
    Link link;
    int64_t n_features;
};

class PackedTree {
  public:
    explicit PackedTree(const PackedTreeView& view)
        : view_(view), index_(view.feature_ptr, view.features, view.n_inner, view.n_features) {}

    // The k best labels of every row; labels and scores have k columns.
    void search(const Csr& x, const SearchOptions& options, bool exact, Monitor& monitor, int32_t* labels,
                float* scores) const {
        const Searchable model{view_.tree, view_.inner_of, index_, view_.bias, view_.link};
        std::visit(
            [&](const auto& weights) {
                Searcher searcher(model, weights, x, options);
                if (exact) {
                    searcher.exact(monitor, labels, scores);
                } else {
                    searcher.beam(monitor, labels, scores);
                }
            },
            view_.weights);
    }

  private:
    const PackedTreeView view_;
    const FeatureIndex index_;
};

}  // namespace labelwood::label_tree
