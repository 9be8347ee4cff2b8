// Bindings of the CRAFTML kernel. Each function takes arrays its Python caller has checked.
#include "bind/forest_arrays.hpp"
#include "forest/craft/grower.hpp"

namespace labelwood::bind {
namespace {

using nb::arg;

nb::dict grow_craft_(Array<int64_t> xp, Array<int32_t> xi, Array<float> xd, int64_t n_features,
                     Array<int64_t> yp, Array<int32_t> yi, int64_t n_labels, int32_t n_trees, int32_t arity,
                     int32_t max_leaf, int32_t sample, int32_t rounds, int projection, int32_t x_columns,
                     int32_t y_columns, bool x_per_node, bool y_per_node, bool cosine, double centroid_share,
                     int32_t centroid_least, int32_t centroid_size, int32_t centroid_rows, int32_t leaf_size,
                     uint64_t seed, int n_threads, nb::object progress, int32_t first_tree) {
    Monitor monitor = monitor_of(progress);
    const forest::craft::Options options{first_tree,
                                         n_trees,
                                         arity,
                                         max_leaf,
                                         sample,
                                         rounds,
                                         static_cast<forest::ProjectionKind>(projection),
                                         x_columns,
                                         y_columns,
                                         x_per_node,
                                         y_per_node,
                                         cosine,
                                         {centroid_share, centroid_least, centroid_size, centroid_rows},
                                         leaf_size,
                                         seed};
    forest::FlatForest flat = without_gil([&] {
        const Csr x = view(xp, xi, xd, n_features), y = pattern(yp, yi, n_labels);
        return forest::flatten(forest::craft::Grower(x, y, options, monitor).run(n_threads));
    });
    nb::dict arrays = forest_arrays(std::move(flat));
    if (options.kind == forest::ProjectionKind::kNone) return arrays;
    if (!x_per_node) {
        flat.inner_seeds.clear();
        for (int32_t tree = first_tree; tree < first_tree + n_trees; ++tree) {
            flat.inner_seeds.push_back(static_cast<uint32_t>(
                forest::craft::node_seed(seed, forest::craft::Stream::kFeatures, tree, 0) >> 32));
        }
    }
    arrays["seeds"] = to_numpy(std::move(flat.inner_seeds));
    return arrays;
}

}  // namespace

void bind_craft(nb::module_& m) {
    m.def("grow_craft", grow_craft_, arg("x_indptr"), arg("x_indices"), arg("x_data"), arg("n_features"),
          arg("y_indptr"), arg("y_indices"), arg("n_labels"), arg("n_trees"), arg("arity"), arg("max_leaf"),
          arg("sample"), arg("rounds"), arg("projection"), arg("x_columns"), arg("y_columns"),
          arg("x_per_node"), arg("y_per_node"), arg("cosine"), arg("centroid_share"), arg("centroid_least"),
          arg("centroid_size"), arg("centroid_rows"), arg("leaf_size"), arg("seed"), arg("n_threads"),
          arg("progress").none(), nb::kw_only(), arg("first_tree") = 0,
          "A forest of projected k-means trees (CRAFTML), as the arrays of a RoutedForest.");
}

}  // namespace labelwood::bind
