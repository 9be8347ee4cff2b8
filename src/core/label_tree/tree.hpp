// Label trees as flat arrays, and which training rows reach which node.
#pragma once

#include <cstdint>
#include <vector>

#include "base/csr.hpp"

namespace labelwood::label_tree {

// A label tree someone else owns. Ids are breadth-first, so children of a node are contiguous and follow it:
// children of u are child_ptr[u] .. child_ptr[u + 1]. label[u] is a leaf's label, -1 for an inner node.
struct Tree {
    const int32_t* child_ptr;
    const int32_t* label;
    int32_t n_nodes;

    int32_t n_children(int32_t node) const { return child_ptr[node + 1] - child_ptr[node]; }
    bool is_leaf(int32_t node) const { return label[node] >= 0; }
};

inline std::vector<int32_t> parents_of(const Tree& tree) {
    std::vector<int32_t> parent(static_cast<size_t>(tree.n_nodes), -1);
    for (int32_t u = 0; u < tree.n_nodes; ++u) {
        for (int32_t c = tree.child_ptr[u]; c < tree.child_ptr[u + 1]; ++c)
            parent[static_cast<size_t>(c)] = u;
    }
    return parent;
}

// For every node the training rows that carry a label below it, in row order.
inline RowLists node_members(const Csr& labels, const Tree& tree) {
    const auto n_nodes = static_cast<size_t>(tree.n_nodes);
    const std::vector<int32_t> parent = parents_of(tree);
    std::vector<int32_t> leaf_of(static_cast<size_t>(labels.n_cols), -1);
    for (int32_t u = 0; u < tree.n_nodes; ++u) {
        if (tree.is_leaf(u)) leaf_of[static_cast<size_t>(tree.label[u])] = u;
    }
    std::vector<int32_t> seen(n_nodes, -1);
    // Climbs from each label of a row to the root, stopping where an earlier label of the row has passed.
    auto visit = [&](int32_t row, auto&& found) {
        for (int64_t j = labels.indptr[row]; j < labels.indptr[row + 1]; ++j) {
            int32_t u = leaf_of[static_cast<size_t>(labels.indices[j])];
            for (; u >= 0 && seen[static_cast<size_t>(u)] != row; u = parent[static_cast<size_t>(u)]) {
                seen[static_cast<size_t>(u)] = row;
                found(static_cast<size_t>(u));
            }
        }
    };
    RowLists members;
    members.ptr.assign(n_nodes + 1, 0);
    const auto n_rows = static_cast<int32_t>(labels.n_rows);
    for (int32_t row = 0; row < n_rows; ++row) visit(row, [&](size_t u) { ++members.ptr[u + 1]; });
    for (size_t u = 0; u < n_nodes; ++u) members.ptr[u + 1] += members.ptr[u];
    members.rows.resize(static_cast<size_t>(members.ptr[n_nodes]));
    std::vector<int64_t> next(members.ptr.begin(), members.ptr.end() - 1);
    seen.assign(n_nodes, -1);
    for (int32_t row = 0; row < n_rows; ++row) {
        visit(row, [&](size_t u) { members.rows[static_cast<size_t>(next[u]++)] = row; });
    }
    return members;
}

}  // namespace labelwood::label_tree
