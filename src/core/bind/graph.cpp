// Bindings of GraphForest: the neighbour graph, one cut, whole forests. Callers in Python have checked the
// arrays.
#include "base/rng.hpp"
#include "bind/forest_arrays.hpp"
#include "forest/graph/grower.hpp"

namespace labelwood::bind {
namespace {

using nb::arg;

struct CutArguments {
    int32_t n_negatives;
    int32_t epochs;
    float l1, rate, beta, tolerance;
    int start;
    int32_t feature_rows;

    forest::graph::CutOptions options() const {
        return {n_negatives, epochs, l1, rate, beta, tolerance, static_cast<forest::graph::CutStart>(start),
                feature_rows};
    }
};

std::vector<int32_t> all_rows(int64_t n) {
    std::vector<int32_t> rows(static_cast<size_t>(n));
    for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<int32_t>(i);
    return rows;
}

forest::graph::LabelGraph graph_of(const Csr& y, const forest::graph::LabelGraphOptions& options) {
    forest::graph::LabelGraph graph;
    forest::graph::LabelGraphBuilder(y).build(all_rows(y.n_rows).data(), static_cast<int32_t>(y.n_rows),
                                              options, &graph);
    return graph;
}

nb::tuple label_graph(Array<int64_t> yp, Array<int32_t> yi, int64_t n_labels, int kind, int32_t n_neighbors,
                      int32_t threshold) {
    const Csr y = pattern(yp, yi, n_labels);
    forest::graph::LabelGraph graph = without_gil([&] {
        return graph_of(y, {static_cast<forest::graph::LabelGraphKind>(kind), n_neighbors, threshold});
    });
    return nb::make_tuple(to_numpy(std::move(graph.ptr)), to_numpy(std::move(graph.neighbors)),
                          to_numpy(std::move(graph.alike)));
}

nb::tuple graph_cut(Array<int64_t> xp, Array<int32_t> xi, Array<float> xd, int64_t n_features,
                    Array<int64_t> gp, Array<int32_t> gi, int32_t n_negatives, int32_t epochs, float l1,
                    float rate, float beta, float tolerance, int start, int32_t feature_rows, uint64_t seed) {
    const Csr x = view(xp, xi, xd, n_features);
    const CutArguments given{n_negatives, epochs, l1, rate, beta, tolerance, start, feature_rows};
    std::vector<int32_t> columns;
    std::vector<float> weights;
    std::vector<uint8_t> side;
    without_gil([&] {
        forest::graph::LabelGraph graph{
            {gp.data(), gp.data() + gp.shape(0)}, {gi.data(), gi.data() + gi.shape(0)}, {}};
        forest::graph::Cut cut(x);
        cut.load(all_rows(x.n_rows).data(), static_cast<int32_t>(x.n_rows), feature_rows);
        cut.train(graph, given.options(), Rng(seed));
        cut.sides(&side);
        cut.emit(&columns, &weights);
        return 0;
    });
    return nb::make_tuple(to_numpy(std::move(columns)), to_numpy(std::move(weights)),
                          to_numpy(std::move(side)));
}

nb::dict grow(Array<int64_t> xp, Array<int32_t> xi, Array<float> xd, int64_t n_features, Array<int64_t> yp,
              Array<int32_t> yi, int64_t n_labels, int kind, int32_t n_neighbors, int32_t threshold,
              int32_t n_negatives, int32_t epochs, float l1, float rate, float beta, float tolerance,
              int start, int32_t feature_rows, int32_t n_trees, int32_t max_leaf, uint64_t seed,
              int n_threads, nb::object progress, int32_t first_tree) {
    const Csr x = view(xp, xi, xd, n_features), y = pattern(yp, yi, n_labels);
    const CutArguments given{n_negatives, epochs, l1, rate, beta, tolerance, start, feature_rows};
    const forest::graph::Options options{
        {static_cast<forest::graph::LabelGraphKind>(kind), n_neighbors, threshold},
        given.options(),
        first_tree,
        n_trees,
        max_leaf,
        seed};
    Monitor monitor = monitor_of(progress);
    forest::FlatForest flat =
        without_gil([&] { return forest::graph::grow(x, y, options, n_threads, monitor); });
    return forest_arrays(std::move(flat));
}

}  // namespace

void bind_graph(nb::module_& m) {
    m.def("label_graph", &label_graph, arg("y_indptr"), arg("y_indices"), arg("n_labels"), arg("kind"),
          arg("n_neighbors"), arg("threshold"),
          "Neighbours of every row by its labels, as (ptr, neighbors, alike).");
    m.def("graph_cut", &graph_cut, arg("x_indptr"), arg("x_indices"), arg("x_data"), arg("n_features"),
          arg("graph_ptr"), arg("graph_neighbors"), arg("n_negatives"), arg("epochs"), arg("l1"),
          arg("learning_rate"), arg("beta"), arg("tolerance"), arg("start"), arg("feature_rows"), arg("seed"),
          "The hyperplane that cuts a neighbour graph, as (columns, weights, sides).");
    m.def("grow_graph_forest", &grow, arg("x_indptr"), arg("x_indices"), arg("x_data"), arg("n_features"),
          arg("y_indptr"), arg("y_indices"), arg("n_labels"), arg("kind"), arg("n_neighbors"),
          arg("threshold"), arg("n_negatives"), arg("epochs"), arg("l1"), arg("learning_rate"), arg("beta"),
          arg("tolerance"), arg("start"), arg("feature_rows"), arg("n_trees"), arg("max_leaf"), arg("seed"),
          arg("n_threads"), arg("progress").none(), nb::kw_only(), arg("first_tree") = 0,
          "Grows a GraphForest; returns the arrays of a RoutedForest.");
}

}  // namespace labelwood::bind
