// Uniform-cost search of the growing tree: the k labels of highest probability, exactly.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/parallel.hpp"
#include "base/span.hpp"
#include "base/topk.hpp"
#include "label_tree/search.hpp"
#include "memory/flush_denormals.hpp"
#include "online/tree.hpp"

namespace labelwood::online {

// Buffers of one worker.
struct SearchScratch {
    BlockScratch block;
    Vector<Scored> queue, found;
    Vector<uint8_t> given;  // per label: 1 if it is in `found`; used for long lists, all zero between searches
};

// 1 for every node on the path to a leaf that suggests an allowed label.
inline Vector<uint8_t> paths_to(const Tree& tree, Span<const int32_t> allowed) {
    const auto& labels = tree.labels();
    Vector<uint8_t> wanted(labels.size(), 0), within(tree.nodes().size(), 0);
    for (const int32_t label : allowed) {
        if (label < wanted.size()) wanted[label] = 1;
    }
    for (const LabelRecord& record : labels) {
        if (wanted[record.answers_as] == 0) continue;
        label_tree::mark_path(record.leaf, [&](int32_t node) { return tree.nodes()[node].parent; }, within);
    }
    return within;
}

class Searcher {
  public:
    // `within` holds 0 for the nodes that must not be visited; null: visit all.
    Searcher(const Tree& tree, int32_t k, const uint8_t* within = nullptr)
        : tree_(tree), nodes_(tree.nodes()), k_(k), within_(within) {}

    // Writes k labels and scores, padded with -1 and 0.
    void search(const Example& x, SearchScratch& scratch, int32_t* labels, float* scores) const {
        auto& queue = scratch.queue;
        auto& found = scratch.found;
        queue.clear();
        found.clear();
        const auto worse = [&](const Scored& a, const Scored& b) {
            return label_tree::opened_after(a, b, [&](int32_t node) { return answer(node); });
        };
        const int32_t root = Nodes::kRoot;
        if (is_open(root)) {
            score(0, 1, x, 0.0f, scratch);
            queue.push_back({scratch.block.margins[1], root});
        }
        while (!queue.empty() && found.size() < k_) {
            std::pop_heap(queue.begin(), queue.end(), worse);
            const Scored top = queue.back();
            queue.pop_back();
            const Node& node = nodes_[top.id];
            if (node.is_leaf()) {
                give_out(answer(top.id), top.score, scratch);
                continue;
            }
            score(node.block, node.n_children(), x, top.score, scratch);
            for (const int32_t child : node.children) {
                if (!is_open(child)) continue;
                queue.push_back({scratch.block.margins[nodes_[child].lane], child});
                std::push_heap(queue.begin(), queue.end(), worse);
            }
        }
        write_topk(found.data(), found.size(), k_, labels, scores, [](float x) { return std::exp(x); });
        if (k_ > kShortList) {
            for (const Scored& one : found) scratch.given[one.id] = 0;
        }
    }

  private:
    static constexpr int32_t kShortList = 64;  // a longer list is not searched for repeats but marked

    bool is_open(int32_t node) const { return nodes_[node].n_active > 0 && (within_ == nullptr || within_[node] != 0); }

    // The label a leaf suggests; -1 for an inner node.
    int32_t answer(int32_t node) const {
        const int32_t label = nodes_[node].label;
        return label < 0 ? -1 : tree_.labels()[label].answers_as;
    }

    // Leaves of merged labels suggest the same label; the best one counts.
    void give_out(int32_t label, float score, SearchScratch& scratch) const {
        if (tree_.labels()[label].retired) return;
        if (k_ > kShortList) {
            scratch.given.resize(tree_.labels().size(), 0);
            if (scratch.given[label] != 0) return;
            scratch.given[label] = 1;
        } else {
            for (const Scored& earlier : scratch.found) {
                if (earlier.id == label) return;
            }
        }
        scratch.found.push_back({score, label});
    }

    // Leaves the log-probability of child c in scratch.block.margins[1 + c].
    void score(int32_t block, int32_t n_children, const Example& x, float base, SearchScratch& scratch) const {
        tree_.block(block).score(x, tree_.learner(), scratch.block);
        label_tree::log_probabilities(label_tree::kLogisticLink, base, n_children, scratch.block.margins.data() + 1);
    }

    const Tree& tree_;
    const Nodes& nodes_;
    const int32_t k_;
    const uint8_t* within_;
};

// The features that the tree knows, of the rows in `order` or, if it is null, of all rows.
template <class Column>
Batch known_features(const Tree& tree, const StreamRows<Column>& x, const int64_t* order, int64_t count) {
    return tree.prepare(x.indptr, x.indices, x.data, order, count,
                        [&](uint64_t id) { return tree.numbers().find(id); });
}

// The best k labels of every row of a batch, on several threads.
inline void search_batch(const Searcher& searcher, const Batch& batch, int32_t k, int n_threads, Monitor& monitor,
                         int32_t* labels, float* scores) {
    constexpr int64_t kShard = 32;
    const int64_t n_rows = batch.ptr.size() - 1;
    Vector<SearchScratch> scratches(std::max(n_threads, 1));
    parallel_for((n_rows + kShard - 1) / kShard, n_threads, monitor, [&](int64_t shard, int worker) {
        const memory::FlushDenormals flush;
        const int64_t end = std::min(n_rows, (shard + 1) * kShard);
        for (int64_t row = shard * kShard; row < end && !monitor.stopped(); ++row) {
            searcher.search(batch.row(row), scratches[worker], labels + row * k, scores + row * k);
        }
        monitor.add(batch.ptr[end] - batch.ptr[shard * kShard]);
    });
}

// The best k labels of every row.
template <class Column>
void search(const Tree& tree, const StreamRows<Column>& x, int32_t k, int n_threads, Monitor& monitor, int32_t* labels,
            float* scores) {
    search_batch(Searcher(tree, k), known_features(tree, x, nullptr, x.n_rows), k, n_threads, monitor, labels, scores);
}

// The best k of the allowed labels for every row. Only nodes on the paths to them are visited.
template <class Column>
void search_allowed(const Tree& tree, const StreamRows<Column>& x, Span<const int32_t> allowed, int32_t k,
                    int n_threads, Monitor& monitor, int32_t* labels, float* scores) {
    const Vector<uint8_t> within = paths_to(tree, allowed);
    search_batch(Searcher(tree, k, within.data()), known_features(tree, x, nullptr, x.n_rows), k, n_threads, monitor,
                 labels, scores);
}

// Predicts each row, then learns it.
template <class Column>
void predict_then_learn(Tree& tree, const StreamRows<Column>& x, const Csr& y, int32_t k, int32_t* labels,
                        float* scores) {
    const Searcher searcher(tree, k);
    SearchScratch scratch;
    for (int64_t row = 0; row < y.n_rows; ++row) {
        const Batch one = known_features(tree, x, &row, 1);
        searcher.search(one.row(0), scratch, labels + row * k, scores + row * k);
        tree.learn(x.indptr, x.indices, x.data, y, &row, 1, 1);
    }
}

}  // namespace labelwood::online
