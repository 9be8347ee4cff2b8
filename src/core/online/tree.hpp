// The online label tree: OPLT (Jasinska-Kobus et al., 2021), Algorithms 2 to 8, and IPLT, Algorithm 1.
//
// Examples are noted at the blocks they reach and learned block by block; see online/block_pool.hpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/csr.hpp"
#include "base/span.hpp"
#include "memory/flush_denormals.hpp"
#include "online/block_pool.hpp"
#include "online/nodes.hpp"

namespace labelwood::online {

struct LabelRecord {
    int32_t leaf = -1;
    int32_t answers_as = -1;  // the label it was merged into, or itself
    bool retired = false;
    int64_t support = 0;  // examples seen with it
    int64_t first = -1;   // numbers of the first and the last of these examples
    int64_t last = -1;
};

class Tree {
  public:
    Tree(const GrowthOptions& growth, const LearnerOptions& learner, bool normalize)
        : nodes_(growth),
          learner_(learner),
          normalize_(normalize),
          memory_(std::make_shared<memory::SlabPool>()),
          numbers_(memory_),
          blocks_(learner, memory_) {
        blocks_.add(2);                // the root's own classifier is lane 1 of block 0
        give_auxiliary(Nodes::kRoot);  // Algorithm 2
    }

    // Starts from a given tree, siblings in id order: for IPLT closed to new labels and without auxiliary
    // classifiers, for a warm start with them.
    void plant(const int32_t* parent, const int32_t* label, int32_t n_nodes, bool growing) {
        for (int32_t v = 1; v < n_nodes; ++v) nodes_.add_child(Nodes::kRoot);
        nodes_[Nodes::kRoot].children.clear();
        for (int32_t v = 1; v < n_nodes; ++v) {
            Node& node = nodes_[v];
            node.parent = parent[v];
            nodes_[parent[v]].children.push_back(v);
            node.lane = nodes_[parent[v]].n_children();
        }
        for (int32_t v = 0; v < n_nodes; ++v) {
            if (label[v] >= 0) place_label(v, label[v]);
        }
        growing_ = growing;
        blocks_[nodes_[Nodes::kRoot].block] = blocks_.made(1);
        nodes_[Nodes::kRoot].auxiliary = false;
        for (int32_t v = 0; v < n_nodes; ++v) {
            nodes_[v].auxiliary = growing && nodes_.may_extend(v);
            if (nodes_[v].is_leaf() && !nodes_[v].auxiliary) continue;
            if (nodes_[v].block < 0) nodes_[v].block = blocks_.add(1);
            block_of(v) = blocks_.made(1 + nodes_[v].n_children());
        }
    }

    // OPLT.Train (Algorithm 3) on the rows `order` of x and y. Labels of y may be new.
    template <class Column>
    void learn(const int64_t* x_ptr, const Column* x_columns, const float* x_values, const Csr& y, const int64_t* order,
               int64_t count, int n_threads) {
        blocks_.begin(
            prepare(x_ptr, x_columns, x_values, order, count, [&](uint64_t id) { return numbers_.intern(id); }));
        const memory::FlushDenormals flush;
        for (int64_t i = 0; i < count; ++i) {
            read_labels(y, order[i]);
            bool has_new = false;
            for (const int32_t label : row_labels_) has_new |= labels_[label].leaf < 0;
            if (has_new) update_tree(i);
            note(i);
            ++seen_;
        }
        blocks_.learn_noted(n_threads);
    }

    template <class Column, class Number>
    Batch prepare(const int64_t* ptr, const Column* columns, const float* values, const int64_t* order, int64_t count,
                  Number&& number) const {
        Batch batch;
        batch.ptr.reserve(count + 1);
        for (int64_t i = 0; i < count; ++i) {
            const int64_t row = order == nullptr ? i : order[i];
            double square = 0.0;
            for (int64_t e = ptr[row]; e < ptr[row + 1]; ++e) square += static_cast<double>(values[e]) * values[e];
            const float scale = normalize_ ? unit_factor(square) : 1.0f;
            for (int64_t e = ptr[row]; e < ptr[row + 1]; ++e) {
                const float value = values[e] * scale;
                if (value == 0.0f) continue;
                const uint32_t feature = number(static_cast<uint64_t>(columns[e]));
                if (feature == FeatureNumbers::kNone) continue;
                batch.features.push_back(feature);
                batch.values.push_back(value);
            }
            batch.ptr.push_back(batch.features.size());
        }
        return batch;
    }

    void resize_labels(int64_t n_labels) {
        while (labels_.size() < n_labels) {
            labels_.emplace_back();
            labels_.back().answers_as = static_cast<int32_t>(labels_.size()) - 1;
        }
    }

    // A label that is retired, or merged into another, is never suggested itself; its leaf goes on learning.
    void set_lifecycle(int32_t label, bool retired, int32_t answers_as) {
        LabelRecord& record = labels_[label];
        if (record.leaf >= 0 && retired != record.retired) {
            for (int32_t v = record.leaf; v >= 0; v = nodes_[v].parent) nodes_[v].n_active += retired ? -1 : 1;
        }
        record.retired = retired;
        record.answers_as = answers_as;
        ++revision_;
    }

    int64_t bytes() const {
        const int64_t total = numbers_.bytes() + blocks_.bytes();
        return total + nodes_.size() * int64_t{sizeof(Node)};
    }
    int64_t updates() const { return updates_; }
    int64_t seen() const { return seen_; }
    // Changes whenever nodes or the labels of leaves do; not saved.
    int64_t revision() const { return revision_; }
    bool growing() const { return growing_; }
    const Nodes& nodes() const { return nodes_; }
    const Deque<LabelRecord>& labels() const { return labels_; }
    bool has_label(int32_t label) const { return label < labels_.size() && labels_[label].leaf >= 0; }
    const LearnerOptions& learner() const { return learner_; }
    const FeatureNumbers& numbers() const { return numbers_; }
    const SiblingBlock& block(int32_t block) const { return blocks_[block]; }

    friend struct TreeState;

  private:
    SiblingBlock& block_of(int32_t node) { return blocks_[nodes_[node].block]; }

    void give_auxiliary(int32_t node) {
        nodes_[node].block = blocks_.add(1);
        nodes_[node].auxiliary = true;
    }

    // Reads the labels of a row, each once; a merged label stands for the label it was merged into.
    void read_labels(const Csr& y, int64_t row) {
        row_labels_.clear();
        for (int64_t e = y.indptr[row]; e < y.indptr[row + 1]; ++e) {
            row_labels_.push_back(labels_[y.indices[e]].answers_as);
        }
        std::sort(row_labels_.begin(), row_labels_.end());
        row_labels_.erase(std::unique(row_labels_.begin(), row_labels_.end()), row_labels_.end());
        for (const int32_t label : row_labels_) {
            LabelRecord& record = labels_[label];
            ++record.support;
            if (record.first < 0) record.first = seen_;
            record.last = seen_;
        }
    }

    // Algorithm 4.
    void update_tree(int64_t row) {
        int32_t chosen = -1;
        const auto probability = [&](int32_t node) { return estimate(node, blocks_.batch().row(row)); };
        for (const int32_t label : row_labels_) {
            if (labels_[label].leaf >= 0) continue;
            if (nodes_.size() == 1 && nodes_[Nodes::kRoot].label < 0) {
                place_label(Nodes::kRoot, label);
                continue;
            }
            chosen = nodes_.select(chosen, probability);
            if (nodes_.inserts(chosen)) insert_node(chosen);
            add_leaf(label, chosen);
        }
    }

    // Algorithm 5. The new node takes over the block of v with all its lanes. v gets a block made of its
    // auxiliary classifier only, as the new node's classifier and as its own. If v is a leaf, that is all
    // there is.
    void insert_node(int32_t v) {
        blocks_.catch_up(nodes_[v].block);
        if (nodes_[v].is_leaf()) {
            const int32_t label = nodes_[v].label;
            const int32_t inserted = nodes_.add_child(v);
            nodes_[v].label = -1;
            nodes_[v].n_leaves = nodes_[v].n_active = 0;
            nodes_[inserted].label = label;
            nodes_[inserted].n_leaves = nodes_[v].n_leaves = 1;
            nodes_[inserted].n_active = nodes_[v].n_active = labels_[label].retired ? 0 : 1;
            nodes_[v].n_leaf_children = 1;
            if (nodes_[v].parent >= 0) --nodes_[nodes_[v].parent].n_leaf_children;
            labels_[label].leaf = inserted;
            if (nodes_.options().policy == Policy::kComplete) {  // every leaf may be extended
                const int32_t block = blocks_.add(1);
                blocks_[block] = block_of(v).from_auxiliary(false);
                nodes_[inserted].block = block;
                nodes_[inserted].auxiliary = true;
            }
            block_of(v).add_copy();
            return;
        }
        Vector<int32_t> children;
        children.swap(nodes_[v].children);
        const int32_t inserted = nodes_.add_child(v);
        Node& node = nodes_[inserted];
        for (const int32_t child : children) nodes_[child].parent = inserted;
        node.children.swap(children);
        node.n_leaf_children = nodes_[v].n_leaf_children;
        node.n_leaves = nodes_[v].n_leaves;
        node.n_active = nodes_[v].n_active;
        node.block = nodes_[v].block;
        node.auxiliary = true;
        nodes_[v].n_leaf_children = 0;
        nodes_[v].block = blocks_.add(1);
        block_of(v) = block_of(inserted).from_auxiliary(true);
    }

    // Algorithm 6; ends auxiliary classifiers that the policy does not need any more.
    void add_leaf(int32_t label, int32_t v) {
        const int32_t leaf = nodes_.add_child(v);
        block_of(v).add_lane();
        place_label(leaf, label);
        if (nodes_.may_extend(leaf)) give_auxiliary(leaf);
        if (!nodes_.may_extend(v)) nodes_[v].auxiliary = false;
    }

    void place_label(int32_t leaf, int32_t label) {
        resize_labels(label + 1);
        LabelRecord& record = labels_[label];
        record.leaf = leaf;
        nodes_[leaf].label = label;
        ++revision_;
        if (nodes_[leaf].parent >= 0) ++nodes_[nodes_[leaf].parent].n_leaf_children;
        for (int32_t v = leaf; v >= 0; v = nodes_[v].parent) {
            ++nodes_[v].n_leaves;
            nodes_[v].n_active += record.retired ? 0 : 1;
        }
    }

    // AssignToNodes: the positive nodes are the ancestors of the row's labels. Visits every block at or below
    // one.
    void note(int64_t row) {
        stamps_.resize(nodes_.size(), -1);
        blocks_.note(0, row, row_labels_.empty() ? -1 : 1);
        for (const int32_t label : row_labels_) {
            const int32_t leaf = labels_[label].leaf;
            if (leaf < 0) continue;  // a closed tree: the label is not in it
            if (nodes_[leaf].block >= 0) blocks_.note(nodes_[leaf].block, row, -1);
            for (int32_t v = leaf; nodes_[v].parent >= 0 && stamps_[v] != seen_; v = nodes_[v].parent) {
                stamps_[v] = seen_;
                blocks_.note(nodes_[nodes_[v].parent].block, row, nodes_[v].lane);
            }
        }
        for (const int32_t label : row_labels_) count_updates(labels_[label].leaf);
        updates_ += 1;
    }

    // Counts the classifiers updated below the positive nodes of a label, except those counted for earlier
    // labels of the row.
    void count_updates(int32_t leaf) {
        for (int32_t v = leaf; v >= 0 && counted_of(v) != seen_; v = nodes_[v].parent) {
            counted_[v] = seen_;
            updates_ += nodes_[v].n_children() + (nodes_[v].auxiliary ? 1 : 0);
        }
    }
    int64_t counted_of(int32_t node) {
        counted_.resize(nodes_.size(), -1);
        return counted_[node];
    }

    double estimate(int32_t node, const Example& x) {
        const int32_t block = nodes_[nodes_[node].parent].block;
        blocks_.catch_up(block);
        blocks_[block].score(x, learner_, scratch_);
        return 1.0 / (1.0 + std::exp(-static_cast<double>(scratch_.margins[nodes_[node].lane])));
    }

    Nodes nodes_;
    LearnerOptions learner_;
    bool normalize_;
    bool growing_ = true;
    PoolPointer memory_;
    FeatureNumbers numbers_;
    BlockPool blocks_;
    Deque<LabelRecord> labels_;
    int64_t seen_ = 0;
    int64_t updates_ = 0;
    int64_t revision_ = 0;

    Vector<int32_t> row_labels_;
    Vector<int64_t> stamps_, counted_;
    BlockScratch scratch_;
};

}  // namespace labelwood::online
