// The router of every instance forest: from rows to the leaves they reach, tree by tree.
//
// A node scores each child by the dot product of the projected row with the child's sparse vector, plus a
// bias. There are three ways to compute it:
// - a large node has a resident block (resident_blocks.hpp), in which a row looks its columns up;
// - for many rows, the child vectors are laid side by side in a dense block (batch_block.hpp);
// - a single row is laid out dense, and each vector gathers from it, or is searched if it is long.
// The choice depends on lengths only, and sums have double precision, so a row takes the same path alone and
// in a batch.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/csr.hpp"
#include "base/span.hpp"
#include "forest/batch_block.hpp"
#include "forest/packed_rows.hpp"
#include "forest/resident_blocks.hpp"
#include "forest/router_scratch.hpp"

namespace labelwood::forest {

template <class Index, class Weight>
class Router {
  public:
    // `blocks` may be null.
    Router(const Routing& routing, const NodeVectors<Index, Weight>& vectors, const ResidentBlocks<Weight>* blocks,
           const Csr& x)
        : routing_(routing), vectors_(vectors), blocks_(blocks), x_(x) {}

    // Writes the leaves that rows begin .. end reach to scratch.reached. For each row, trees are in order,
    // and the leaves of a tree go from left to right.
    void route(int64_t begin, int64_t end, RouterScratch& scratch) const {
        scratch.reached.clear();
        const bool few = end - begin < kFewRows && !per_node() && routing_.projection != ProjectionKind::kGaussian;
        if (few) {
            for (int64_t row = begin; row < end; ++row) route_row(begin, row, scratch);
            return;
        }
        const int64_t mean = (x_.indptr[end] - x_.indptr[begin]) / std::max<int64_t>(end - begin, 1);
        scratch.mean_width = static_cast<double>(scratch.projector.width(mean));
        if (routing_.projection == ProjectionKind::kNone) project(begin, end, 0, scratch);
        for (int32_t tree = 0; tree < routing_.n_trees; ++tree) {
            if (routing_.projection != ProjectionKind::kNone && !routing_.seed_per_node) {
                project(begin, end, routing_.seeds[tree], scratch);
            }
            route_tree(tree, begin, end, scratch);
        }
    }

  private:
    using Next = simd::Ahead<Weight>;

    static constexpr int64_t kFewRows = 4;
    static constexpr int32_t kTreesAtOnce = 8;  // projections of a row that are laid out side by side
    static constexpr int64_t kNodesAhead = 3;
    static constexpr int32_t kSeveral = -1, kWide = 5;
    // Rough costs in nanoseconds: laying out and clearing an element; looking up a column, per 16 children;
    // routing a row alone.
    static constexpr double kLay = 0.8, kLook = 0.9, kAlone = 100.0;

    // Of few children, a batch lays the vectors out, which is faster than a resident block.
    bool is_narrow(int32_t node) const { return routing_.child_ptr[node + 1] - routing_.child_ptr[node] < kWide; }
    bool has_block(int32_t node) const { return blocks_ != nullptr && blocks_->has(node); }
    bool per_node() const { return routing_.seed_per_node && routing_.projection != ProjectionKind::kNone; }
    void project(int64_t begin, int64_t end, uint32_t seed, RouterScratch& scratch) const {
        scratch.start.assign(1, 0);
        for (int64_t row = begin; row < end; ++row) {
            scratch.start.push_back(scratch.start.back() + scratch.projector.width(x_.row_nnz(row)));
        }
        scratch.columns.resize(scratch.start.back());
        scratch.values.resize(scratch.columns.size());
        for (int64_t row = begin; row < end; ++row) {
            const int64_t at = scratch.start[row - begin];
            scratch.projector.project(row_of(x_, row), seed, scratch.columns.data() + at, scratch.values.data() + at);
        }
    }

    // The row after the projection that `node` uses.
    Query seen(int32_t node, int64_t begin, int32_t row, RouterScratch& scratch) const {
        if (!per_node()) {
            const int64_t at = scratch.start[row];
            return {scratch.columns.data() + at, scratch.values.data() + at, scratch.start[row + 1] - at};
        }
        const Query plain = row_of(x_, begin + row);
        const int64_t width = scratch.projector.width(plain.count);
        scratch.node_columns.resize(width);
        scratch.node_values.resize(width);
        scratch.projector.project(plain, routing_.seeds[routing_.numbers[node]], scratch.node_columns.data(),
                                  scratch.node_values.data());
        return {scratch.node_columns.data(), scratch.node_values.data(), width};
    }

    void route_tree(int32_t tree, int64_t begin, int64_t end, RouterScratch& scratch) const {
        scratch.rows.resize(end - begin);
        for (int64_t i = 0; i < scratch.rows.size(); ++i) scratch.rows[i] = static_cast<int32_t>(i);
        scratch.pending.assign(1, {tree, 0});
        while (!scratch.pending.empty()) {
            const auto [node, from] = scratch.pending.back();
            scratch.pending.pop_back();
            if (routing_.is_leaf(node)) {
                const int32_t number = routing_.numbers[node];
                for (int64_t i = from; i < scratch.rows.size(); ++i) {
                    scratch.reached.push_back({scratch.rows[i], tree, node, number});
                }
                scratch.rows.resize(from);
                continue;
            }
            scratch.group.assign(scratch.rows.begin() + static_cast<int64_t>(from), scratch.rows.end());
            scratch.rows.resize(from);
            if (has_block(node) && !is_narrow(node)) {
                score_in_block(node, begin, scratch);
                send_on(node, scratch);
                continue;
            }
            if (!together(node, scratch)) {
                for (const int32_t row : scratch.group) walk(tree, node, begin, row, scratch);
                continue;
            }
            score_group(node, begin, scratch);
            send_on(node, scratch);
        }
    }

    // True if laying the child vectors out for the whole group is cheaper than walking row by row.
    bool together(int32_t node, const RouterScratch& scratch) const {
        if (scratch.group.size() < 2) return false;
        const int32_t first = routing_.child_ptr[node], last = routing_.child_ptr[node + 1];
        const auto n_rows = static_cast<double>(scratch.group.size()), entries = n_rows * scratch.mean_width;
        double alone = n_rows * kAlone;
        for (int32_t c = first; c < last; ++c) {
            const auto length = static_cast<double>(vectors_.length(c));
            alone += std::min(kGather * length * n_rows, kFind * entries);
        }
        const auto length = static_cast<double>(vectors_.ptr[last] - vectors_.ptr[first]);
        return kLay * length + kLook * entries * ((last - first + 15) / 16) < alone;
    }

    void score_group(int32_t node, int64_t begin, RouterScratch& scratch) const {
        const int32_t first = routing_.child_ptr[node], count = routing_.child_ptr[node + 1] - first;
        const int64_t lanes = lanes_of(count);
        scratch.scores.resize(scratch.group.size() * lanes);
        score_together(vectors_, first, count, scratch.projector.n_columns(), scratch.block, [&](auto&& score) {
            for (int64_t i = 0; i < scratch.group.size(); ++i) {
                double* scores = scratch.scores.data() + i * lanes;
                score(seen(node, begin, scratch.group[i], scratch), scores);
                for (int32_t child = 0; child < count; ++child) scores[child] += routing_.bias[first + child];
            }
        });
    }

    void score_in_block(int32_t node, int64_t begin, RouterScratch& scratch) const {
        const int32_t first = routing_.child_ptr[node], count = routing_.child_ptr[node + 1] - first;
        const int64_t lanes = lanes_of(count);
        scratch.scores.resize(scratch.group.size() * lanes + simd::kMaxLanes);
        for (int64_t i = 0; i < scratch.group.size(); ++i) {
            double* scores = scratch.scores.data() + i * lanes;
            blocks_->match(node, count, seen(node, begin, scratch.group[i], scratch), scratch.matched[0]);
            blocks_->score(node, count, scratch.matched[0], Next{}, scores);
            for (int32_t child = 0; child < count; ++child) scores[child] += routing_.bias[first + child];
        }
    }

    // The best child, the first if several are equal; or kSeveral: every child above the threshold. This and
    // the next two functions have no branches, because no processor predicts where a row goes.
    int32_t choice(const double* scores, int32_t count) const {
        int32_t best = 0;
        double top = scores[0];
        for (int32_t child = 1; child < count; ++child) {
            const bool above = scores[child] > top;
            best = above ? child : best;
            top = above ? scores[child] : top;
        }
        const bool several = routing_.several & (top > routing_.threshold);
        return several ? kSeveral : best;
    }
    int64_t goes_to(int32_t child, int32_t choice, const double* scores) const {
        return (choice == child) | ((choice == kSeveral) & (scores[child] > routing_.threshold));
    }

    void send_on(int32_t node, RouterScratch& scratch) const {
        const int32_t first = routing_.child_ptr[node], count = routing_.child_ptr[node + 1] - first;
        const int64_t lanes = lanes_of(count);
        scratch.choices.resize(scratch.group.size());
        for (int64_t i = 0; i < scratch.group.size(); ++i) {
            scratch.choices[i] = choice(scratch.scores.data() + i * lanes, count);
        }
        // Backwards, so that the first child is visited first.
        for (int32_t child = count - 1; child >= 0; --child) {
            const int64_t from = scratch.rows.size();
            scratch.rows.resize(from + scratch.group.size());
            int64_t end = from;
            for (int64_t i = 0; i < scratch.group.size(); ++i) {
                scratch.rows[end] = scratch.group[i];
                end += goes_to(child, scratch.choices[i], scratch.scores.data() + i * lanes);
            }
            scratch.rows.resize(end);
            if (end == from) continue;
            scratch.pending.emplace_back(first + child, from);
            prefetch_children(first + child);
        }
    }

    // One row from `node` down to its leaves.
    void walk(int32_t tree, int32_t node, int64_t begin, int32_t row, RouterScratch& scratch) const {
        scratch.path.assign(1, node);
        LaidOut& laid = scratch.laid[0];
        if (!per_node()) laid.lay(seen(node, begin, row, scratch), scratch.dense.data());
        while (!scratch.path.empty()) {
            const int32_t at = scratch.path.back();
            scratch.path.pop_back();
            if (routing_.is_leaf(at)) {
                scratch.reached.push_back({row, tree, at, routing_.numbers[at]});
                continue;
            }
            if (per_node()) laid.lay(seen(at, begin, row, scratch), scratch.dense.data());
            if (has_block(at)) match(at, laid.row, scratch.matched[0]);
            step(at, laid, scratch.matched[0], Next{}, scratch.path, scratch);
            if (per_node()) laid.clear();
        }
        if (!per_node()) laid.clear();
    }

    // Scores the children of an inner node and appends those that the row goes to, the first child last. A
    // node with a block must be matched before. Prefetches the next node one cache line at a time, which is
    // 25 % faster than prefetching it whole.
    void step(int32_t node, const LaidOut& row, const Matched& matched, const Next& next, Vector<int32_t>& path,
              RouterScratch& scratch) const {
        const int32_t first = routing_.child_ptr[node], count = routing_.child_ptr[node + 1] - first;
        scratch.scores.resize(count + simd::kMaxLanes);
        if (has_block(node)) {
            blocks_->score(node, count, matched, next, scratch.scores.data());
        } else {
            for (int64_t i = 0; i < next.count; ++i) __builtin_prefetch(next.block + next.at[i]);
            row.dots(vectors_.features, vectors_.weights, vectors_.ptr + first, count, scratch.scores.data());
        }
        for (int32_t child = 0; child < count; ++child) {
            scratch.scores[child] += routing_.bias[first + child];
        }
        const int32_t chosen = choice(scratch.scores.data(), count);
        for (int32_t child = count - 1; child >= 0; --child) {
            if (goes_to(child, chosen, scratch.scores.data()) != 0) path.push_back(first + child);
        }
    }

    // Routes one row through all trees. Nodes are in cold memory, so trees take turns: the vectors of one
    // tree are prefetched while those of others are used.
    void route_row(int64_t begin, int64_t row, RouterScratch& scratch) const {
        const bool plain = routing_.projection == ProjectionKind::kNone;
        const int32_t at_once = plain ? routing_.n_trees : kTreesAtOnce;
        const int64_t width = scratch.projector.n_columns();
        const auto number = static_cast<int32_t>(row - begin);
        if (!plain) scratch.dense.resize(width * at_once, 0.0f);
        if (!plain) scratch.laid.resize(at_once);
        for (int32_t from = 0; from < routing_.n_trees; from += at_once) {
            const int32_t to = std::min(from + at_once, routing_.n_trees);
            const int64_t layouts = plain ? 1 : to - from;
            const int64_t length = x_.row_nnz(row);
            scratch.columns.resize(length * layouts);
            scratch.values.resize(scratch.columns.size());
            for (int64_t i = 0; i < layouts; ++i) {
                int32_t* columns = scratch.columns.data() + i * length;
                float* values = scratch.values.data() + i * length;
                scratch.projector.project(row_of(x_, row), plain ? 0 : routing_.seeds[from + static_cast<int32_t>(i)],
                                          columns, values);
                scratch.laid[i].lay({columns, values, x_.row_nnz(row)}, scratch.dense.data() + i * width);
            }
            take_turns(from, to, scratch);
            for (int64_t i = 0; i < layouts; ++i) scratch.laid[i].clear();
            for (int32_t i = 0; i < to - from; ++i) {
                for (const int32_t leaf : scratch.leaves[i]) {
                    scratch.reached.push_back({number, from + i, leaf, routing_.numbers[leaf]});
                }
            }
        }
    }

    // Walks trees from .. to and writes the leaves of each to scratch.leaves.
    void take_turns(int32_t from, int32_t to, RouterScratch& scratch) const {
        const int64_t n_trees = to - from;
        const bool plain = routing_.projection == ProjectionKind::kNone;
        if (scratch.paths.size() < n_trees) {
            scratch.paths.resize(n_trees);
            scratch.leaves.resize(n_trees);
            scratch.matched.resize(n_trees);
        }
        const int64_t length = scratch.laid[0].row.count;
        scratch.live.clear();
        for (int64_t i = 0; i < n_trees; ++i) {
            scratch.paths[i].assign(1, from + static_cast<int32_t>(i));
            scratch.leaves[i].clear();
            scratch.live.push_back(static_cast<int32_t>(i));
        }
        while (!scratch.live.empty()) {
            scratch.next.clear();
            int64_t kept = 0;
            for (const int32_t i : scratch.live) {
                const int32_t node = next_inner(i, scratch);
                if (node < 0) continue;
                scratch.live[kept++] = i;
                scratch.next.push_back(node);
                __builtin_prefetch(vectors_.ptr + routing_.child_ptr[node]);
                __builtin_prefetch(routing_.bias + routing_.child_ptr[node]);
            }
            scratch.live.resize(kept);
            for (int64_t j = 0; j < std::min(kNodesAhead, kept); ++j) prefetch_read(scratch.next[j], length);
            for (int64_t j = 0; j <= kept; ++j) {
                if (j + kNodesAhead < kept) prefetch_read(scratch.next[j + kNodesAhead], length);
                Next next;
                if (j < kept && has_block(scratch.next[j])) {
                    const int64_t i = scratch.live[j];
                    match(scratch.next[j], scratch.laid[plain ? 0 : i].row, scratch.matched[i]);
                    next = blocks_->ahead(scratch.next[j], scratch.matched[i]);
                }
                if (j == 0) continue;
                const int64_t i = scratch.live[j - 1];
                step(scratch.next[j - 1], scratch.laid[plain ? 0 : i], scratch.matched[i], next, scratch.paths[i],
                     scratch);
                for (const int32_t node : scratch.paths[i]) __builtin_prefetch(routing_.child_ptr + node);
            }
        }
    }

    void match(int32_t node, const Query& row, Matched& matched) const {
        blocks_->match(node, routing_.child_ptr[node + 1] - routing_.child_ptr[node], row, matched);
    }

    // The next inner node of a tree's path, or -1 at its end. Leaves on the way are recorded.
    int32_t next_inner(int64_t tree, RouterScratch& scratch) const {
        Vector<int32_t>& path = scratch.paths[tree];
        while (!path.empty()) {
            const int32_t node = path.back();
            path.pop_back();
            if (!routing_.is_leaf(node)) return node;
            scratch.leaves[tree].push_back(node);
        }
        return -1;
    }

    // For a row of `length` entries alone: of a node that is searched, it reads few places.
    void prefetch_read(int32_t node, int64_t length) const {
        const int32_t first = routing_.child_ptr[node], last = routing_.child_ptr[node + 1];
        if (!has_block(node) && is_searched((vectors_.ptr[last] - vectors_.ptr[first]) / (last - first), length))
            return;
        prefetch_children(node);
    }

    void prefetch_children(int32_t node) const {
        if (has_block(node)) return blocks_->prefetch(node);
        constexpr int64_t kLine = 64;
        const int64_t from = vectors_.ptr[routing_.child_ptr[node]];
        const int64_t to = vectors_.ptr[routing_.child_ptr[node + 1]];
        for (int64_t j = from; j < to; j += kLine / static_cast<int64_t>(sizeof(Index))) {
            __builtin_prefetch(vectors_.features + j);
        }
        for (int64_t j = from; j < to; j += kLine / static_cast<int64_t>(sizeof(Weight))) {
            __builtin_prefetch(vectors_.weights + j);
        }
    }

    const Routing routing_;
    const NodeVectors<Index, Weight> vectors_;
    const ResidentBlocks<Weight>* blocks_;
    const Csr x_;
};

}  // namespace labelwood::forest
