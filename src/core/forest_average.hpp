// From the leaves that rows reach to their top-k labels: leaves are averaged within a tree, then trees.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "routed_forest.hpp"
#include "topk.hpp"

namespace labelwood {

// Label distributions by leaf number.
template <class Label, class Value>
struct LeafTable {
    const int64_t* ptr;
    const Label* labels;
    const Value* values;
};

// Gathers space.reached by row, keeping the order within a row: row r's are by_row[reached_ptr[r]] onwards.
inline void sort_by_row(int64_t n_rows, RouteSpace& space) {
    space.reached_ptr.assign(static_cast<size_t>(n_rows) + 1, 0);
    for (const Reached& r : space.reached) ++space.reached_ptr[static_cast<size_t>(r.row) + 1];
    for (size_t r = 0; r < static_cast<size_t>(n_rows); ++r) space.reached_ptr[r + 1] += space.reached_ptr[r];
    space.by_row.resize(space.reached.size());
    for (const Reached& r : space.reached) {
        space.by_row[static_cast<size_t>(space.reached_ptr[static_cast<size_t>(r.row)]++)] = r;
    }
    // Filling moved each start to the next row's; move them back.
    for (size_t r = static_cast<size_t>(n_rows); r > 0; --r) space.reached_ptr[r] = space.reached_ptr[r - 1];
    space.reached_ptr[0] = 0;
}

// One row's k best labels; `reached` holds its leaves, those of one tree together.
template <class Label, class Value>
void average_leaves(const Reached* reached, int64_t count, const Routing& routing,
                    const LeafTable<Label, Value>& leaves, int32_t k, RouteSpace& space, int32_t* labels,
                    float* scores) {
    space.touched.clear();
    for (int64_t i = 0; i < count;) {
        int64_t stop = i;
        while (stop < count && reached[stop].tree == reached[i].tree) ++stop;
        const float share = 1.0f / static_cast<float>(stop - i);
        for (; i < stop; ++i) {
            const int32_t leaf = routing.numbers[reached[i].leaf];
            for (int64_t j = leaves.ptr[leaf]; j < leaves.ptr[leaf + 1]; ++j) {
                float& sum = space.sums[leaves.labels[j]];
                if (sum == 0.0f) space.touched.push_back(static_cast<int32_t>(leaves.labels[j]));
                sum += share * widen(leaves.values[j]);
            }
        }
    }
    std::vector<Scored> best(static_cast<size_t>(k));
    int32_t size = 0;
    BestOf heap(best.data(), &size, k);
    for (const int32_t label : space.touched) {
        float& sum = space.sums[static_cast<size_t>(label)];
        const float score = sum / static_cast<float>(routing.n_trees);
        sum = 0.0f;
        if (score > 0.0f && score >= heap.bar()) heap.offer({score, label});
    }
    heap.sort();
    for (int32_t j = 0; j < k; ++j) {
        labels[j] = j < size ? best[static_cast<size_t>(j)].id : -1;
        scores[j] = j < size ? best[static_cast<size_t>(j)].score : 0.0f;
    }
}

// Splits rows into shards of about 64k entries, few enough for the cache and many enough for every thread.
inline std::vector<int64_t> shards_of(const Csr& x, int n_threads) {
    constexpr int64_t kEntries = 65536;
    const int64_t most = std::max<int64_t>(1, (x.n_rows + n_threads - 1) / n_threads);
    std::vector<int64_t> bounds{0};
    for (int64_t row = 1; row <= x.n_rows; ++row) {
        const bool full = x.indptr[row] - x.indptr[bounds.back()] >= kEntries || row - bounds.back() >= most;
        if (full || row == x.n_rows) bounds.push_back(row);
    }
    return bounds;
}

}  // namespace labelwood
