// What bindings of forests share: options of binary trees, and the arrays of a grown forest as a dict for the
// Python class RoutedForest.
#pragma once

#include <utility>

#include "bind/bind.hpp"
#include "bind/options.hpp"
#include "forest/binary_grower.hpp"
#include "forest/grown_forest.hpp"

namespace labelwood::bind {

inline void read_binary(OptionsReader& from, forest::BinaryOptions& to) {
    from.read("first_tree", to.first_tree);
    from.read("n_trees", to.n_trees);
    from.read("max_leaf", to.max_leaf);
    from.read("leaf_size", to.leaf_size);
    from.read("seed", to.seed);
}

inline nb::dict forest_arrays(forest::FlatForest&& flat) {
    nb::dict arrays;
    arrays["child_ptr"] = to_numpy(std::move(flat.child_ptr));
    arrays["weight_ptr"] = to_numpy(std::move(flat.weight_ptr));
    arrays["weight_features"] = to_numpy(std::move(flat.weight_features));
    arrays["weights"] = to_numpy(std::move(flat.weights));
    arrays["bias"] = to_numpy(std::move(flat.bias));
    arrays["leaf_ptr"] = to_numpy(std::move(flat.leaf_ptr));
    arrays["leaf_labels"] = to_numpy(std::move(flat.leaf_labels));
    arrays["leaf_values"] = to_numpy(std::move(flat.leaf_values));
    return arrays;
}

}  // namespace labelwood::bind
