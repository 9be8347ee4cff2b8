// Checks the weights of a packed tree that were read from a file: what a search relies on, node by node.
#pragma once

#include <cstdint>

#include "base/span.hpp"

namespace labelwood::label_tree {

// Faults, in the order in which they are looked for in a node.
enum class NodeFault : int { kNone = 0, kRange = 1, kOrder = 2, kRowStart = 3, kRowEnd = 4, kChild = 5 };

// The arrays of all inner nodes; pointers have been checked. Dense weights have neither row starts nor children.
template <class Child>
struct NodeArrays {
    const int64_t* feature_ptr;
    const int32_t* features;
    const int64_t* weight_ptr;
    const uint32_t* row_start;
    const Child* child;
    int64_t n_inner, n_features;
    const int32_t* n_children;  // of each inner node
    bool dense;
};

// The first fault of a node: features ascend below n_features, row starts never fall and stay within the node, and
// children are children of the node.
template <class Child>
NodeFault fault_of(const NodeArrays<Child>& all, int64_t node) {
    const int64_t begin = all.feature_ptr[node], end = all.feature_ptr[node + 1];
    bool in_range = true, ascends = true;
    for (int64_t j = begin; j < end; ++j) in_range &= all.features[j] >= 0 && all.features[j] < all.n_features;
    if (!in_range) return NodeFault::kRange;
    for (int64_t j = begin + 1; j < end; ++j) ascends &= all.features[j] > all.features[j - 1];
    if (!ascends) return NodeFault::kOrder;
    if (all.dense) return NodeFault::kNone;
    bool rises = true, inside = true;
    for (int64_t j = begin + 1; j < end; ++j) rises &= all.row_start[j] >= all.row_start[j - 1];
    if (!rises) return NodeFault::kRowStart;
    const int64_t first = all.weight_ptr[node], last = all.weight_ptr[node + 1];
    if (begin < end && int64_t{all.row_start[end - 1]} > last - first) return NodeFault::kRowEnd;
    for (int64_t j = first; j < last; ++j) inside &= int64_t{all.child[j]} >= 0 && all.child[j] < all.n_children[node];
    return inside ? NodeFault::kNone : NodeFault::kChild;
}

template <class Child>
NodeFault first_fault(const NodeArrays<Child>& all) {
    for (int64_t node = 0; node < all.n_inner; ++node) {
        if (const NodeFault fault = fault_of(all, node); fault != NodeFault::kNone) return fault;
    }
    return NodeFault::kNone;
}

}  // namespace labelwood::label_tree
