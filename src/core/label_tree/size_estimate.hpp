// The size of a label tree before it is trained: the features of each inner node (Eq. 18 of the paper).
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <numeric>

#include "base/csr.hpp"
#include "base/parallel.hpp"
#include "base/span.hpp"
#include "label_tree/node_problem.hpp"
#include "label_tree/tree.hpp"
#include "sparse/training_rows.hpp"

namespace labelwood::label_tree {

struct NodeSizes {
    Vector<int64_t> features;  // per inner node, in id order: features that its rows use
    Vector<int64_t> entries;   // per inner node: non-zeros of its rows
    Vector<int64_t> rows;      // per node, leaves included
};

inline NodeSizes count_nodes(const sparse::TrainingRows& rows, const RowLists& members, const Tree& tree, int n_threads,
                             Monitor& monitor) {
    const Csr& x = rows.x;
    const Vector<int32_t> inner = inner_nodes(tree);
    const int64_t n = inner.size();
    NodeSizes sizes{Vector<int64_t>(n), Vector<int64_t>(n), {}};
    for (int32_t node = 0; node < tree.n_nodes; ++node) sizes.rows.push_back(members.count(node));
    // A bit per column is enough to recognise it, and stays in cache.
    const int64_t n_words = (x.n_cols + 63) / 64;
    Vector<Vector<uint64_t>> seen(std::max(n_threads, 1));
    parallel_for(n, n_threads, monitor, [&](int64_t i, int worker) {
        const int32_t node = inner[i];
        Vector<uint64_t>& bits = seen[worker];
        bits.assign(n_words, 0);
        int64_t entries = 0;
        for (const int32_t row : members[node]) {
            rows.open(row);
            entries += x.row_nnz(row);
            for (int64_t j = x.indptr[row]; j < x.indptr[row + 1]; ++j) {
                bits[x.indices[j] >> 6] |= uint64_t{1} << (x.indices[j] & 63);
            }
        }
        sizes.features[i] = std::accumulate(bits.begin(), bits.end(), int64_t{0},
                                            [](int64_t sum, uint64_t word) { return sum + std::popcount(word); });
        sizes.entries[i] = entries;
    });
    return sizes;
}

}  // namespace labelwood::label_tree
