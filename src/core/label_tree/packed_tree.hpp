// A packed label tree, ready to be searched.
#pragma once

#include <cstdint>
#include <mutex>
#include <variant>

#include "base/parallel.hpp"
#include "base/span.hpp"
#include "label_tree/feature_index.hpp"
#include "label_tree/search.hpp"
#include "label_tree/tree.hpp"
#include "label_tree/vector_weights.hpp"
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
    int64_t n_features;  // without the columns of vectors
    VectorWeights vector_weights;
};

class PackedTree {
  public:
    explicit PackedTree(const PackedTreeView& view)
        : view_(view), index_(view.feature_ptr, view.features, view.n_inner, view.n_features) {}

    // The k best labels of every row; labels and scores have k columns.
    void search(const SearchedRows& rows, const SearchOptions& options, bool exact, Monitor& monitor, int32_t* labels,
                float* scores) const {
        search(searchable(nullptr), rows, options, exact, monitor, labels, scores);
    }

    // The k best of the allowed labels, exactly. Only nodes on the paths to them are visited.
    void search_allowed(const SearchedRows& rows, Span<const int32_t> allowed, const SearchOptions& options,
                        Monitor& monitor, int32_t* labels, float* scores) const {
        const Vector<uint8_t> within = paths_to(allowed);
        search(searchable(within.data()), rows, options, true, monitor, labels, scores);
    }

  private:
    Searchable searchable(const uint8_t* within) const {
        return {view_.tree, view_.inner_of, index_, view_.bias, view_.link, view_.vector_weights, within};
    }

    void search(const Searchable& model, const SearchedRows& rows, const SearchOptions& options, bool exact,
                Monitor& monitor, int32_t* labels, float* scores) const {
        std::visit(
            [&](const auto& weights) {
                Searcher searcher(model, weights, rows, options);
                if (exact) {
                    searcher.exact(monitor, labels, scores);
                } else {
                    searcher.beam(monitor, labels, scores);
                }
            },
            view_.weights);
    }

    // 1 for every node on the path to an allowed label.
    Vector<uint8_t> paths_to(Span<const int32_t> allowed) const {
        std::call_once(ways_made_, [&] {
            parent_ = parents_of(view_.tree);
            leaf_of_ = leaves_of(view_.tree, view_.tree.n_nodes - view_.n_inner);
        });
        Vector<uint8_t> within(view_.tree.n_nodes, 0);
        for (const int32_t label : allowed) {
            mark_path(leaf_of_[label], [&](int32_t node) { return parent_[node]; }, within);
        }
        return within;
    }

    const PackedTreeView view_;
    const FeatureIndex index_;
    mutable std::once_flag ways_made_;
    mutable Vector<int32_t> parent_, leaf_of_;  // made by the first search for allowed labels
};

}  // namespace labelwood::label_tree
