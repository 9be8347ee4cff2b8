// The router of every instance forest: from rows to the leaves they reach, tree by tree.
//
// A node scores each child by the dot product of the (projected) row with the child's sparse vector, plus a
// bias. A large node may have a block (node_blocks.hpp), in which a row looks its columns up. Many rows at
// another node: the children's vectors are laid side by side in a dense block for them. A row alone: the row
// is laid out dense, and each vector gathers from it; or a long vector is searched. Which is cheapest depends
// on the lengths alone, and sums are taken in double precision, so that a row goes the same way alone and in
// a batch.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/csr.hpp"
#include "forest/batch_block.hpp"
#include "forest/packed_rows.hpp"
#include "forest/resident_blocks.hpp"
#include "forest/router_scratch.hpp"

namespace labelwood::forest {

template <class Index, class Weight>
class Router {
  public:
    // `blocks` may be null.
    Router(const Routing& routing, const NodeVectors<Index, Weight>& vectors,
           const ResidentBlocks<Weight>* blocks, const Csr& x)
        : routing_(routing), vectors_(vectors), blocks_(blocks), x_(x) {}

    // The leaves that rows begin .. end reach, in space.reached: of every row, trees in order, and the leaves
    // of one tree from left to right.
    void route(int64_t begin, int64_t end, RouterScratch& space) const {
        space.reached.clear();
        const bool few =
            end - begin < kFewRows && !per_node() && routing_.projection != ProjectionKind::kGaussian;
        if (few) {
            for (int64_t row = begin; row < end; ++row) route_row(begin, row, space);
            return;
        }
        const int64_t mean = (x_.indptr[end] - x_.indptr[begin]) / std::max<int64_t>(end - begin, 1);
        space.mean_width = static_cast<double>(space.projector.width(mean));
        if (routing_.projection == ProjectionKind::kNone) project(begin, end, 0, space);
        for (int32_t tree = 0; tree < routing_.n_trees; ++tree) {
            if (routing_.projection != ProjectionKind::kNone && !routing_.seed_per_node) {
                project(begin, end, routing_.seeds[tree], space);
            }
            route_tree(tree, begin, end, space);
        }
    }

  private:
    using Next = simd::Ahead<Weight>;

    static constexpr int64_t kFewRows = 4;
    static constexpr int32_t kTreesAtOnce = 8;  // whose projections of a row are laid out side by side
    static constexpr size_t kNodesAhead = 3;
    static constexpr int32_t kSeveral = -1;
    // Nanoseconds, roughly: an element laid out and cleared; a column looked up in a block, per 16 children;
    // what a row loses by going on alone.
    static constexpr double kLay = 0.8, kLook = 0.9, kAlone = 100.0;

    bool has_block(int32_t node) const { return blocks_ != nullptr && blocks_->has(node); }
    bool per_node() const { return routing_.seed_per_node && routing_.projection != ProjectionKind::kNone; }
    void project(int64_t begin, int64_t end, uint32_t seed, RouterScratch& space) const {
        space.start.assign(1, 0);
        for (int64_t row = begin; row < end; ++row) {
            space.start.push_back(space.start.back() + space.projector.width(x_.row_nnz(row)));
        }
        space.columns.resize(static_cast<size_t>(space.start.back()));
        space.values.resize(space.columns.size());
        for (int64_t row = begin; row < end; ++row) {
            const int64_t at = space.start[static_cast<size_t>(row - begin)];
            space.projector.project(row_of(x_, row), seed, space.columns.data() + at,
                                    space.values.data() + at);
        }
    }

    // A row as `node` sees it.
    Query seen(int32_t node, int64_t begin, int32_t row, RouterScratch& space) const {
        if (!per_node()) {
            const int64_t at = space.start[static_cast<size_t>(row)];
            return {space.columns.data() + at, space.values.data() + at,
                    space.start[static_cast<size_t>(row) + 1] - at};
        }
        const Query plain = row_of(x_, begin + row);
        const int64_t width = space.projector.width(plain.count);
        space.node_columns.resize(static_cast<size_t>(width));
        space.node_values.resize(static_cast<size_t>(width));
        space.projector.project(plain, routing_.seeds[routing_.numbers[node]], space.node_columns.data(),
                                space.node_values.data());
        return {space.node_columns.data(), space.node_values.data(), width};
    }

    void route_tree(int32_t tree, int64_t begin, int64_t end, RouterScratch& space) const {
        space.rows.resize(static_cast<size_t>(end - begin));
        for (size_t i = 0; i < space.rows.size(); ++i) space.rows[i] = static_cast<int32_t>(i);
        space.pending.assign(1, {tree, 0});
        while (!space.pending.empty()) {
            const auto [node, from] = space.pending.back();
            space.pending.pop_back();
            if (routing_.is_leaf(node)) {
                const int32_t number = routing_.numbers[node];
                for (size_t i = from; i < space.rows.size(); ++i) {
                    space.reached.push_back({space.rows[i], tree, node, number});
                }
                space.rows.resize(from);
                continue;
            }
            space.group.assign(space.rows.begin() + static_cast<int64_t>(from), space.rows.end());
            space.rows.resize(from);
            if (has_block(node)) {
                score_in_block(node, begin, space);
                send_on(node, space);
                continue;
            }
            if (!together(node, space)) {
                for (const int32_t row : space.group) walk(tree, node, begin, row, space);
                continue;
            }
            score_group(node, begin, space);
            send_on(node, space);
        }
    }

    // Whether laying the children's vectors out once for the whole group is cheaper than walking row by row.
    bool together(int32_t node, const RouterScratch& space) const {
        if (space.group.size() < 2) return false;
        const int32_t first = routing_.child_ptr[node], last = routing_.child_ptr[node + 1];
        const auto n_rows = static_cast<double>(space.group.size()), entries = n_rows * space.mean_width;
        double alone = n_rows * kAlone;
        for (int32_t c = first; c < last; ++c) {
            const auto length = static_cast<double>(vectors_.length(c));
            alone += std::min(kGather * length * n_rows, kFind * entries);
        }
        const auto length = static_cast<double>(vectors_.ptr[last] - vectors_.ptr[first]);
        return kLay * length + kLook * entries * ((last - first + 15) / 16) < alone;
    }

    void score_group(int32_t node, int64_t begin, RouterScratch& space) const {
        const int32_t first = routing_.child_ptr[node], count = routing_.child_ptr[node + 1] - first;
        const auto lanes = static_cast<size_t>(lanes_of(count));
        space.scores.resize(space.group.size() * lanes);
        score_together(vectors_, first, count, space.projector.n_columns(), space.block, [&](auto&& score) {
            for (size_t i = 0; i < space.group.size(); ++i) {
                double* scores = space.scores.data() + i * lanes;
                score(seen(node, begin, space.group[i], space), scores);
                for (int32_t child = 0; child < count; ++child) scores[child] += routing_.bias[first + child];
            }
        });
    }

    void score_in_block(int32_t node, int64_t begin, RouterScratch& space) const {
        const int32_t first = routing_.child_ptr[node], count = routing_.child_ptr[node + 1] - first;
        const auto lanes = static_cast<size_t>(lanes_of(count));
        space.scores.resize(space.group.size() * lanes + simd::kMaxLanes);
        for (size_t i = 0; i < space.group.size(); ++i) {
            double* scores = space.scores.data() + i * lanes;
            blocks_->match(node, count, seen(node, begin, space.group[i], space), space.matched[0]);
            blocks_->score(node, count, space.matched[0], Next{}, scores);
            for (int32_t child = 0; child < count; ++child) scores[child] += routing_.bias[first + child];
        }
    }

    // The best child, the first of equals; or kSeveral: every child above the threshold. Without branches, as
    // no processor guesses where a row goes; so are the two functions below.
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
    size_t goes_to(int32_t child, int32_t choice, const double* scores) const {
        return static_cast<size_t>((choice == child) |
                                   ((choice == kSeveral) & (scores[child] > routing_.threshold)));
    }

    void send_on(int32_t node, RouterScratch& space) const {
        const int32_t first = routing_.child_ptr[node], count = routing_.child_ptr[node + 1] - first;
        const auto lanes = static_cast<size_t>(lanes_of(count));
        space.choices.resize(space.group.size());
        for (size_t i = 0; i < space.group.size(); ++i) {
            space.choices[i] = choice(space.scores.data() + i * lanes, count);
        }
        // Backwards, so that the first child is taken up first.
        for (int32_t child = count - 1; child >= 0; --child) {
            const size_t from = space.rows.size();
            space.rows.resize(from + space.group.size());
            size_t end = from;
            for (size_t i = 0; i < space.group.size(); ++i) {
                space.rows[end] = space.group[i];
                end += goes_to(child, space.choices[i], space.scores.data() + i * lanes);
            }
            space.rows.resize(end);
            if (end == from) continue;
            space.pending.emplace_back(first + child, from);
            prefetch_children(first + child);
        }
    }

    // One row from `node` down to its leaves.
    void walk(int32_t tree, int32_t node, int64_t begin, int32_t row, RouterScratch& space) const {
        space.path.assign(1, node);
        LaidOut& laid = space.laid[0];
        if (!per_node()) laid.lay(seen(node, begin, row, space), space.dense.data());
        while (!space.path.empty()) {
            const int32_t at = space.path.back();
            space.path.pop_back();
            if (routing_.is_leaf(at)) {
                space.reached.push_back({row, tree, at, routing_.numbers[at]});
                continue;
            }
            if (per_node()) laid.lay(seen(at, begin, row, space), space.dense.data());
            if (has_block(at)) match(at, laid.row, space.matched[0]);
            step(at, laid, space.matched[0], Next{}, space.path, space);
            if (per_node()) laid.clear();
        }
        if (!per_node()) laid.clear();
    }

    // Scores the children of an inner node for a row and appends those it goes to, the first last. A node
    // with a block has been matched. Asks for the memory of the node that comes next line by line as it reads
    // its own, which took three quarters of the time of asking for all of it before.
    void step(int32_t node, const LaidOut& row, const Matched& matched, const Next& next,
              std::vector<int32_t>& path, RouterScratch& space) const {
        const int32_t first = routing_.child_ptr[node], count = routing_.child_ptr[node + 1] - first;
        space.scores.resize(static_cast<size_t>(count + simd::kMaxLanes));
        if (has_block(node)) {
            blocks_->score(node, count, matched, next, space.scores.data());
        } else {
            for (int64_t i = 0; i < next.count; ++i) __builtin_prefetch(next.block + next.at[i]);
            row.dots(vectors_.features, vectors_.weights, vectors_.ptr + first, count, space.scores.data());
        }
        for (int32_t child = 0; child < count; ++child) {
            space.scores[static_cast<size_t>(child)] += routing_.bias[first + child];
        }
        const int32_t chosen = choice(space.scores.data(), count);
        for (int32_t child = count - 1; child >= 0; --child) {
            if (goes_to(child, chosen, space.scores.data()) != 0) path.push_back(first + child);
        }
    }

    // One row through all trees. Its nodes lie in cold memory: several trees take turns, so that the vectors
    // of one are on their way while those of others are used.
    void route_row(int64_t begin, int64_t row, RouterScratch& space) const {
        const bool plain = routing_.projection == ProjectionKind::kNone;
        const int32_t at_once = plain ? routing_.n_trees : kTreesAtOnce;
        const auto width = static_cast<size_t>(space.projector.n_columns());
        const auto number = static_cast<int32_t>(row - begin);
        if (!plain) space.dense.resize(width * static_cast<size_t>(at_once), 0.0f);
        if (!plain) space.laid.resize(static_cast<size_t>(at_once));
        for (int32_t from = 0; from < routing_.n_trees; from += at_once) {
            const int32_t to = std::min(from + at_once, routing_.n_trees);
            const auto layouts = plain ? size_t{1} : static_cast<size_t>(to - from);
            const auto length = static_cast<size_t>(x_.row_nnz(row));
            space.columns.resize(length * layouts);
            space.values.resize(space.columns.size());
            for (size_t i = 0; i < layouts; ++i) {
                int32_t* columns = space.columns.data() + i * length;
                float* values = space.values.data() + i * length;
                space.projector.project(row_of(x_, row),
                                        plain ? 0 : routing_.seeds[from + static_cast<int32_t>(i)], columns,
                                        values);
                space.laid[i].lay({columns, values, x_.row_nnz(row)}, space.dense.data() + i * width);
            }
            take_turns(from, to, space);
            for (size_t i = 0; i < layouts; ++i) space.laid[i].clear();
            for (int32_t i = 0; i < to - from; ++i) {
                for (const int32_t leaf : space.leaves[static_cast<size_t>(i)]) {
                    space.reached.push_back({number, from + i, leaf, routing_.numbers[leaf]});
                }
            }
        }
    }

    // Walks trees from .. to; the leaves of each are left in space.leaves.
    void take_turns(int32_t from, int32_t to, RouterScratch& space) const {
        const auto n_trees = static_cast<size_t>(to - from);
        const bool plain = routing_.projection == ProjectionKind::kNone;
        if (space.paths.size() < n_trees) {
            space.paths.resize(n_trees);
            space.leaves.resize(n_trees);
            space.matched.resize(n_trees);
        }
        space.live.clear();
        for (size_t i = 0; i < n_trees; ++i) {
            space.paths[i].assign(1, from + static_cast<int32_t>(i));
            space.leaves[i].clear();
            space.live.push_back(static_cast<int32_t>(i));
        }
        while (!space.live.empty()) {
            space.next.clear();
            size_t kept = 0;
            for (const int32_t i : space.live) {
                const int32_t node = next_inner(static_cast<size_t>(i), space);
                if (node < 0) continue;
                space.live[kept++] = i;
                space.next.push_back(node);
                __builtin_prefetch(vectors_.ptr + routing_.child_ptr[node]);
                __builtin_prefetch(routing_.bias + routing_.child_ptr[node]);
            }
            space.live.resize(kept);
            for (size_t j = 0; j < std::min(kNodesAhead, kept); ++j) prefetch_children(space.next[j]);
            for (size_t j = 0; j <= kept; ++j) {
                if (j + kNodesAhead < kept) prefetch_children(space.next[j + kNodesAhead]);
                Next next;
                if (j < kept && has_block(space.next[j])) {
                    const auto i = static_cast<size_t>(space.live[j]);
                    match(space.next[j], space.laid[plain ? 0 : i].row, space.matched[i]);
                    next = blocks_->ahead(space.next[j], space.matched[i]);
                }
                if (j == 0) continue;
                const auto i = static_cast<size_t>(space.live[j - 1]);
                step(space.next[j - 1], space.laid[plain ? 0 : i], space.matched[i], next, space.paths[i],
                     space);
                for (const int32_t node : space.paths[i]) __builtin_prefetch(routing_.child_ptr + node);
            }
        }
    }

    void match(int32_t node, const Query& row, Matched& matched) const {
        blocks_->match(node, routing_.child_ptr[node + 1] - routing_.child_ptr[node], row, matched);
    }

    // The next inner node of a tree's path, or -1 at its end; leaves on the way are reached.
    int32_t next_inner(size_t tree, RouterScratch& space) const {
        std::vector<int32_t>& path = space.paths[tree];
        while (!path.empty()) {
            const int32_t node = path.back();
            path.pop_back();
            if (!routing_.is_leaf(node)) return node;
            space.leaves[tree].push_back(node);
        }
        return -1;
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
