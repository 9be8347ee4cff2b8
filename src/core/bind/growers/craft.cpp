// Binding of the CRAFTML kernel. Its caller in Python has checked the arrays.
#include "bind/arguments.hpp"
#include "bind/growers/forest_arrays.hpp"
#include "bind/options.hpp"
#include "forest/craft/grower.hpp"

namespace labelwood::bind {
namespace {

namespace craft = forest::craft;

void read(OptionsReader& from, craft::Options& to) {
    from.read("first_tree", to.first_tree);
    from.read("n_trees", to.n_trees);
    from.read("arity", to.arity);
    from.read("max_leaf", to.max_leaf);
    from.read("sample", to.sample);
    from.read("rounds", to.rounds);
    from.choose("projection", to.kind, {"none", "hash", "gaussian"});
    from.read("x_columns", to.x_columns);
    from.read("y_columns", to.y_columns);
    from.read("x_per_node", to.x_per_node);
    from.read("y_per_node", to.y_per_node);
    from.read("cosine", to.cosine);
    from.read("centroid_share", to.centroid.share);
    from.read("centroid_least", to.centroid.least);
    from.read("centroid_size", to.centroid.most);
    from.read("centroid_rows", to.centroid.rows);
    from.read("leaf_size", to.leaf_size);
    from.read("seed", to.seed);
}

nb::dict grow(const CsrArrays& x, const PatternArrays& y, const nb::dict& options, int n_threads,
              const nb::object& progress) {
    Monitor monitor = monitor_of(progress);
    const auto given = options_from<craft::Options>(options, read);
    forest::FlatForest flat =
        without_gil([&] { return craft::grow_forest(x.view(), y.view(), given, n_threads, monitor); });
    nb::dict arrays = forest_arrays(std::move(flat));
    if (given.kind != forest::ProjectionKind::kNone) arrays["seeds"] = to_numpy(std::move(flat.seeds));
    return arrays;
}

}  // namespace

void bind_craft(nb::module_& m) {
    m.def("grow_craft_forest", &grow, arg("X"), arg("Y"), arg("options"), arg("n_threads"), arg("progress").none(),
          "A forest of projected k-means trees (CRAFTML), as the arrays of a RoutedForest.");
}

}  // namespace labelwood::bind
