// The size of a label tree before it is trained: the features that each inner node uses (Eq. 18 of the paper).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/csr.hpp"
#include "base/parallel.hpp"
#include "label_tree/node_problem.hpp"
#include "label_tree/tree.hpp"

namespace labelwood {

struct NodeSizes {
    std::vector<int64_t> features;  // per inner node, in the order of ids: used by its rows
    std::vector<int64_t> entries;   // likewise: non-zeros of its rows
    std::vector<int64_t> rows;      // per node, leaves included
};

inline std::vector<int32_t> inner_nodes(const Tree& tree) {
    std::vector<int32_t> inner;
    for (int32_t u = 0; u < tree.n_nodes; ++u) {
        if (!tree.is_leaf(u)) inner.push_back(u);
    }
    return inner;
}

inline NodeSizes count_nodes(const TrainingRows& rows, const NodeMembers& members, const Tree& tree,
                             int n_threads, Monitor& monitor) {
    const Csr& x = rows.x;
    const std::vector<int32_t> inner = inner_nodes(tree);
    const size_t n = inner.size();
    NodeSizes sizes{std::vector<int64_t>(n), std::vector<int64_t>(n), {}};
    for (int32_t node = 0; node < tree.n_nodes; ++node) sizes.rows.push_back(members.count(node));
    // A bit per column is enough to know it again, and stays in cache.
    const auto n_words = static_cast<size_t>((x.n_cols + 63) / 64);
    std::vector<std::vector<uint64_t>> seen(static_cast<size_t>(std::max(n_threads, 1)));
    parallel_for(static_cast<int64_t>(n), n_threads, monitor, [&](int64_t task, int worker) {
        const auto i = static_cast<size_t>(task);
        const int32_t node = inner[i];
        std::vector<uint64_t>& bits = seen[static_cast<size_t>(worker)];
        bits.assign(n_words, 0);
        int64_t entries = 0;
        for (const int32_t* row = members.begin(node); row != members.end(node); ++row) {
            rows.open(*row);
            entries += x.row_nnz(*row);
            for (int64_t j = x.indptr[*row]; j < x.indptr[*row + 1]; ++j) {
                bits[static_cast<size_t>(x.indices[j]) >> 6] |= uint64_t{1} << (x.indices[j] & 63);
            }
        }
        int64_t features = 0;
        for (const uint64_t word : bits) features += __builtin_popcountll(word);
        sizes.features[i] = features;
        sizes.entries[i] = entries;
    });
    return sizes;
}

}  // namespace labelwood
