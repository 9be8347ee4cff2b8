// Bindings of the label-tree kernels. Callers in Python have checked the arrays.
#include "bind/arguments.hpp"
#include "bind/options.hpp"
#include "label_tree/cluster.hpp"
#include "label_tree/label_vectors.hpp"
#include "label_tree/node_check.hpp"
#include "label_tree/packed_tree.hpp"
#include "label_tree/size_estimate.hpp"
#include "label_tree/tree_trainer.hpp"

namespace labelwood::bind {
struct HalfFloat;  // stands for NumPy's float16
}
namespace nanobind::detail {
template <>
struct dtype_traits<labelwood::bind::HalfFloat> {
    static constexpr dlpack::dtype value{static_cast<uint8_t>(dlpack::dtype_code::Float), 16, 1};
};
}  // namespace nanobind::detail

namespace labelwood::bind {
namespace {

void read(OptionsReader& from, label_tree::ClusterOptions& to) {
    from.read("balanced", to.balanced);
    from.read("arity", to.arity);
    from.read("max_leaf", to.max_leaf);
    from.read("max_depth", to.max_depth);
    from.read("max_rounds", to.max_rounds);
    from.read("seed", to.seed);
}

void read(OptionsReader& from, label_tree::SolverOptions& to) {
    bool logistic = false;
    from.read("logistic", logistic);
    to.loss = logistic ? label_tree::Loss::kLogistic : label_tree::Loss::kSquaredHinge;
    from.read("cost", to.cost);
    from.read("tolerance", to.tolerance);
    from.read("skip", to.skip);
    from.read("max_passes", to.max_passes);
    from.read("bias", to.bias);
    from.read("offset", to.offset);
}

void read(OptionsReader& from, label_tree::TrainOptions& to) {
    read(from, to.solver);
    from.read("threshold", to.threshold);
    from.read("seed", to.seed);
    from.read("most_entries", to.most_entries);
    from.read("child_bytes", to.child_bytes);
    from.read("weight_bytes", to.weight_bytes);
    from.read("piece", to.piece);
    from.read("n_pieces", to.n_pieces);
}

// Hands bytes to NumPy as an array of numbers of the given type, without a copy.
nb::object as_numbers(label_tree::Bytes&& bytes, nb::dlpack::dtype type) {
    auto* held = new label_tree::Bytes(std::move(bytes));
    nb::capsule owner(held, [](void* p) noexcept { delete static_cast<label_tree::Bytes*>(p); });
    const size_t count = static_cast<size_t>(held->size()) / (type.bits / 8);
    return nb::cast(nb::ndarray<nb::numpy>(held->data(), {count}, owner, {}, type));
}

nb::dlpack::dtype child_type(int bytes) {
    if (bytes == 1) return nb::dtype<uint8_t>();
    return bytes == 2 ? nb::dtype<uint16_t>() : nb::dtype<int32_t>();
}

nb::dlpack::dtype weight_type(int bytes) {
    if (bytes == 1) return nb::dtype<int8_t>();
    return bytes == 2 ? nb::dtype<HalfFloat>() : nb::dtype<float>();
}

nb::tuple vectors(const HybridArrays& x, const PatternArrays& y, int64_t most, int n_threads,
                  const nb::object& progress, const std::optional<Array<float>>& scale,
                  const std::optional<Array<float>>& vector_scale) {
    Monitor monitor = monitor_of(progress);
    const GivenRows given(x, scale, vector_scale);
    label_tree::LabelVectors out =
        without_gil([&] { return label_tree::label_vectors(given.rows(), y.view(), most, n_threads, monitor); });
    const int64_t n_labels = out.indptr.size() - 1;
    return nb::make_tuple(to_numpy(std::move(out.indptr)), to_numpy(std::move(out.indices)),
                          to_numpy(std::move(out.data)), to_numpy(std::move(out.dense), n_labels, out.width));
}

nb::tuple grow(const HybridArrays& vectors, const nb::dict& options, int n_threads, const nb::object& progress) {
    Monitor monitor = monitor_of(progress);
    auto given = options_from<label_tree::ClusterOptions>(options, read);
    given.n_threads = n_threads;
    const Vectors dense = vectors.dense(std::nullopt);
    const label_tree::ClusteredVectors clustered{vectors.sparse(), reinterpret_cast<const float*>(dense.values),
                                                 dense.width};
    label_tree::GrownTree out = without_gil([&] { return label_tree::grow(clustered, given, monitor); });
    return nb::make_tuple(to_numpy(std::move(out.parent)), to_numpy(std::move(out.label)));
}

nb::dict train(const HybridArrays& x, const PatternArrays& y, const LabelTreeArrays& tree, const nb::dict& options,
               int n_threads, const nb::object& progress, const std::optional<Array<float>>& scale,
               const std::optional<Array<float>>& vector_scale, const std::optional<Array<int32_t>>& ids,
               const std::optional<Array<int32_t>>& rows, const std::optional<Array<int32_t>>& only) {
    Monitor monitor = monitor_of(progress);
    auto given = options_from<label_tree::TrainOptions>(options, read);
    given.n_threads = n_threads;
    const GivenRows features(x, scale, vector_scale);
    label_tree::TreePart part{tree.view(), data_or_null(ids), data_or_null(rows)};
    if (only) part.only = span(*only);
    label_tree::TrainedWeights out =
        without_gil([&] { return label_tree::TreeTrainer(features.rows(), y.view(), part, given, monitor).run(); });
    nb::dict arrays;
    arrays["feature_ptr"] = to_numpy(std::move(out.feature_ptr));
    arrays["features"] = to_numpy(std::move(out.features));
    arrays["weight_ptr"] = to_numpy(std::move(out.weight_ptr));
    arrays["row_start"] = to_numpy(std::move(out.row_start));
    arrays["child"] = as_numbers(std::move(out.child), child_type(given.child_bytes));
    arrays["weights"] = as_numbers(std::move(out.weights), weight_type(given.stored().weight_bytes));
    arrays["scale"] = to_numpy(std::move(out.scale));
    arrays["bias"] = to_numpy(std::move(out.bias));
    arrays["vector_weights"] = to_numpy(std::move(out.vector_weights));
    arrays["weight_bytes"] = out.weight_bytes;
    return arrays;
}

nb::tuple count(const HybridArrays& x, const PatternArrays& y, const LabelTreeArrays& tree, int n_threads,
                const nb::object& progress) {
    Monitor monitor = monitor_of(progress);
    const GivenRows features(x, std::nullopt, std::nullopt);
    label_tree::NodeSizes out = without_gil([&] {
        return label_tree::count_nodes(features.rows(), label_tree::node_members(y.view(), tree.view()), tree.view(),
                                       n_threads, monitor);
    });
    return nb::make_tuple(to_numpy(std::move(out.features)), to_numpy(std::move(out.entries)),
                          to_numpy(std::move(out.rows)));
}

// The arrays of a packed tree. A float16 array comes as uint16.
struct PackedTreeArrays {
    LabelTreeArrays tree;
    Array<int32_t> inner_of;
    Array<int64_t> feature_ptr;
    Array<int32_t> features;
    Array<int64_t> weight_ptr;
    Array<uint32_t> row_start;
    AnyArray child, weights, vector_weights;
    Array<float> scale, bias, vector_scale;
    label_tree::Link link;
    int64_t n_features, n_columns;

    label_tree::PackedTreeView view() const {
        const label_tree::VectorWeights of_vectors{static_cast<const char*>(vector_weights.data()), n_columns,
                                                   vector_type(vector_weights),
                                                   length(vector_scale) == 0 ? nullptr : vector_scale.data()};
        label_tree::PackedTreeView view{tree.view(),
                                        inner_of.data(),
                                        length(feature_ptr) - 1,
                                        feature_ptr.data(),
                                        features.data(),
                                        bias.data(),
                                        {},
                                        link,
                                        n_features,
                                        of_vectors};
        if (row_start.shape(0) == 0) {
            view.weights = label_tree::DenseWeights{weight_ptr.data(), static_cast<const float*>(weights.data())};
            return view;
        }
        const bool is_int8 = weights.dtype() == nb::dtype<int8_t>();
        const bool is_half = !is_int8 && weights.dtype() != nb::dtype<float>();
        const label_tree::SparseWeights pairs{feature_ptr.data(),     weight_ptr.data(), row_start.data(), child.data(),
                                              child.dtype().bits / 8, weights.data(),    is_half};
        if (is_int8) {
            view.weights =
                label_tree::QuantizedWeights{pairs, static_cast<const int8_t*>(weights.data()), scale.data()};
        } else {
            view.weights = pairs;
        }
        return view;
    }
};

void read(OptionsReader& from, PackedTreeArrays& to) {
    from.read("child_ptr", to.tree.child_ptr);
    from.read("label", to.tree.label);
    from.read("inner_of", to.inner_of);
    from.read("feature_ptr", to.feature_ptr);
    from.read("features", to.features);
    from.read("weight_ptr", to.weight_ptr);
    from.read("row_start", to.row_start);
    from.read_any<uint8_t, uint16_t, int32_t>("child", to.child);
    from.read_any<int8_t, uint16_t, float>("weights", to.weights);
    from.read("scale", to.scale);
    from.read("bias", to.bias);
    from.read("link", to.link);
    from.read("n_features", to.n_features);
    from.read_any<int8_t, HalfFloat, float>("vector_weights", to.vector_weights);
    from.read("vector_scale", to.vector_scale);
    from.read("n_columns", to.n_columns);
}

// Keeps the arrays alive.
class TreeSearcher {
  public:
    explicit TreeSearcher(const nb::dict& arrays)
        : arrays_(options_from<PackedTreeArrays>(arrays, read)), tree_(arrays_.view()) {}

    nb::tuple search(const HybridArrays& x, int32_t k, int32_t beam_width, bool exact, int n_threads,
                     const nb::object& progress, const std::optional<Array<int32_t>>& allowed, int32_t per_node,
                     const std::optional<Array<float>>& vector_scale) const {
        const label_tree::SearchedRows rows{x.sparse(), x.dense(vector_scale)};
        Call call(rows.entries(0, rows.n_rows()) < 4096, n_threads, progress);
        const label_tree::SearchOptions options{k, beam_width, call.n_threads, per_node};
        return labels_and_scores(rows.n_rows(), k, [&](int32_t* labels, float* scores) {
            if (allowed) {
                tree_.search_allowed(rows, span(*allowed), options, call.monitor, labels, scores);
            } else {
                tree_.search(rows, options, exact, call.monitor, labels, scores);
            }
        });
    }

  private:
    PackedTreeArrays arrays_;
    label_tree::PackedTree tree_;
};

// What is checked of a packed tree.
struct CheckedArrays {
    Array<int64_t> feature_ptr;
    Array<int32_t> features;
    Array<int64_t> weight_ptr;
    Array<uint32_t> row_start;
    AnyArray child;
    Array<int32_t> n_children;
    int64_t n_features;

    template <class Child>
    label_tree::NodeFault fault() const {
        const auto* children = static_cast<const Child*>(child.data());
        const bool dense = length(row_start) == 0 && child.shape(0) == 0;
        return label_tree::first_fault<Child>({feature_ptr.data(), features.data(), weight_ptr.data(), row_start.data(),
                                               children, length(n_children), n_features, n_children.data(), dense});
    }
};

void read(OptionsReader& from, CheckedArrays& to) {
    from.read("feature_ptr", to.feature_ptr);
    from.read("features", to.features);
    from.read("weight_ptr", to.weight_ptr);
    from.read("row_start", to.row_start);
    from.read_any<uint8_t, uint16_t, int32_t>("child", to.child);
    from.read("n_children", to.n_children);
    from.read("n_features", to.n_features);
}

int check_nodes(const nb::dict& arrays) {
    const auto given = options_from<CheckedArrays>(arrays, read);
    return static_cast<int>(without_gil([&] {
        switch (given.child.dtype().bits / 8) {
            case 1:
                return given.fault<uint8_t>();
            case 2:
                return given.fault<uint16_t>();
            default:
                return given.fault<int32_t>();
        }
    }));
}

using Array3 = nb::ndim<3>;

nb::tuple average(const nb::ndarray<const int32_t, Array3, nb::c_contig, nb::device::cpu>& labels,
                  const nb::ndarray<const float, Array3, nb::c_contig, nb::device::cpu>& scores, int64_t k) {
    const auto n_members = static_cast<int64_t>(labels.shape(0)), n_rows = static_cast<int64_t>(labels.shape(1)),
               width = static_cast<int64_t>(labels.shape(2));
    return labels_and_scores(n_rows, k, [&](int32_t* best, float* averages) {
        average_topk(labels.data(), scores.data(), n_members, n_rows, width, k, best, averages);
    });
}

}  // namespace

void bind_label_tree(nb::module_& m) {
    m.def("label_vectors", &vectors, arg("X"), arg("Y"), arg("most"), arg("n_threads"), arg("progress").none(),
          nb::kw_only(), arg("scale") = nb::none(), arg("vector_scale") = nb::none(),
          "Label representations, Eq. (2), as (indptr, indices, data, dense columns); at most `most` sparse entries "
          "each, 0: all.");
    m.def("grow_tree", &grow, arg("vectors"), arg("options"), arg("n_threads"), arg("progress").none(),
          "A label tree by clustering label vectors, as (parent, label).");
    m.def("train_tree", &train, arg("X"), arg("Y"), arg("tree"), arg("options"), arg("n_threads"),
          arg("progress").none(), nb::kw_only(), arg("scale") = nb::none(), arg("vector_scale") = nb::none(),
          arg("ids") = nb::none(), arg("rows") = nb::none(), arg("only") = nb::none(),
          "Weights of every inner node of a label tree, or of those in `only`, and the bytes of weights that the "
          "solver moved.");
    m.def("count_tree", &count, arg("X"), arg("Y"), arg("tree"), arg("n_threads"), arg("progress").none(),
          "Used features and row entries of every inner node, and rows of every node, of an untrained tree.");
    m.def("check_nodes", &check_nodes, arg("arrays"),
          "0 for sound weights of a packed tree, else the number of the fault of a node: 1 range or 2 order of its "
          "features, 3 order or 4 end of its row starts, 5 children.");
    m.def("average_topk", &average, arg("labels"), arg("scores"), arg("k"), "Average of several top-k lists per row.");
    nb::class_<TreeSearcher>(m, "TreeSearcher", "A packed label tree, ready to be searched.")
        .def(nb::init<const nb::dict&>(), arg("arrays"))
        .def("search", &TreeSearcher::search, arg("X"), arg("k"), arg("beam_width"), arg("exact"), arg("n_threads"),
             arg("progress").none(), arg("allowed") = nb::none(), arg("per_node") = 0, nb::kw_only(),
             arg("vector_scale") = nb::none(),
             "Best k labels of every row; of the allowed labels, if they are given, exactly. A node of a beam proposes "
             "its per_node best labels, or all if that is 0.");
}

}  // namespace labelwood::bind
