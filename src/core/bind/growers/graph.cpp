// Bindings of GraphForest: the neighbour graph, one cut, whole forests. Callers in Python have checked the
// arrays.
#include "bind/arguments.hpp"
#include "bind/growers/forest_arrays.hpp"
#include "bind/options.hpp"
#include "forest/graph/grower.hpp"

namespace labelwood::bind {
namespace {

namespace graph = forest::graph;

void read(OptionsReader& from, graph::LabelGraphOptions& to) {
    from.choose("graph", to.kind, {"tail", "idf"});
    from.read("n_neighbors", to.n_neighbors);
    from.read("threshold", to.threshold);
    from.read("fill", to.fill);
}

void read(OptionsReader& from, graph::CutOptions& to) {
    from.read("n_negatives", to.n_negatives);
    from.read("match_negatives", to.match_negatives);
    from.read("epochs", to.epochs);
    from.read("l1", to.l1);
    from.read("learning_rate", to.rate);
    from.read("beta", to.beta);
    from.read("tolerance", to.tolerance);
    from.choose("start", to.start, {"rows", "zero", "gaussian"});
    from.read("feature_rows", to.feature_rows);
}

void read(OptionsReader& from, graph::Options& to) {
    read(from, to.graph);
    read(from, to.cut);
    read_binary(from, to.tree);
}

nb::tuple build(const PatternArrays& y, const nb::dict& options) {
    const auto given = options_from<graph::LabelGraphOptions>(options, read);
    graph::LabelGraph built = without_gil([&] { return graph::label_graph(y.view(), given); });
    return nb::make_tuple(to_numpy(std::move(built.ptr)), to_numpy(std::move(built.neighbors)),
                          to_numpy(std::move(built.alike)));
}

nb::tuple cut(const CsrArrays& x, const Array<int64_t>& ptr, const Array<int32_t>& neighbors, const nb::dict& options,
              uint64_t seed) {
    const auto given = options_from<graph::CutOptions>(options, read);
    graph::Hyperplane found = without_gil([&] {
        const graph::LabelGraph given_graph{
            {ptr.data(), ptr.data() + length(ptr)}, {neighbors.data(), neighbors.data() + length(neighbors)}, {}};
        return graph::cut_graph(x.view(), given_graph, given, seed);
    });
    return nb::make_tuple(to_numpy(std::move(found.columns)), to_numpy(std::move(found.weights)),
                          to_numpy(std::move(found.side)));
}

nb::dict grow(const CsrArrays& x, const PatternArrays& y, const nb::dict& options, int n_threads,
              const nb::object& progress) {
    Monitor monitor = monitor_of(progress);
    const auto given = options_from<graph::Options>(options, read);
    return forest_arrays(
        without_gil([&] { return graph::grow_forest(x.view(), y.view(), given, n_threads, monitor); }));
}

}  // namespace

void bind_graph(nb::module_& m) {
    m.def("label_graph", &build, arg("Y"), arg("options"),
          "Neighbours of every row by its labels, as (ptr, neighbors, alike).");
    m.def("graph_cut", &cut, arg("X"), arg("graph_ptr"), arg("graph_neighbors"), arg("options"), arg("seed"),
          "The hyperplane that cuts a neighbour graph, as (columns, weights, sides).");
    m.def("grow_graph_forest", &grow, arg("X"), arg("Y"), arg("options"), arg("n_threads"), arg("progress").none(),
          "A forest of graph cuts, as the arrays of a RoutedForest.");
}

}  // namespace labelwood::bind
