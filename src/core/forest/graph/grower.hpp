// Grows the trees of GraphForest: a neighbour graph and a cut at every node, down to small leaves.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "base/csr.hpp"
#include "base/parallel.hpp"
#include "base/rng.hpp"
#include "base/span.hpp"
#include "forest/graph/cut.hpp"
#include "forest/graph/label_graph.hpp"
#include "forest/grown_forest.hpp"

namespace labelwood::forest::graph {

struct Options {
    LabelGraphOptions graph;
    CutOptions cut;
    int32_t first_tree;  // number of the first tree; random draws depend on a tree's number
    int32_t n_trees;
    int32_t max_leaf;
    uint64_t seed;
};

// Grows one tree at a time. A node's random draws depend only on the seed, the tree and the node's place.
class Grower {
  public:
    Grower(const Csr& x, const Csr& y, const Options& options, Monitor& monitor)
        : x_(x),
          y_(y),
          options_(options),
          monitor_(monitor),
          builder_(y, monitor),
          cut_(x, monitor),
          counts_(y.n_cols, 0) {}

    GrownTree grow(int32_t tree_number) {
        GrownTree tree;
        tree.nodes.emplace_back();
        rows_.resize(x_.n_rows);
        for (int32_t i = 0; i < x_.n_rows; ++i) rows_[i] = i;
        Vector<Pending> pending{
            {0, 0, static_cast<int32_t>(x_.n_rows), mix64(options_.seed ^ mix64(static_cast<uint64_t>(tree_number)))}};
        while (!pending.empty()) {
            monitor_.check();
            const Pending node = pending.back();
            pending.pop_back();
            const int32_t n = node.end - node.begin;
            const int32_t left = n <= options_.max_leaf || is_pure(node) ? 0 : split(node, &tree);
            if (left == 0) {
                make_leaf(node, &tree);
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
    static constexpr int kSeparations = 8;

    const int32_t* rows(const Pending& node) const { return rows_.data() + node.begin; }

    // Rows with equal label sets need no split: all leaves below would be equal.
    bool is_pure(const Pending& node) const {
        const int32_t* row = rows(node);
        const int32_t* labels = y_.indices + y_.indptr[row[0]];
        const int64_t count = y_.row_nnz(row[0]);
        for (int32_t i = 1; i < node.end - node.begin; ++i) {
            if (y_.row_nnz(row[i]) != count) return false;
            if (!std::equal(labels, labels + count, y_.indices + y_.indptr[row[i]])) return false;
        }
        return true;
    }

    // Splits the rows of a node and adds its children. Returns the number of rows of the first child, 0 if no
    // rows can be separated. The first child is scored by w, the second is always 0: the argmax is the sign.
    int32_t split(const Pending& node, GrownTree* tree) {
        const int32_t n = node.end - node.begin;
        builder_.build(rows(node), n, options_.graph, &graph_);
        cut_.load(rows(node), n, options_.cut.feature_rows);
        cut_.train(graph_, options_.cut, Rng(node.key));
        cut_.sides(&side_);
        float bias = 0.0f;
        int32_t left = n_positive();
        Rng rng(node.key, 1);
        if (left == 0 || left == n) cut_.load(rows(node), n, 1);
        for (int attempt = 0; attempt < kSeparations && (left == 0 || left == n); ++attempt) {
            const auto a = static_cast<int32_t>(rng.below(static_cast<uint32_t>(n)));
            const auto b = static_cast<int32_t>(rng.below(static_cast<uint32_t>(n)));
            bias = cut_.separate(a, b);
            cut_.sides(&side_, bias);
            left = n_positive();
        }
        if (left == 0 || left == n) return 0;
        partition(node);
        GrownNode first;
        first.bias = bias;
        first.weights_begin = tree->weights.size();
        cut_.emit(&tree->features, &tree->weights);
        first.weights_end = tree->weights.size();
        GrownNode& parent = tree->nodes[node.id];
        parent.first_child = static_cast<int32_t>(tree->nodes.size());
        parent.n_children = 2;
        tree->nodes.push_back(first);
        tree->nodes.emplace_back();
        return left;
    }

    int32_t n_positive() const {
        int32_t count = 0;
        for (const uint8_t side : side_) count += side;
        return count;
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

    // The share of the leaf's rows that have each label.
    void make_leaf(const Pending& node, GrownTree* tree) {
        const int32_t n = node.end - node.begin;
        labels_.clear();
        for (int32_t i = 0; i < n; ++i) {
            for (int64_t j = y_.indptr[rows(node)[i]]; j < y_.indptr[rows(node)[i] + 1]; ++j) {
                if (counts_[y_.indices[j]]++ == 0) labels_.push_back(y_.indices[j]);
            }
        }
        std::sort(labels_.begin(), labels_.end());
        GrownNode& leaf = tree->nodes[node.id];
        leaf.leaf_begin = tree->values.size();
        for (const int32_t label : labels_) {
            int32_t& count = counts_[label];
            tree->labels.push_back(label);
            tree->values.push_back(static_cast<float>(count) / static_cast<float>(n));
            count = 0;
        }
        leaf.leaf_end = tree->values.size();
    }

    const Csr x_, y_;
    const Options options_;
    Monitor& monitor_;
    LabelGraphBuilder builder_;
    Cut cut_;
    LabelGraph graph_;
    Vector<int32_t> rows_, spare_, labels_, counts_;
    Vector<uint8_t> side_;
};

// Each tree is grown by one worker: the forest does not depend on the number of threads.
inline FlatForest grow_forest(const Csr& x, const Csr& y, const Options& options, int n_threads, Monitor& monitor) {
    Vector<GrownTree> trees(options.n_trees);
    Vector<std::unique_ptr<Grower>> growers;
    for (int t = 0; t < std::max(1, std::min(n_threads, options.n_trees)); ++t) {
        growers.push_back(std::make_unique<Grower>(x, y, options, monitor));
    }
    monitor.set_total(x.n_rows * options.n_trees);
    parallel_for(options.n_trees, n_threads, monitor, [&](int64_t tree, int worker) {
        trees[tree] = growers[worker]->grow(options.first_tree + static_cast<int32_t>(tree));
    });
    return flatten(std::move(trees));
}

}  // namespace labelwood::forest::graph
