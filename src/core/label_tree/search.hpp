// Searching a label tree: beam search for batches and single rows, and exact uniform-cost search.
//
// The score of a label is the product of the probabilities on its path, kept as a sum of logarithms. A batch
// is walked level by level and, within a level, node by node: all queries at a node use its weights while
// they are in cache.
//
// Probabilities never rise along a path. So the nodes of a query are opened in waves, best first, and a node
// that scores below the query's k-th label is not opened: no label below it can be among the k best.
//
// A search for some labels only is an exact search of the paths to them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <mutex>
#include <variant>

#include "base/csr.hpp"
#include "base/parallel.hpp"
#include "base/span.hpp"
#include "base/topk.hpp"
#include "label_tree/feature_index.hpp"
#include "label_tree/tree.hpp"
#include "label_tree/weights.hpp"
#include "simd/search.hpp"

namespace labelwood::label_tree {

// Turns a margin into the logarithm of a probability: kLogisticLink, or the power of a hinge's slack to
// subtract.
using Link = int;
constexpr Link kLogisticLink = 0;

inline void log_probabilities(Link link, float base, int32_t count, float* margins) {
    if (link != kLogisticLink) {
        for (int32_t c = 0; c < count; ++c) {
            const float slack = std::max(0.0f, 1.0f - margins[c]);
            float lowered = slack;
            for (Link power = 1; power < link; ++power) lowered *= slack;
            margins[c] = base - lowered;
        }
    } else {
        for (int32_t c = 0; c < count; ++c) {
            const float m = margins[c];
            margins[c] = base - (m > 0.0f ? std::log1p(std::exp(-m)) : std::log1p(std::exp(m)) - m);
        }
    }
}

// The order of uniform-cost search: by score. Among equals, nodes are opened before labels are given out, and
// labels leave in the order of their ids. label(node) is -1 for an inner node.
template <class Label>
bool opened_after(const Scored& a, const Scored& b, Label&& label) {
    if (a.score != b.score) return a.score < b.score;
    const int32_t la = label(a.id), lb = label(b.id);
    return la != lb ? (lb < 0 || (la >= 0 && la > lb)) : a.id > b.id;
}

struct Searchable {
    Tree tree;
    const int32_t* inner_of;  // tree node -> number among inner nodes
    const FeatureIndex& index;
    const float* bias;  // per tree node
    Link link;
    const uint8_t* within = nullptr;  // per tree node: 0 if an exact search must not visit it; null: visit all
};

struct SearchOptions {
    int32_t k;
    int32_t beam_width;
    int n_threads;
    int32_t per_node = 0;  // labels that a node of the beam may propose, its best; 0: all
};

// Buffers of one worker.
struct SearchScratch {
    Vector<int32_t> matched;  // positions of the query's columns among the node's features
    Vector<float> values;     // the query's values of these columns
    Vector<float> scores;
    Vector<float> unpacked;    // the current node's weights as floats
    Vector<simd::Rank> ranks;  // of the current node, if it has buckets; all zero between nodes
    Vector<Scored> proposed;   // labels of the current node, if it may propose only some
};

template <class Weights>
class Searcher {
  public:
    Searcher(const Searchable& model, const Weights& weights, const Csr& x, const SearchOptions& options)
        : model_(model), weights_(weights), x_(x), options_(options) {}

    void beam(Monitor& monitor, int32_t* labels, float* scores) {
        // Large shards share the preparation of a node among many queries; small batches still use every
        // thread.
        const int64_t per_thread = (x_.n_rows + options_.n_threads - 1) / std::max(options_.n_threads, 1);
        const int64_t shard = std::clamp<int64_t>(per_thread, 1, 8192);
        run((x_.n_rows + shard - 1) / shard, monitor, [&](int64_t task, SearchScratch& scratch) {
            const int64_t begin = task * shard, end = std::min(x_.n_rows, begin + shard);
            beam_shard(begin, end, scratch, labels, scores);
            monitor.add(x_.indptr[end] - x_.indptr[begin]);
        });
    }

    void exact(Monitor& monitor, int32_t* labels, float* scores) {
        constexpr int64_t kShard = 64;
        run((x_.n_rows + kShard - 1) / kShard, monitor, [&](int64_t task, SearchScratch& scratch) {
            const int64_t begin = task * kShard, end = std::min(x_.n_rows, begin + kShard);
            for (int64_t row = begin; row < end && !monitor.stopped(); ++row) {
                uniform_cost(row, scratch, labels, scores);
            }
            monitor.add(x_.indptr[end] - x_.indptr[begin]);
        });
    }

  private:
    // Fewer queries than this share little work: their waves are a single node each.
    static constexpr int64_t kFew = 32;

    struct Visit {
        int32_t node;
        int32_t query;
        float score;
    };

    template <class Task>
    void run(int64_t n_tasks, Monitor& monitor, Task&& task) {
        Vector<SearchScratch> scratches(std::max(options_.n_threads, 1));
        parallel_for(n_tasks, options_.n_threads, monitor, [&](int64_t i, int worker) { task(i, scratches[worker]); });
    }

    // Log-probabilities of the children of a node for one query, left in scratch.scores. With null ranks the
    // node's buckets are searched.
    void score_children(int32_t node, const Query& query, float base, const simd::Rank* ranks, const float* unpacked,
                        SearchScratch& scratch) {
        const int64_t inner = model_.inner_of[node];
        const int32_t first = model_.tree.child_ptr[node], count = model_.tree.n_children(node);
        const int64_t room = query.count + 1;
        if (scratch.matched.size() < room) {
            scratch.matched.resize(room);
            scratch.values.resize(room);
        }
        scratch.scores.assign(model_.bias + first, model_.bias + first + count);
        int32_t* rows = scratch.matched.data();
        float* values = scratch.values.data();
        const int64_t n_matched =
            ranks != nullptr
                ? simd::search().match(query.columns, query.values, query.count, ranks, rows, values)
                : model_.index.match_buckets(inner, query.columns, query.values, query.count, rows, values);
        weights_.add(inner, count, rows, values, n_matched, unpacked, scratch.scores.data());
        log_probabilities(model_.link, base, count, scratch.scores.data());
    }

    // Per query at most `width` scored items.
    struct Lists {
        Lists(int64_t n_queries, int32_t width) : width(width), items(n_queries * width), size(n_queries, 0) {}

        Scored* of(int64_t query) { return items.data() + query * width; }
        BestOf best(int64_t query) { return BestOf(of(query), &size[query], width); }

        int32_t width;
        Vector<Scored> items;
        Vector<int32_t> size;
    };

    void beam_shard(int64_t begin, int64_t end, SearchScratch& scratch, int32_t* labels, float* scores) {
        const int64_t n = end - begin;
        Lists found(n, options_.k), open(n, options_.beam_width), next(n, options_.beam_width);
        for (int64_t q = 0; q < n; ++q) open.best(q).offer({0.0f, 0});
        Vector<Visit> visits;
        for (int32_t longest = 1; longest > 0;) {
            for (int32_t rank = 0, stop; rank < longest; rank = stop) {
                stop = n < kFew ? rank + 1 : 2 * rank + 1;
                visits.clear();
                for (int64_t q = 0; q < n; ++q) {
                    const float bar = found.best(q).bar();
                    for (int32_t b = rank; b < std::min(stop, open.size[q]) && open.of(q)[b].score >= bar; ++b) {
                        visits.push_back({open.of(q)[b].id, static_cast<int32_t>(q), open.of(q)[b].score});
                    }
                }
                if (visits.empty()) break;
                open_nodes(visits, begin, scratch, found, next);
            }
            std::swap(open, next);
            longest = 0;
            for (int64_t q = 0; q < n; ++q) {
                open.best(q).sort();
                longest = std::max(longest, open.size[q]);
                next.size[q] = 0;
            }
        }
        for (int64_t q = 0; q < n; ++q) {
            found.best(q).sort();
            write(begin + q, found.of(q), found.size[q], labels, scores);
        }
    }

    // Opens nodes for queries, node by node.
    void open_nodes(Vector<Visit>& visits, int64_t begin, SearchScratch& scratch, Lists& found, Lists& next) {
        std::sort(visits.begin(), visits.end(), [](const Visit& a, const Visit& b) {
            return a.node != b.node ? a.node < b.node : a.query < b.query;
        });
        for (int64_t i = 0; i < visits.size();) {
            int64_t stop = i;
            int64_t look_ups = 0;
            for (; stop < visits.size() && visits[stop].node == visits[i].node; ++stop) {
                look_ups += x_.row_nnz(begin + visits[stop].query);
            }
            const int32_t node = visits[i].node;
            const int64_t inner = model_.inner_of[node];
            // Preparing a node is worth it once the look-ups outnumber its features.
            const bool many = look_ups > model_.index.n_features(inner);
            const simd::Rank* ranks = model_.index.ranks(inner);
            const bool lent = many && ranks == nullptr;
            if (lent) ranks = model_.index.lend_ranks(inner, scratch.ranks);
            const float* unpacked = many ? weights_.unpack(inner, scratch.unpacked) : nullptr;
            for (; i < stop; ++i) {
                const int32_t q = visits[i].query;
                score_children(node, row_of(x_, begin + visits[i].query), visits[i].score, ranks, unpacked, scratch);
                BestOf leaves = found.best(q), nodes = next.best(q);
                offer_children(node, leaves, nodes, scratch);
            }
            if (lent) model_.index.take_back(inner, scratch.ranks);
        }
    }

    void offer_children(int32_t node, BestOf& leaves, BestOf& nodes, SearchScratch& scratch) {
        const int32_t first = model_.tree.child_ptr[node], count = model_.tree.n_children(node);
        if (options_.per_node > 0 && count > options_.per_node) {
            offer_best_children(node, leaves, nodes, scratch);
            return;
        }
        for (int32_t c = 0; c < count; ++c) {
            const int32_t label = model_.tree.label[first + c];
            BestOf& target = label >= 0 ? leaves : nodes;
            const float score = scratch.scores[c];
            if (score >= target.bar()) target.offer({score, label >= 0 ? label : first + c});
        }
    }

    // As offer_children, with the per_node best of the node's labels only.
    void offer_best_children(int32_t node, BestOf& leaves, BestOf& nodes, SearchScratch& scratch) {
        const int32_t first = model_.tree.child_ptr[node], count = model_.tree.n_children(node);
        scratch.proposed.clear();
        for (int32_t c = 0; c < count; ++c) {
            const int32_t label = model_.tree.label[first + c];
            if (label >= 0) {
                scratch.proposed.push_back({scratch.scores[c], label});
            } else {
                nodes.offer({scratch.scores[c], first + c});
            }
        }
        const auto kept = scratch.proposed.begin() + std::min<int64_t>(options_.per_node, scratch.proposed.size());
        std::nth_element(scratch.proposed.begin(), kept, scratch.proposed.end(), better);
        for (auto item = scratch.proposed.begin(); item != kept; ++item) leaves.offer(*item);
    }

    // Opens the best node first. Probabilities never rise along a path, so labels come out best first,
    // exactly.
    void uniform_cost(int64_t row, SearchScratch& scratch, int32_t* labels, float* scores) {
        const auto worse = [&](const Scored& a, const Scored& b) {
            return opened_after(a, b, [&](int32_t node) { return model_.tree.label[node]; });
        };
        Vector<Scored> queue{{0.0f, 0}}, found;
        while (!queue.empty() && found.size() < options_.k) {
            std::pop_heap(queue.begin(), queue.end(), worse);
            const Scored top = queue.back();
            queue.pop_back();
            if (model_.tree.is_leaf(top.id)) {
                found.push_back({top.score, model_.tree.label[top.id]});
                continue;
            }
            score_children(top.id, row_of(x_, row), top.score, model_.index.ranks(model_.inner_of[top.id]), nullptr,
                           scratch);
            const int32_t first = model_.tree.child_ptr[top.id], count = model_.tree.n_children(top.id);
            for (int32_t c = 0; c < count; ++c) {
                if (model_.within != nullptr && model_.within[first + c] == 0) continue;
                queue.push_back({scratch.scores[c], first + c});
                std::push_heap(queue.begin(), queue.end(), worse);
            }
        }
        write(row, found.data(), found.size(), labels, scores);
    }

    void write(int64_t row, const Scored* items, int64_t count, int32_t* labels, float* scores) const {
        const int64_t at = row * options_.k;
        write_topk(items, count, options_.k, labels + at, scores + at, [](float x) { return std::exp(x); });
    }

    const Searchable model_;
    const Weights weights_;
    const Csr& x_;
    const SearchOptions options_;
};

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
        search({view_.tree, view_.inner_of, index_, view_.bias, view_.link}, x, options, exact, monitor, labels,
               scores);
    }

    // The k best of the allowed labels, exactly. Only nodes on the paths to them are visited.
    void search_allowed(const Csr& x, Span<const int32_t> allowed, const SearchOptions& options, Monitor& monitor,
                        int32_t* labels, float* scores) const {
        const Vector<uint8_t> within = paths_to(allowed);
        search({view_.tree, view_.inner_of, index_, view_.bias, view_.link, within.data()}, x, options, true, monitor,
               labels, scores);
    }

  private:
    void search(const Searchable& model, const Csr& x, const SearchOptions& options, bool exact, Monitor& monitor,
                int32_t* labels, float* scores) const {
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
