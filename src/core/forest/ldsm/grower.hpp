// Growing LdSM trees: Algorithm 1 (best node first) and Algorithm 4 (children).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <queue>
#include <utility>

#include "base/csr.hpp"
#include "base/parallel.hpp"
#include "base/rng.hpp"
#include "base/span.hpp"
#include "forest/grown_forest.hpp"
#include "forest/ldsm/node.hpp"

namespace labelwood::forest::ldsm {

// The quality of a split, by the label histograms of the node and its children: Equation 1 and Definitions 1
// and 2 of the paper. `running` is J by the running probabilities at the end of the node's training.
struct Split {
    float objective, balancedness, purity, running;
};

struct Tree {
    GrownTree tree;
    Vector<Split> splits;  // an inner node's `seed` is its place here
};

template <int M>
class Grower {
  public:
    Grower(const Csr& x, const Csr& y, const Options& options)
        : x_(x), y_(y), options_(options), node_(x, y, options), histogram_(y.n_cols) {}

    Tree grow(Rng rng, Monitor& monitor) {
        Tree out;
        Vector<Vector<int32_t>> rows(1);  // per node; cleared when the node is split
        for (int32_t row = 0; row < y_.n_rows; ++row) {
            if (y_.row_nnz(row) > 0) rows[0].push_back(row);
        }
        rng.shuffle(rows[0].data(), rows[0].size());
        out.tree.nodes.emplace_back();
        std::priority_queue<Waiting> queue;
        queue.push({0, 0});
        int64_t n_nodes = 1;
        while (!queue.empty() && n_nodes < options_.max_nodes) {
            const int64_t id = -queue.top().minus_id;
            queue.pop();
            node_.train(rows[id], rng, monitor);
            FixedVector<Vector<int32_t>, M> children = create_children(rows[id]);
            if (!is_split(children, rows[id].size())) continue;
            out.splits.push_back(judge(children, rows[id]));
            const auto first = static_cast<int32_t>(out.tree.nodes.size());
            attach(out, id, first);
            Vector<int32_t>().swap(rows[id]);
            for (int m = 0; m < M; ++m) {
                const int64_t priority = priority_of(children[m]);
                // A node with one row or with a single label has nothing to separate.
                if (priority > 0 && children[m].size() > 1) queue.push({priority, -(first + m)});
                rows.push_back(std::move(children[m]));
            }
            n_nodes += M;
            monitor.add(M);
        }
        for (int64_t id = 0; id < out.tree.nodes.size(); ++id) {
            if (out.tree.nodes[id].n_children == 0) write_leaf(out.tree, id, rows[id]);
        }
        monitor.add(std::max<int64_t>(0, options_.max_nodes - n_nodes));
        return out;
    }

  private:
    struct Waiting {
        int64_t priority;
        int32_t minus_id;  // negative, so that ties go to the first node
        bool operator<(const Waiting& other) const {
            return std::pair(priority, minus_id) < std::pair(other.priority, other.minus_id);
        }
    };
    struct Bin {
        int64_t count = 0;
        FixedVector<int64_t, M> sent{};  // number sent to each child
    };

    // Algorithm 4: a row goes to every child whose margin exceeds 0.5, or to the best child if none does.
    FixedVector<Vector<int32_t>, M> create_children(const Vector<int32_t>& rows) {
        FixedVector<Vector<int32_t>, M> children;
        for (int64_t i = 0; i < rows.size(); ++i) {
            const auto margins = node_.margins(i);
            const auto best = std::max_element(margins.begin(), margins.end());
            for (int64_t m = 0; m < M; ++m) {
                if (margins[m] > 0.5f || (*best <= 0.5f && margins.begin() + m == best)) {
                    children[m].push_back(rows[i]);
                }
            }
        }
        return children;
    }

    // A child without rows, or with all rows, would repeat its parent for ever. As printed, such children are kept if
    // another has rows too; the number of nodes bounds the tree.
    bool is_split(const FixedVector<Vector<int32_t>, M>& children, int64_t n_rows) const {
        if (options_.partial_splits) {
            return std::count_if(children.begin(), children.end(), [](const auto& child) { return !child.empty(); }) >
                   1;
        }
        return std::all_of(children.begin(), children.end(),
                           [&](const auto& child) { return !child.empty() && child.size() < n_rows; });
    }

    void attach(Tree& out, int64_t id, int32_t first) {
        GrownNode& node = out.tree.nodes[id];
        node.first_child = first;
        node.n_children = M;
        node.seed = static_cast<uint32_t>(out.splits.size() - 1);
        for (int m = 0; m < M; ++m) {
            GrownNode child;
            child.bias = node_.bias(m);
            child.weights_begin = out.tree.weights.size();
            node_.emit(m, &out.tree.features, &out.tree.weights);
            child.weights_end = out.tree.weights.size();
            out.tree.nodes.push_back(child);
        }
    }

    template <class Visit>
    void each_label(const Vector<int32_t>& rows, Visit&& visit) {
        for (const int32_t row : rows) {
            for (int64_t j = y_.indptr[row]; j < y_.indptr[row + 1]; ++j) {
                Bin& bin = histogram_[y_.indices[j]];
                if (bin.count == 0) touched_.push_back(y_.indices[j]);
                visit(bin);
            }
        }
    }

    void clear() {
        for (const int32_t label : touched_) histogram_[label] = Bin();
        touched_.clear();
    }

    int64_t priority_of(const Vector<int32_t>& rows) {
        int64_t sum = 0, most = 0;
        each_label(rows, [&](Bin& bin) {
            ++sum;
            most = std::max(most, ++bin.count);
        });
        clear();
        return sum - most;
    }

    Split judge(const FixedVector<Vector<int32_t>, M>& children, const Vector<int32_t>& rows) {
        each_label(rows, [](Bin& bin) { ++bin.count; });
        for (int64_t m = 0; m < M; ++m) {
            each_label(children[m], [&](Bin& bin) { ++bin.sent[m]; });
        }
        // Figures are multiplied by the number of label entries, which makes them integers.
        int64_t entries = 0, integrity = 0, impure = 0;
        FixedVector<int64_t, M> reached{};
        for (const int32_t label : touched_) {
            const Bin& bin = histogram_[label];
            int64_t sum = 0;
            for (const int64_t sent : bin.sent) sum += sent;
            entries += bin.count;
            for (int64_t j = 0; j < M; ++j) {
                reached[j] += bin.sent[j];
                impure += std::min(bin.sent[j], sum - bin.sent[j]);
                for (int64_t l = j + 1; l < M; ++l) {
                    integrity += std::abs(bin.sent[j] - bin.sent[l]);
                }
            }
        }
        clear();
        int64_t sum = 0, balance = 0, farthest = 0;
        for (const int64_t r : reached) sum += r;
        for (int64_t j = 0; j < M; ++j) {
            farthest = std::max(farthest, std::abs(M * reached[j] - sum));
            for (int64_t l = j + 1; l < M; ++l) balance += std::abs(reached[j] - reached[l]);
        }
        const auto all = static_cast<double>(entries);
        const double objective = static_cast<double>(balance) -
                                 options_.lambda_integrity * static_cast<double>(integrity) +
                                 options_.lambda_multiway * static_cast<double>(std::abs(sum - entries));
        return {static_cast<float>(objective / all), static_cast<float>(static_cast<double>(farthest) / (M * all)),
                static_cast<float>(static_cast<double>(impure) / (M * all)),
                static_cast<float>(node_.running_objective())};
    }

    void write_leaf(GrownTree& tree, int64_t id, const Vector<int32_t>& rows) {
        int64_t sum = 0;
        each_label(rows, [&](Bin& bin) {
            ++sum;
            ++bin.count;
        });
        const int64_t most = options_.leaf_size;
        if (most > 0 && touched_.size() > most) {
            Vector<int32_t> kept = touched_;
            std::nth_element(kept.begin(), kept.begin() + most, kept.end(), [&](int32_t a, int32_t b) {
                return std::pair(-histogram_[a].count, a) < std::pair(-histogram_[b].count, b);
            });
            kept.resize(most);
            append(tree, id, kept, sum, rows.size());
        } else {
            append(tree, id, touched_, sum, rows.size());
        }
        clear();
    }

    void append(GrownTree& tree, int64_t id, Vector<int32_t> labels, int64_t sum, int64_t n_rows) {
        std::sort(labels.begin(), labels.end());
        const double divisor = options_.divide_by_rows ? static_cast<double>(n_rows) : static_cast<double>(sum);
        tree.nodes[id].leaf_begin = tree.values.size();
        for (const int32_t label : labels) {
            tree.labels.push_back(label);
            tree.values.push_back(static_cast<float>(static_cast<double>(histogram_[label].count) / divisor));
        }
        tree.nodes[id].leaf_end = tree.values.size();
    }

    const Csr x_, y_;
    const Options options_;
    Node<M> node_;
    Vector<Bin> histogram_;  // all zero between uses
    Vector<int32_t> touched_;
};

// Trees of one forest, each a function of (seed, its number) alone.
template <int M>
Vector<Tree> grow(const Csr& x, const Csr& y, const Options& options, int n_threads, Monitor& monitor) {
    Vector<Tree> trees(options.n_trees);
    Vector<std::unique_ptr<Grower<M>>> growers(std::max(n_threads, 1));
    monitor.set_total(options.n_trees * options.max_nodes);
    parallel_for(options.n_trees, n_threads, monitor, [&](int64_t tree, int worker) {
        auto& grower = growers[worker];
        if (!grower) grower = std::make_unique<Grower<M>>(x, y, options);
        trees[tree] = grower->grow(Rng(options.seed, static_cast<uint64_t>(options.first_tree + tree)), monitor);
    });
    return trees;
}

constexpr int kMostChildren = 8;

// Chooses the code compiled for options.arity children.
template <int M = 2>
Vector<Tree> grow_any(const Csr& x, const Csr& y, const Options& options, int n_threads, Monitor& monitor) {
    if constexpr (M < kMostChildren) {
        if (options.arity > M) return grow_any<M + 1>(x, y, options, n_threads, monitor);
    }
    return grow<M>(x, y, options, n_threads, monitor);
}

constexpr int64_t kSplitColumns = 4;

struct Forest {
    FlatForest flat;
    Vector<float> splits;  // fields of Split per inner node, by id
};

inline Forest grow_forest(const Csr& x, const Csr& y, const Options& options, int n_threads, Monitor& monitor) {
    Vector<GrownTree> trees;
    Vector<Split> splits;
    for (Tree& one : grow_any(x, y, options, n_threads, monitor)) {
        const auto before = static_cast<uint32_t>(splits.size());
        for (GrownNode& node : one.tree.nodes) node.seed += before;
        splits.insert(splits.end(), one.splits.begin(), one.splits.end());
        trees.push_back(std::move(one.tree));
    }
    Forest forest{flatten(std::move(trees)), {}};
    // `seed` of an inner node is the place of its split, which survives the renumbering.
    for (const uint32_t place : forest.flat.seeds) {
        const Split& s = splits[place];
        forest.splits.insert(forest.splits.end(), {s.objective, s.balancedness, s.purity, s.running});
    }
    return forest;
}

}  // namespace labelwood::forest::ldsm
