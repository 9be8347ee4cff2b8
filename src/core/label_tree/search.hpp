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
#include <limits>

#include "base/csr.hpp"
#include "base/parallel.hpp"
#include "base/span.hpp"
#include "base/topk.hpp"
#include "label_tree/feature_index.hpp"
#include "label_tree/tree.hpp"
#include "label_tree/vector_weights.hpp"
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
    VectorWeights vector_weights;
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
    Vector<float> unpacked;                        // the current node's weights as floats
    Vector<simd::Rank> ranks;                      // of the current node, if it has buckets; all zero between nodes
    WideVectors vectors;                           // of the current rows
    memory::AlignedVector<float> block, products;  // the current node's weights for vectors, and their products
    Vector<const float*> rows;
    Vector<int32_t> promising;  // children that may be among the best
    Vector<Scored> proposed;    // labels of the current node, if it may propose only some
};

// The rows to search for: sparse ones, with vectors beside them.
struct SearchedRows {
    Csr x;
    Vectors vectors{};

    int64_t n_rows() const { return x.n_rows; }
    int64_t entries(int64_t begin, int64_t end) const {
        return x.indptr[end] - x.indptr[begin] + (end - begin) * vectors.width;
    }
};

template <class Weights>
class Searcher {
  public:
    Searcher(const Searchable& model, const Weights& weights, const SearchedRows& rows, const SearchOptions& options)
        : model_(model), weights_(weights), rows_(rows), x_(rows.x), options_(options) {}

    void beam(Monitor& monitor, int32_t* labels, float* scores) {
        // Large shards share the preparation of a node among many queries; small batches still use every
        // thread.
        const int64_t per_thread = (x_.n_rows + options_.n_threads - 1) / std::max(options_.n_threads, 1);
        const int64_t shard = std::clamp<int64_t>(per_thread, 1, 8192);
        run((x_.n_rows + shard - 1) / shard, monitor, [&](int64_t task, SearchScratch& scratch) {
            const int64_t begin = task * shard, end = std::min(x_.n_rows, begin + shard);
            beam_shard(begin, end, scratch, labels, scores);
            monitor.add(rows_.entries(begin, end));
        });
    }

    void exact(Monitor& monitor, int32_t* labels, float* scores) {
        constexpr int64_t kShard = 64;
        run((x_.n_rows + kShard - 1) / kShard, monitor, [&](int64_t task, SearchScratch& scratch) {
            const int64_t begin = task * kShard, end = std::min(x_.n_rows, begin + kShard);
            if (has_vectors()) scratch.vectors.read(rows_.vectors, begin, end);
            for (int64_t row = begin; row < end && !monitor.stopped(); ++row) {
                uniform_cost(row, row - begin, scratch, labels, scores);
            }
            monitor.add(rows_.entries(begin, end));
        });
    }

  private:
    // Fewer queries than this share little work: their waves are a single node each.
    static constexpr int64_t kFew = 32;
    // A node's weights for vectors are widened for this many visits or more, and multiplied with the vectors of
    // at most kTogether visits at a time.
    static constexpr int64_t kShared = 4, kTogether = 48;

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

    bool has_vectors() const { return model_.vector_weights.n_columns > 0; }

    // Margins of the children of a node for one query, left in scratch.scores. With null ranks the node's buckets
    // are searched. `products` are those of the query's vector with the weights of the children, null without.
    void margins_of_children(int32_t node, const Query& query, const simd::Rank* ranks, const float* unpacked,
                             const float* products, SearchScratch& scratch) {
        const int64_t inner = model_.inner_of[node];
        const int32_t first = model_.tree.child_ptr[node], count = model_.tree.n_children(node);
        const int64_t room = query.count + 1;
        if (scratch.matched.size() < room) {
            scratch.matched.resize(room);
            scratch.values.resize(room);
        }
        scratch.scores.assign(model_.bias + first, model_.bias + first + count);
        if (products != nullptr) {
            for (int32_t c = 0; c < count; ++c) scratch.scores[c] += products[c];
        }
        int32_t* rows = scratch.matched.data();
        float* values = scratch.values.data();
        const int64_t n_matched =
            ranks != nullptr
                ? simd::search().match(query.columns, query.values, query.count, ranks, rows, values)
                : model_.index.match_buckets(inner, query.columns, query.values, query.count, rows, values);
        weights_.add(inner, count, rows, values, n_matched, unpacked, scratch.scores.data());
    }

    // The products of one vector with the weights of a node's children.
    const float* product(int32_t node, int64_t vector, SearchScratch& scratch) const {
        scratch.products.resize(padded(model_.tree.n_children(node)));
        simd::search().product(scratch.vectors[vector],
                               model_.vector_weights.block(model_.tree, node, model_.inner_of[node]),
                               scratch.products.data());
        return scratch.products.data();
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
        if (has_vectors()) scratch.vectors.read(rows_.vectors, begin, end);
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
            const bool wide = has_vectors() && stop - i >= kShared;
            if (wide) {
                scratch.block.resize(model_.vector_weights.n_columns * padded(model_.tree.n_children(node)));
                simd::search().widen_block(model_.vector_weights.block(model_.tree, node, inner), scratch.block.data());
            }
            const bool all_leaves = has_leaves_only(node);
            while (i < stop) {
                const int64_t end = std::min(stop, i + kTogether), first = i;
                if (wide) multiply(node, visits, i, end, scratch);
                for (; i < end; ++i) {
                    const int32_t q = visits[i].query;
                    const float* products =
                        !has_vectors() ? nullptr
                        : wide         ? scratch.products.data() + (i - first) * padded(model_.tree.n_children(node))
                                       : product(node, q, scratch);
                    margins_of_children(node, row_of(x_, begin + q), ranks, unpacked, products, scratch);
                    BestOf leaves = found.best(q), nodes = next.best(q);
                    offer_children(node, visits[i].score, all_leaves, leaves, nodes, scratch);
                }
            }
            if (lent) model_.index.take_back(inner, scratch.ranks);
        }
    }

    // The products of the vectors of several visits with the node's widened weights.
    void multiply(int32_t node, const Vector<Visit>& visits, int64_t begin, int64_t end, SearchScratch& scratch) const {
        const int32_t n_children = model_.tree.n_children(node);
        scratch.rows.clear();
        for (int64_t i = begin; i < end; ++i) scratch.rows.push_back(scratch.vectors[visits[i].query]);
        scratch.products.resize((end - begin) * padded(n_children));
        simd::search().products(scratch.rows.data(), end - begin, scratch.block.data(), model_.vector_weights.n_columns,
                                n_children, scratch.products.data());
    }

    bool has_leaves_only(int32_t node) const {
        const int32_t* label = model_.tree.label;
        return std::all_of(label + model_.tree.child_ptr[node], label + model_.tree.child_ptr[node + 1],
                           [](int32_t own) { return own >= 0; });
    }

    // The margin below which no child of a node can reach the bar, lowered a little for rounding.
    float least_margin(float base, float bar) const {
        if (model_.link == kLogisticLink || bar < -1e30f) return -std::numeric_limits<float>::infinity();
        const float slack = std::pow(std::max(base - bar, 0.0f), 1.0f / static_cast<float>(model_.link));
        return 1.0f - slack * 1.001f - 1e-3f;
    }

    // Turns the margins in scratch.scores into log-probabilities and offers them, those that have a chance.
    void offer_children(int32_t node, float base, bool all_leaves, BestOf& leaves, BestOf& nodes,
                        SearchScratch& scratch) {
        const int32_t first = model_.tree.child_ptr[node], count = model_.tree.n_children(node);
        if (options_.per_node > 0 && count > options_.per_node) {
            log_probabilities(model_.link, base, count, scratch.scores.data());
            offer_best_children(node, leaves, nodes, scratch);
            return;
        }
        const float limit = all_leaves ? least_margin(base, leaves.bar()) : -std::numeric_limits<float>::infinity();
        if (limit == -std::numeric_limits<float>::infinity()) {
            log_probabilities(model_.link, base, count, scratch.scores.data());
            for (int32_t c = 0; c < count; ++c) offer(first + c, scratch.scores[c], leaves, nodes);
            return;
        }
        if (scratch.promising.size() < count) scratch.promising.resize(count);
        const int64_t n = simd::search().above(scratch.scores.data(), count, limit, scratch.promising.data());
        for (int64_t i = 0; i < n; ++i) {
            const int32_t c = scratch.promising[i];
            float score = scratch.scores[c];
            log_probabilities(model_.link, base, 1, &score);
            offer(first + c, score, leaves, nodes);
        }
    }

    void offer(int32_t child, float score, BestOf& leaves, BestOf& nodes) const {
        const int32_t label = model_.tree.label[child];
        BestOf& target = label >= 0 ? leaves : nodes;
        if (score >= target.bar()) target.offer({score, label >= 0 ? label : child});
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
    void uniform_cost(int64_t row, int64_t vector, SearchScratch& scratch, int32_t* labels, float* scores) {
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
            margins_of_children(top.id, row_of(x_, row), model_.index.ranks(model_.inner_of[top.id]), nullptr,
                                has_vectors() ? product(top.id, vector, scratch) : nullptr, scratch);
            log_probabilities(model_.link, top.score, model_.tree.n_children(top.id), scratch.scores.data());
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
    const SearchedRows& rows_;
    const Csr& x_;
    const SearchOptions options_;
};

}  // namespace labelwood::label_tree
