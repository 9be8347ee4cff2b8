// Bindings of the packed instance forests. Callers in Python have checked the arrays.
#include "bind/arguments.hpp"
#include "bind/options.hpp"
#include "forest/packed_forest.hpp"
#include "forest/rerank.hpp"

namespace labelwood::bind {
namespace {

// The arrays of a RoutedForest. A float16 array comes as uint16.
struct RoutedForestArrays {
    Array<int32_t> child_ptr;
    Array<int64_t> weight_ptr;
    AnyArray weight_features, weights;
    Array<float> bias;
    Array<int64_t> leaf_ptr;
    AnyArray leaf_labels, leaf_values;
    Array<uint32_t> seeds;

    forest::ForestView view() const {
        return {span(child_ptr), span(weight_ptr), ids(weight_features), numbers(weights), span(bias),
                span(leaf_ptr),  ids(leaf_labels), numbers(leaf_values), seeds.data()};
    }

  private:
    static forest::ForestView::Ids ids(const AnyArray& array) {
        if (array.dtype() == nb::dtype<uint16_t>()) return static_cast<const uint16_t*>(array.data());
        return static_cast<const int32_t*>(array.data());
    }
    static forest::ForestView::Numbers numbers(const AnyArray& array) {
        if (array.dtype() == nb::dtype<float>()) return static_cast<const float*>(array.data());
        return static_cast<const Half*>(array.data());
    }
};

void read(OptionsReader& from, RoutedForestArrays& to) {
    from.read("child_ptr", to.child_ptr);
    from.read("weight_ptr", to.weight_ptr);
    from.read_any<uint16_t, int32_t>("weight_features", to.weight_features);
    from.read_any<uint16_t, float>("weights", to.weights);
    from.read("bias", to.bias);
    from.read("leaf_ptr", to.leaf_ptr);
    from.read_any<uint16_t, int32_t>("leaf_labels", to.leaf_labels);
    from.read_any<uint16_t, float>("leaf_values", to.leaf_values);
    from.read("seeds", to.seeds);
}

void read(OptionsReader& from, forest::RoutingOptions& to) {
    from.read("n_trees", to.n_trees);
    from.read("n_features", to.n_features);
    from.read("n_labels", to.n_labels);
    from.choose("projection", to.projection, {"none", "hash", "gaussian"});
    from.read("n_columns", to.n_columns);
    from.read("seed_per_node", to.seed_per_node);
    from.read("several", to.several);
    from.read("threshold", to.threshold);
    from.read("leaf_votes", to.leaf_votes);
}

void read(OptionsReader& from, forest::RerankOptions& to) {
    from.read("share", to.share);
    from.read("sharpness", to.sharpness);
    from.read("k", to.k);
}

// Keeps the arrays alive.
class ForestRouter {
  public:
    ForestRouter(const nb::dict& arrays, const nb::dict& options)
        : arrays_(options_from<RoutedForestArrays>(arrays, read)),
          forest_(arrays_.view(), options_from<forest::RoutingOptions>(options, read)) {}

    nb::tuple topk(const CsrArrays& x, int32_t k, int n_threads, const nb::object& progress,
                   const std::optional<Array<uint8_t>>& allowed) {
        Monitor monitor = monitor_of(progress);
        const Csr rows = x.view();
        return labels_and_scores(rows.n_rows, k, [&](int32_t* labels, float* scores) {
            forest_.topk(rows, k, data_or_null(allowed), n_threads, monitor, labels, scores);
        });
    }

    nb::tuple leaves(const CsrArrays& x, int n_threads, const nb::object& progress) {
        Monitor monitor = monitor_of(progress);
        forest::LeavesByRow found = without_gil([&] { return forest_.leaves(x.view(), n_threads, monitor); });
        return nb::make_tuple(to_numpy(std::move(found.ptr)), to_numpy(std::move(found.nodes)));
    }

    int64_t n_blocks() const { return forest_.n_blocks(); }

  private:
    RoutedForestArrays arrays_;
    forest::PackedForest forest_;
};

nb::tuple rerank_candidates(const CsrArrays& x, const CsrArrays& means, const Array<float>& lengths,
                            const Array2<int32_t>& labels, const Array2<float>& scores, const nb::dict& options,
                            int n_threads, const nb::object& progress) {
    auto given = options_from<forest::RerankOptions>(options, read);
    given.candidates = static_cast<int32_t>(labels.shape(1));
    const Csr rows = x.view();
    Monitor monitor = rows.n_rows > 256 ? monitor_of(progress) : Monitor();
    return labels_and_scores(rows.n_rows, given.k, [&](int32_t* best, float* combined) {
        forest::rerank(rows, means.view(), lengths.data(), labels.data(), scores.data(), given, n_threads, monitor,
                       best, combined);
    });
}

}  // namespace

void bind_forest(nb::module_& m) {
    m.def("rerank", &rerank_candidates, arg("X"), arg("means"), arg("lengths"), arg("labels"), arg("scores"),
          arg("options"), arg("n_threads"), arg("progress").none(),
          "Best k of every row's candidates by score and nearness to the labels' means.");
    nb::class_<ForestRouter>(m, "ForestRouter", "A packed instance forest, ready to route rows.")
        .def(nb::init<const nb::dict&, const nb::dict&>(), arg("arrays"), arg("options"))
        .def("topk", &ForestRouter::topk, arg("X"), arg("k"), arg("n_threads"), arg("progress").none(),
             arg("allowed") = nb::none(),
             "Best k labels of every row, by averaged leaves; `allowed` holds 0 for labels to leave out.")
        .def("leaves", &ForestRouter::leaves, arg("X"), arg("n_threads"), arg("progress").none(),
             "Leaf nodes reached by every (row, tree), as (ptr, nodes).")
        .def_prop_ro("n_blocks", &ForestRouter::n_blocks,
                     "Nodes with a resident block; 0 until enough rows have been routed.");
}

}  // namespace labelwood::bind
