// The top-k labels of rows from the leaves they reach: averages over the leaves of a tree, then over trees; or over
// all leaves at once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>

#include "base/span.hpp"
#include "base/topk.hpp"
#include "forest/label_sums.hpp"
#include "forest/router_scratch.hpp"

namespace labelwood::forest {

// Label distributions by leaf number.
template <class Label, class Value>
struct LeafTable {
    const int64_t* ptr;
    const Label* labels;
    const Value* values;

    void prefetch(int32_t leaf) const {
        constexpr int64_t kLine = 64;
        const auto* ids = reinterpret_cast<const char*>(labels + ptr[leaf]);
        const auto* last_id = reinterpret_cast<const char*>(labels + ptr[leaf + 1]);
        for (; ids < last_id; ids += kLine) __builtin_prefetch(ids);
        const auto* shares = reinterpret_cast<const char*>(values + ptr[leaf]);
        const auto* last_share = reinterpret_cast<const char*>(values + ptr[leaf + 1]);
        for (; shares < last_share; shares += kLine) __builtin_prefetch(shares);
    }
};

// Sorts scratch.reached by the places of rows; the order within a row stays. The leaves of the row at place p
// are by_row[reached_ptr[p]] .. by_row[reached_ptr[p + 1]].
inline void sort_by_row(const Vector<int32_t>& place, RouterScratch& scratch) {
    Vector<int64_t>& ptr = scratch.reached_ptr;
    auto place_of = [&](const ReachedLeaf& r) { return place[r.row]; };
    ptr.assign(place.size() + 1, 0);
    for (const ReachedLeaf& r : scratch.reached) ++ptr[place_of(r) + 1];
    for (int64_t p = 0; p < place.size(); ++p) ptr[p + 1] += ptr[p];
    scratch.by_row.resize(scratch.reached.size());
    for (const ReachedLeaf& r : scratch.reached) {
        scratch.by_row[ptr[place_of(r)]++] = r;
    }
    // Filling moved each start to the start of the next row; move them back.
    for (int64_t p = place.size(); p > 0; --p) ptr[p] = ptr[p - 1];
    ptr[0] = 0;
}

// Puts rows that share a leaf of the first tree next to each other. Such rows share leaves of other trees
// too, and find them in the cache.
inline void place_alike(int64_t n_rows, RouterScratch& scratch) {
    scratch.place.assign(n_rows, -1);
    int32_t next = 0;
    for (const ReachedLeaf& r : scratch.reached) {
        if (r.tree > 0 && next == n_rows) break;
        int32_t& place = scratch.place[r.row];
        if (place < 0) place = next++;
    }
}

// The k best labels of every row of a shard; labels and scores have k columns. `allowed` holds 0 for labels to leave
// out; null: none.
template <class Label, class Value>
class LeafAverager {
  public:
    LeafAverager(const LeafTable<Label, Value>& leaves, const RoutingOptions& routing, int32_t k,
                 const uint8_t* allowed)
        : leaves_(leaves), n_trees_(routing.n_trees), leaf_votes_(routing.leaf_votes), k_(k), allowed_(allowed) {}

    void average(int64_t n_rows, int64_t n_labels, RouterScratch& scratch, int32_t* labels, float* scores) const {
        place_alike(n_rows, scratch);
        sort_by_row(scratch.place, scratch);
        scratch.sums.reserve(n_labels);
        scratch.best.resize(k_);
        const ReachedLeaf* all = scratch.by_row.data();
        const auto count = scratch.by_row.size();
        for (int64_t i = 0; i < std::min(count, kPointersAhead); ++i) {
            __builtin_prefetch(leaves_.ptr + all[i].number);
        }
        for (int64_t i = 0; i < std::min(count, kLeavesAhead); ++i) leaves_.prefetch(all[i].number);
        scratch.row_at.resize(n_rows);
        for (int64_t row = 0; row < n_rows; ++row) {
            scratch.row_at[scratch.place[row]] = static_cast<int32_t>(row);
        }
        for (int64_t place = 0; place < n_rows; ++place) {
            const int64_t from = scratch.reached_ptr[place], to = scratch.reached_ptr[place + 1];
            sum_leaves(from, to, count, all, scratch.sums);
            const int64_t at = scratch.row_at[place] * static_cast<int64_t>(k_);
            const auto votes = static_cast<float>(leaf_votes_ ? to - from : n_trees_);
            write_best(votes, scratch, labels + at, scores + at);
        }
    }

  private:
    // Prefetch distances: a leaf and the pointer to it are both in cold memory.
    static constexpr int64_t kLeavesAhead = 6, kPointersAhead = 16;

    // Sums the leaves from .. to of one row; leaves of a tree are adjacent. `end` is the end of all rows.
    void sum_leaves(int64_t from, int64_t to, int64_t end, const ReachedLeaf* all, LabelSums& sums) const {
        for (int64_t i = from; i < to;) {
            int64_t stop = i;
            while (stop < to && all[stop].tree == all[i].tree) ++stop;
            const float share = leaf_votes_ ? 1.0f : 1.0f / static_cast<float>(stop - i);
            for (; i < stop; ++i) {
                if (i + kPointersAhead < end) {
                    __builtin_prefetch(leaves_.ptr + all[i + kPointersAhead].number);
                }
                if (i + kLeavesAhead < end) leaves_.prefetch(all[i + kLeavesAhead].number);
                const int64_t first = leaves_.ptr[all[i].number], last = leaves_.ptr[all[i].number + 1];
                sums.add(leaves_.labels + first, leaves_.values + first, last - first, share);
            }
        }
    }

    void write_best(float votes, RouterScratch& scratch, int32_t* labels, float* scores) const {
        int32_t size = 0;
        BestOf heap(scratch.best.data(), &size, k_);
        scratch.sums.drain(votes, allowed_, heap);
        heap.sort();
        write_topk(scratch.best.data(), size, k_, labels, scores, std::identity());
    }

    const LeafTable<Label, Value> leaves_;
    const int32_t n_trees_;
    const bool leaf_votes_;
    const int32_t k_;
    const uint8_t* allowed_;
};

// Splits rows into shards of about equal numbers of entries; every thread gets the same number of shards.
// Larger shards read the nodes less often. 256k entries take 3 MB with their projection.
inline Vector<int64_t> shards_of(const Csr& x, int n_threads) {
    constexpr int64_t kEntries = 1 << 18;
    const int64_t threads = std::max(n_threads, 1);
    const int64_t rounds = std::max<int64_t>(1, x.nnz() / (kEntries * threads));
    const int64_t count = std::clamp<int64_t>(rounds * threads, 1, std::max<int64_t>(x.n_rows, 1));
    Vector<int64_t> bounds{0};
    for (int64_t row = 1; row <= x.n_rows; ++row) {
        const auto shard = bounds.size();
        // A row counts as one entry more, so that empty rows are divided too.
        const bool full = (x.indptr[row] + row) * count >= shard * (x.nnz() + x.n_rows);
        if (full || row == x.n_rows) bounds.push_back(row);
    }
    return bounds;
}

}  // namespace labelwood::forest
