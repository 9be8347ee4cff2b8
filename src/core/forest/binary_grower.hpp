// Grows trees whose inner nodes are one hyperplane each: the frame that such methods share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/csr.hpp"
#include "base/parallel.hpp"
#include "base/rng.hpp"
#include "base/span.hpp"
#include "forest/grown_forest.hpp"
#include "forest/mean_labels.hpp"

namespace labelwood::forest {

struct BinaryOptions {
    int32_t first_tree;  // number of the first tree; random draws depend on a tree's number
    int32_t n_trees;
    int32_t max_leaf;   // a node of at most this many rows is a leaf
    int32_t leaf_size;  // labels kept in a leaf; 0: all
    uint64_t seed;
};

// Grows one tree at a time. A node's random draws depend only on the seed, the tree and the node's place.
//
// The method is a class Splitter, made for each worker, with two functions:
//     void split(Span<const int32_t> rows, uint64_t key, Vector<uint8_t>& side);
//     float emit(Vector<int32_t>& features, Vector<float>& weights);
// The first writes 1 or 0 for each row, all equal if it finds no hyperplane. The second appends the hyperplane
// of the last split, features ascending, and returns its bias.
template <class Splitter>
class BinaryGrower {
  public:
    BinaryGrower(const Csr& x, const Csr& y, const BinaryOptions& options, MeanLabels leaves, Splitter splitter,
                 Monitor& monitor)
        : n_rows_(static_cast<int32_t>(x.n_rows)),
          y_(y),
          options_(options),
          monitor_(monitor),
          leaves_(std::move(leaves)),
          splitter_(std::move(splitter)) {}

    GrownTree grow(int32_t tree_number) {
        GrownTree tree;
        tree.nodes.emplace_back();
        rows_.resize(n_rows_);
        for (int32_t i = 0; i < n_rows_; ++i) rows_[i] = i;
        Vector<Pending> pending{{0, 0, n_rows_, mix64(options_.seed ^ mix64(static_cast<uint64_t>(tree_number)))}};
        while (!pending.empty()) {
            monitor_.check();
            const Pending node = pending.back();
            pending.pop_back();
            const int32_t n = node.end - node.begin;
            const int32_t left = n <= options_.max_leaf || is_pure(node) ? 0 : split(node, tree);
            if (left == 0) {
                leaves_.write(rows(node), tree, node.id);
                monitor_.add(n);
                continue;
            }
            const int32_t first = tree.nodes[node.id].first_child;
            pending.push_back({first + 1, node.begin + left, node.end, mix64(node.key + 2)});
            pending.push_back({first, node.begin, node.begin + left, mix64(node.key + 1)});
        }
        return tree;
    }

  private:
    struct Pending {
        int32_t id, begin, end;
        uint64_t key;
    };

    Span<const int32_t> rows(const Pending& node) const { return {rows_.data() + node.begin, node.end - node.begin}; }

    // Rows with equal label sets need no split: all leaves below would be equal.
    bool is_pure(const Pending& node) const {
        const int32_t first = rows_[node.begin];
        const int32_t* labels = y_.indices + y_.indptr[first];
        const int64_t count = y_.row_nnz(first);
        for (const int32_t row : rows(node)) {
            if (y_.row_nnz(row) != count) return false;
            if (!std::equal(labels, labels + count, y_.indices + y_.indptr[row])) return false;
        }
        return true;
    }

    // Splits the rows of a node and adds its children. Returns the number of rows of the first child, 0 if no
    // rows can be separated. The first child is scored by w, the second is always 0: the argmax is the sign.
    int32_t split(const Pending& node, GrownTree& tree) {
        splitter_.split(rows(node), node.key, side_);
        const auto left = static_cast<int32_t>(std::count(side_.begin(), side_.end(), uint8_t{1}));
        if (left == 0 || left == node.end - node.begin) return 0;
        partition(node);
        GrownNode first;
        first.weights_begin = tree.weights.size();
        first.bias = splitter_.emit(tree.features, tree.weights);
        first.weights_end = tree.weights.size();
        GrownNode& parent = tree.nodes[node.id];
        parent.first_child = static_cast<int32_t>(tree.nodes.size());
        parent.n_children = 2;
        tree.nodes.push_back(first);
        tree.nodes.emplace_back();
        return left;
    }

    // Puts the positive side first; both sides stay in ascending order.
    void partition(const Pending& node) {
        spare_.clear();
        int32_t next = node.begin;
        for (int32_t i = node.begin; i < node.end; ++i) {
            const int32_t row = rows_[i];
            if (side_[i - node.begin] != 0) {
                rows_[next++] = row;
            } else {
                spare_.push_back(row);
            }
        }
        std::copy(spare_.begin(), spare_.end(), rows_.begin() + next);
    }

    const int32_t n_rows_;
    const Csr y_;
    const BinaryOptions options_;
    Monitor& monitor_;
    MeanLabels leaves_;
    Splitter splitter_;
    Vector<int32_t> rows_, spare_;
    Vector<uint8_t> side_;
};

// Each tree is grown by one worker, whose grower `make` makes: the forest does not depend on the number of
// threads.
template <class Make>
FlatForest grow_binary_forest(int64_t n_rows, const BinaryOptions& options, int n_threads, Monitor& monitor,
                              Make&& make) {
    using Grower = decltype(make());
    Vector<GrownTree> trees(options.n_trees);
    Vector<std::unique_ptr<Grower>> growers(std::max(1, std::min(n_threads, options.n_trees)));
    monitor.set_total(n_rows * options.n_trees);
    parallel_for(options.n_trees, n_threads, monitor, [&](int64_t tree, int worker) {
        auto& grower = growers[worker];
        if (!grower) grower = std::make_unique<Grower>(make());
        trees[tree] = grower->grow(options.first_tree + static_cast<int32_t>(tree));
    });
    return flatten(std::move(trees));
}

}  // namespace labelwood::forest
