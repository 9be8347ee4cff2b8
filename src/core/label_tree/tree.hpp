// Label trees as flat arrays, and the training rows that reach each node.
#pragma once

#include <cstdint>

#include "base/csr.hpp"
#include "base/span.hpp"

namespace labelwood::label_tree {

// A view of a label tree. Ids are breadth-first: the children of u are child_ptr[u] .. child_ptr[u + 1],
// after u. label[u] is the label of a leaf, -1 for an inner node.
struct Tree {
    const int32_t* child_ptr;
    const int32_t* label;
    int32_t n_nodes;

    int32_t n_children(int32_t node) const { return child_ptr[node + 1] - child_ptr[node]; }
    bool is_leaf(int32_t node) const { return label[node] >= 0; }
};

inline Vector<int32_t> inner_nodes(const Tree& tree) {
    Vector<int32_t> inner;
    for (int32_t u = 0; u < tree.n_nodes; ++u) {
        if (!tree.is_leaf(u)) inner.push_back(u);
    }
    return inner;
}

inline Vector<int32_t> parents_of(const Tree& tree) {
    Vector<int32_t> parent(tree.n_nodes, -1);
    for (int32_t u = 0; u < tree.n_nodes; ++u) {
        for (int32_t c = tree.child_ptr[u]; c < tree.child_ptr[u + 1]; ++c) parent[c] = u;
    }
    return parent;
}

inline Vector<int32_t> leaves_of(const Tree& tree, int64_t n_labels) {
    Vector<int32_t> leaf(n_labels, -1);
    for (int32_t u = 0; u < tree.n_nodes; ++u) {
        if (tree.is_leaf(u)) leaf[tree.label[u]] = u;
    }
    return leaf;
}

// Marks a node and its ancestors, up to the first that is marked.
template <class Parent>
void mark_path(int32_t node, Parent&& parent, Vector<uint8_t>& marks) {
    for (int32_t u = node; u >= 0 && marks[u] == 0; u = parent(u)) marks[u] = 1;
}

// For every node the training rows that have a label below it, in row order.
inline RowLists node_members(const Csr& labels, const Tree& tree) {
    const Vector<int32_t> parent = parents_of(tree);
    const Vector<int32_t> leaf_of = leaves_of(tree, labels.n_cols);
    Vector<int32_t> seen(tree.n_nodes, -1);
    // Climbs from each label of a row towards the root, and stops where an earlier label of the row has
    // passed.
    auto visit = [&](int32_t row, auto&& found) {
        for (int64_t j = labels.indptr[row]; j < labels.indptr[row + 1]; ++j) {
            int32_t u = leaf_of[labels.indices[j]];
            for (; u >= 0 && seen[u] != row; u = parent[u]) {
                seen[u] = row;
                found(u);
            }
        }
    };
    RowLists members;
    members.ptr.assign(tree.n_nodes + 1, 0);
    const auto n_rows = static_cast<int32_t>(labels.n_rows);
    for (int32_t row = 0; row < n_rows; ++row) visit(row, [&](int32_t u) { ++members.ptr[u + 1]; });
    for (int32_t u = 0; u < tree.n_nodes; ++u) members.ptr[u + 1] += members.ptr[u];
    members.rows.resize(members.ptr.back());
    Vector<int64_t> next(members.ptr.begin(), members.ptr.end() - 1);
    seen.assign(tree.n_nodes, -1);
    for (int32_t row = 0; row < n_rows; ++row) {
        visit(row, [&](int32_t u) { members.rows[next[u]++] = row; });
    }
    return members;
}

}  // namespace labelwood::label_tree
