// Bindings of the LdSM forests. Each function takes arrays its Python caller has checked.
#include "bind/forest_arrays.hpp"
#include "forest/ldsm/grower.hpp"

namespace labelwood::bind {
namespace {

using nb::arg;

constexpr int kMostChildren = 8;

template <int M = 2>
std::vector<forest::ldsm::Tree> grow_any(const Csr& x, const Csr& y, const forest::ldsm::Options& options,
                                         int32_t first_tree, int32_t n_trees, uint64_t seed, int n_threads,
                                         Monitor& monitor) {
    if constexpr (M < kMostChildren) {
        if (options.arity > M)
            return grow_any<M + 1>(x, y, options, first_tree, n_trees, seed, n_threads, monitor);
    }
    return forest::ldsm::grow<M>(x, y, options, first_tree, n_trees, seed, n_threads, monitor);
}

nb::tuple grow_ldsm_forest(Array<int64_t> xp, Array<int32_t> xi, Array<float> xd, int64_t n_features,
                           Array<int64_t> yp, Array<int32_t> yi, int64_t n_labels, int32_t n_trees,
                           int32_t arity, int64_t max_nodes, int32_t epochs, double lambda_integrity,
                           double lambda_multiway, int optimizer, float learning_rate, float weight_threshold,
                           bool squared_loss, bool shuffle_epoch, bool divide_by_rows, int32_t leaf_size,
                           uint64_t seed, int n_threads, nb::object progress, int32_t first_tree) {
    const forest::ldsm::Options options{.arity = arity,
                                        .max_nodes = max_nodes,
                                        .epochs = epochs,
                                        .lambda_integrity = lambda_integrity,
                                        .lambda_multiway = lambda_multiway,
                                        .optimizer = static_cast<forest::ldsm::Optimizer>(optimizer),
                                        .learning_rate = learning_rate,
                                        .weight_threshold = weight_threshold,
                                        .squared_loss = squared_loss,
                                        .shuffle_epoch = shuffle_epoch,
                                        .divide_by_rows = divide_by_rows,
                                        .leaf_size = leaf_size};
    const Csr x = view(xp, xi, xd, n_features), y = pattern(yp, yi, n_labels);
    Monitor monitor = monitor_of(progress);
    std::vector<float> splits;
    size_t n_splits = 0;
    forest::FlatForest flat = without_gil([&] {
        std::vector<forest::ldsm::Tree> grown =
            grow_any(x, y, options, first_tree, n_trees, seed, n_threads, monitor);
        std::vector<forest::GrownTree> trees;
        std::vector<forest::ldsm::Split> all;
        for (forest::ldsm::Tree& one : grown) {
            const auto before = static_cast<uint32_t>(all.size());
            for (forest::GrownNode& node : one.tree.nodes) node.seed += before;
            all.insert(all.end(), one.splits.begin(), one.splits.end());
            trees.push_back(std::move(one.tree));
        }
        forest::FlatForest forest = forest::flatten(std::move(trees));
        // The inner nodes carried their place among the splits through the renumbering.
        n_splits = forest.inner_seeds.size();
        for (const uint32_t place : forest.inner_seeds) {
            const forest::ldsm::Split& s = all[place];
            splits.insert(splits.end(), {s.objective, s.balancedness, s.purity, s.running});
        }
        return forest;
    });
    return nb::make_tuple(forest_arrays(std::move(flat)), to_numpy(std::move(splits), n_splits, 4));
}

}  // namespace

void bind_ldsm(nb::module_& m) {
    m.def("grow_ldsm_forest", &grow_ldsm_forest, arg("x_indptr"), arg("x_indices"), arg("x_data"),
          arg("n_features"), arg("y_indptr"), arg("y_indices"), arg("n_labels"), arg("n_trees"), arg("arity"),
          arg("max_nodes"), arg("epochs"), arg("lambda_integrity"), arg("lambda_multiway"), arg("optimizer"),
          arg("learning_rate"), arg("weight_threshold"), arg("squared_loss"), arg("shuffle_epoch"),
          arg("divide_by_rows"), arg("leaf_size"), arg("seed"), arg("n_threads"), arg("progress").none(),
          nb::kw_only(), arg("first_tree") = 0,
          "LdSM trees: the arrays of a routed forest, and of every inner node J, balancedness, purity and "
          "J by the running probabilities.");
}

}  // namespace labelwood::bind
