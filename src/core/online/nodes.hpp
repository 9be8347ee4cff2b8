// The growing tree without its classifiers: nodes, labels, and the policies that place a new label.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/rng.hpp"
#include "base/span.hpp"

namespace labelwood::online {

enum class Policy : int { kBestGreedy = 0, kRandom = 1, kComplete = 2, kFlat = 3 };

struct GrowthOptions {
    Policy policy;
    int32_t arity;     // b: children of an inner node
    int32_t max_leaf;  // b_max: children of a node whose children are all leaves
    double alpha;      // Best-Greedy: weight of balance against fit
    bool printed;      // Best-Greedy: the balance term as the paper prints it
    uint64_t seed;
};

// Children are in the order of their ids and of their lanes: child c has lane 1 + c.
struct Node {
    int32_t parent = -1;
    int32_t label = -1;
    int32_t lane = 1;
    int32_t block = -1;      // of its children and its auxiliary classifier; -1: it has neither
    bool auxiliary = false;  // lane 0 of its block is in use
    int32_t n_leaf_children = 0;
    int32_t n_leaves = 0;  // |L_v|
    int32_t n_active = 0;  // leaves at or below it whose label may be suggested
    Vector<int32_t> children;

    bool is_leaf() const { return children.empty(); }
    int32_t n_children() const { return static_cast<int32_t>(children.size()); }
    bool is_pre_leaf() const { return n_leaf_children == n_children(); }
};

class Nodes {
  public:
    explicit Nodes(const GrowthOptions& options) : options_(options) { nodes_.emplace_back(); }

    static constexpr int32_t kRoot = 0;
    Node& operator[](int32_t node) { return nodes_[node]; }
    const Node& operator[](int32_t node) const { return nodes_[node]; }
    int32_t size() const { return static_cast<int32_t>(nodes_.size()); }

    int32_t add_child(int32_t parent) {
        const int32_t child = size();
        nodes_.emplace_back();
        nodes_.back().parent = parent;
        nodes_.back().lane = 1 + (*this)[parent].n_children();
        (*this)[parent].children.push_back(child);
        return child;
    }

    // True if the policy may still extend the tree here, so that the node needs an auxiliary classifier.
    bool may_extend(int32_t node) const {
        const Node& v = (*this)[node];
        switch (options_.policy) {
            case Policy::kComplete:
                return v.n_children() < options_.arity;
            case Policy::kFlat:
                return node == kRoot;
            default:
                break;
        }
        if (!v.is_leaf()) return v.is_pre_leaf() || v.n_children() < options_.arity;
        if (v.parent < 0) return true;
        // A leaf among leaves stays a leaf; a leaf beside inner nodes, or alone, may become the parent of two
        // leaves.
        const Node& parent = (*this)[v.parent];
        return !parent.is_pre_leaf() || parent.n_leaf_children == 1;
    }

    // Algorithm 8, lines 1 to 9: the node to extend. `probability(node)` is the estimate for the current
    // example, given the parent; `previous` is the node chosen for an earlier label of the example, or -1.
    template <class Probability>
    int32_t select(int32_t previous, Probability&& probability) {
        if (options_.policy == Policy::kFlat) return kRoot;
        if (options_.policy == Policy::kComplete) {
            while (!(*this)[cursor_].is_leaf() && (*this)[cursor_].n_children() >= options_.arity) ++cursor_;
            return cursor_;
        }
        int32_t v = previous;
        if (previous < 0) {
            v = kRoot;
            Rng random(options_.seed, decisions_++);
            while (!(*this)[v].is_pre_leaf() && (*this)[v].n_children() >= options_.arity) {
                const Node& node = (*this)[v];
                v = options_.policy == Policy::kRandom
                        ? node.children[random.below(static_cast<uint32_t>(node.n_children()))]
                        : best_child(node, probability);
            }
        }
        if ((*this)[v].n_leaf_children == 1) {
            for (const int32_t child : (*this)[v].children) {
                if ((*this)[child].is_leaf()) return child;
            }
        }
        return v;
    }

    // Algorithm 8, line 10: true if a node is inserted below the chosen one.
    bool inserts(int32_t node) const {
        const Node& v = (*this)[node];
        if (v.is_leaf()) return true;
        const bool bounded = options_.policy == Policy::kBestGreedy || options_.policy == Policy::kRandom;
        return bounded && v.n_children() >= options_.max_leaf;
    }

    int64_t n_auxiliary() const {
        return std::ranges::count_if(nodes_, [](const Node& node) { return node.auxiliary; });
    }

    int32_t depth() const {
        int32_t deepest = 0;
        for (int32_t v = 0; v < size(); ++v) {
            if (!(*this)[v].is_leaf()) continue;
            int32_t steps = 0;
            for (int32_t u = v; (*this)[u].parent >= 0; u = (*this)[u].parent) ++steps;
            deepest = std::max(deepest, steps);
        }
        return deepest;
    }

    uint64_t decisions() const { return decisions_; }
    int32_t cursor() const { return cursor_; }
    void resume(uint64_t decisions, int32_t cursor) {
        decisions_ = decisions;
        cursor_ = cursor;
    }
    const GrowthOptions& options() const { return options_; }

  private:
    // The printed balance term is divided by |L_v|: it vanishes as subtrees grow, fit alone decides, and the
    // tree becomes a comb. The logarithm of the even share over |L_v| is 0 for a balanced child and falls as
    // the child grows.
    template <class Probability>
    int32_t best_child(const Node& node, Probability&& probability) const {
        const double even = static_cast<double>(node.n_leaves) / node.n_children();
        int32_t best = -1;
        double best_score = 0.0;
        for (const int32_t child : node.children) {
            const auto leaves = static_cast<double>((*this)[child].n_leaves);
            const double balance = options_.printed ? std::log(even) / leaves : std::log(even / leaves);
            const double score = (1.0 - options_.alpha) * probability(child) + options_.alpha * balance;
            if (best < 0 || score > best_score) {
                best = child;
                best_score = score;
            }
        }
        return best;
    }

    GrowthOptions options_;
    Deque<Node> nodes_;
    uint64_t decisions_ = 0;  // examples that descended the tree: seeds the random policy
    int32_t cursor_ = kRoot;  // complete policy: the node to extend next
};

}  // namespace labelwood::online
