// Bindings of the label-tree kernels. Each function takes arrays its Python caller has checked.
#include "bind/tree_rows.hpp"
#include "label_tree/cluster.hpp"
#include "label_tree/search.hpp"
#include "label_tree/tree_trainer.hpp"
#include "label_tree/weights.hpp"
#include "simd/solver.hpp"
#include "sparse/label_vectors.hpp"
#include "sparse/row_ops.hpp"

namespace labelwood::bind {
namespace {

using nb::arg;

nb::tuple label_vectors_(Array<int64_t> xp, Array<int32_t> xi, Array<float> xd, int64_t n_features,
                         Array<int64_t> yp, Array<int32_t> yi, int64_t n_labels, int64_t most, int n_threads,
                         nb::object progress, std::optional<Array<float>> scale, int64_t resident) {
    Monitor monitor = monitor_of(progress);
    const GivenRows given(view(xp, xi, xd, n_features), scale, resident);
    OwnedCsr out = without_gil([&] {
        return sparse::label_vectors(given.rows(), pattern(yp, yi, n_labels), most, n_threads, monitor);
    });
    return nb::make_tuple(to_numpy(std::move(out.indptr)), to_numpy(std::move(out.indices)),
                          to_numpy(std::move(out.data)));
}

nb::tuple grow_tree_(Array<int64_t> vp, Array<int32_t> vi, Array<float> vd, int64_t n_features, bool balanced,
                     int32_t arity, int32_t max_leaf, int32_t max_depth, int32_t max_rounds, uint64_t seed,
                     int n_threads, nb::object progress) {
    Monitor monitor = monitor_of(progress);
    const label_tree::ClusterOptions options{balanced,   arity, max_leaf, max_depth,
                                             max_rounds, seed,  n_threads};
    label_tree::GrownTree out =
        without_gil([&] { return label_tree::grow(view(vp, vi, vd, n_features), options, monitor); });
    return nb::make_tuple(to_numpy(std::move(out.parent)), to_numpy(std::move(out.label)));
}

nb::dict train_tree_(Array<int64_t> xp, Array<int32_t> xi, Array<float> xd, int64_t n_features,
                     Array<int64_t> yp, Array<int32_t> yi, int64_t n_labels, Array<int32_t> child_ptr,
                     Array<int32_t> label, bool logistic, float cost, float tolerance, float skip,
                     int max_passes, float bias, float offset, float threshold, uint64_t seed, int n_threads,
                     nb::object progress, std::optional<Array<int32_t>> ids,
                     std::optional<Array<int32_t>> rows, std::optional<Array<float>> scale, int64_t resident,
                     int64_t most_entries) {
    Monitor monitor = monitor_of(progress);
    const GivenRows given(view(xp, xi, xd, n_features), scale, resident);
    const Csr y = pattern(yp, yi, n_labels);
    const label_tree::TreePart part{tree_view(child_ptr, label), data_or_null(ids), data_or_null(rows)};
    const label_tree::SolverOptions solver{
        logistic ? label_tree::Loss::kLogistic : label_tree::Loss::kSquaredHinge,
        cost,
        tolerance,
        skip,
        max_passes,
        bias,
        offset};
    const label_tree::TrainOptions options{solver, threshold, seed, n_threads, most_entries};
    label_tree::PackedWeights out =
        without_gil([&] { return label_tree::TreeTrainer(given.rows(), y, part, options, monitor).run(); });
    nb::dict arrays;
    arrays["feature_ptr"] = to_numpy(std::move(out.feature_ptr));
    arrays["features"] = to_numpy(std::move(out.features));
    arrays["weight_ptr"] = to_numpy(std::move(out.weight_ptr));
    arrays["row_start"] = to_numpy(std::move(out.row_start));
    arrays["child"] = to_numpy(std::move(out.child));
    arrays["weights"] = to_numpy(std::move(out.weights));
    arrays["bias"] = to_numpy(std::move(out.bias));
    arrays["weight_bytes"] = out.weight_bytes;
    return arrays;
}

// A label tree with its weights, ready to be searched: holds the arrays, so that one call is one pointer
// chase.
class TreeSearcher {
  public:
    TreeSearcher(Array<int32_t> child_ptr, Array<int32_t> label, Array<int32_t> inner_of,
                 Array<int64_t> feature_ptr, Array<int32_t> features, Array<int64_t> weight_ptr,
                 Array<uint32_t> row_start,
                 nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu> child,
                 nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu> weights, Array<float> scale,
                 Array<float> bias, label_tree::Link link, int64_t n_features)
        : child_ptr_(child_ptr),
          label_(label),
          inner_of_(inner_of),
          feature_ptr_(feature_ptr),
          features_(features),
          weight_ptr_(weight_ptr),
          row_start_(row_start),
          child_(child),
          weights_(weights),
          scale_(scale),
          bias_(bias),
          link_(link),
          n_features_(n_features),
          index_(feature_ptr.data(), features.data(), static_cast<int64_t>(feature_ptr.shape(0)) - 1,
                 n_features) {}

    nb::tuple search(Array<int64_t> xp, Array<int32_t> xi, Array<float> xd, int32_t k, int32_t beam_width,
                     bool exact, int n_threads, nb::object progress) const {
        const Csr x = view(xp, xi, xd, n_features_);
        const auto size = static_cast<size_t>(x.n_rows) * static_cast<size_t>(k);
        std::vector<int32_t> labels(size);
        std::vector<float> scores(size);
        Monitor monitor = monitor_of(progress);
        Monitor unwatched;  // a small batch ends before anyone could look: no threads, no polling
        Monitor& chosen = x.nnz() < 4096 ? unwatched : monitor;
        const label_tree::SearchOptions used{k, beam_width, x.nnz() < 4096 ? 1 : n_threads};
        without_gil([&] {
            with_weights([&](const auto& weights) {
                label_tree::Searcher searcher(model(), weights, x, used);
                if (exact) {
                    searcher.exact(chosen, labels.data(), scores.data());
                } else {
                    searcher.beam(chosen, labels.data(), scores.data());
                }
            });
            return 0;
        });
        const auto rows = static_cast<size_t>(x.n_rows);
        return nb::make_tuple(to_numpy(std::move(labels), rows, static_cast<size_t>(k)),
                              to_numpy(std::move(scores), rows, static_cast<size_t>(k)));
    }

  private:
    label_tree::Searchable model() const {
        return {tree_view(child_ptr_, label_), inner_of_.data(), index_, bias_.data(), link_};
    }

    template <class Use>
    void with_weights(Use&& use) const {
        if (row_start_.shape(0) == 0) {
            use(label_tree::DenseWeights{weight_ptr_.data(), static_cast<const float*>(weights_.data())});
            return;
        }
        const bool whole = weights_.dtype() == nb::dtype<int8_t>();
        const label_tree::SparseWeights pairs{feature_ptr_.data(),
                                              weight_ptr_.data(),
                                              row_start_.data(),
                                              child_.data(),
                                              child_.dtype().bits / 8,
                                              weights_.data(),
                                              !whole && weights_.dtype() != nb::dtype<float>()};
        if (whole) {
            use(label_tree::QuantizedWeights{pairs, static_cast<const int8_t*>(weights_.data()),
                                             scale_.data()});
        } else {
            use(pairs);
        }
    }

    Array<int32_t> child_ptr_, label_, inner_of_;
    Array<int64_t> feature_ptr_;
    Array<int32_t> features_;
    Array<int64_t> weight_ptr_;
    Array<uint32_t> row_start_;
    nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu> child_, weights_;
    Array<float> scale_, bias_;
    label_tree::Link link_;
    int64_t n_features_;
    label_tree::FeatureIndex index_;
};

nb::tuple average_topk_(nb::ndarray<const int32_t, nb::ndim<3>, nb::c_contig, nb::device::cpu> labels,
                        nb::ndarray<const float, nb::ndim<3>, nb::c_contig, nb::device::cpu> scores,
                        int64_t k) {
    const size_t rows = labels.shape(1), size = rows * static_cast<size_t>(k);
    std::vector<int32_t> out_labels(size);
    std::vector<float> out_scores(size);
    without_gil([&] {
        average_topk(labels.data(), scores.data(), static_cast<int64_t>(labels.shape(0)),
                     static_cast<int64_t>(rows), static_cast<int64_t>(labels.shape(2)), k, out_labels.data(),
                     out_scores.data());
        return 0;
    });
    return nb::make_tuple(to_numpy(std::move(out_labels), rows, static_cast<size_t>(k)),
                          to_numpy(std::move(out_scores), rows, static_cast<size_t>(k)));
}

}  // namespace

void bind_tree(nb::module_& m) {
    m.def(
        "check_csr",
        [](Array<int64_t> xp, Array<int32_t> xi, Array<float> xd, int64_t n_cols) {
            const auto nnz = static_cast<int64_t>(xi.shape(0));
            return static_cast<int>(
                without_gil([&] { return sparse::check_csr(view(xp, xi, xd, n_cols), nnz); }));
        },
        arg("indptr"), arg("indices"), arg("data"), arg("n_cols"),
        "0 for a sound CSR matrix, else the number of what is wrong: 1 pointers, 2 range, 3 order, 4 "
        "values.");
    m.def("isa", [] { return simd::isa(); }, "Instruction set the kernels run on.");
    m.def(
        "unit_rows",
        [](Array<int64_t> xp, Array<int32_t> xi, Array<float> xd) {
            return to_numpy(without_gil([&] { return sparse::unit_rows(view(xp, xi, xd, 0)); }));
        },
        arg("x_indptr"), arg("x_indices"), arg("x_data"), "Values of the rows scaled to unit length.");
    m.def(
        "take_rows",
        [](Array<int64_t> xp, Array<int32_t> xi, Array<float> xd, Array<int64_t> rows, int64_t resident) {
            const GivenRows given(view(xp, xi, xd, 0), std::nullopt, resident);
            OwnedCsr out = without_gil([&] {
                return sparse::take_rows(given.rows(), rows.data(), static_cast<int64_t>(rows.shape(0)));
            });
            return nb::make_tuple(to_numpy(std::move(out.indptr)), to_numpy(std::move(out.indices)),
                                  to_numpy(std::move(out.data)));
        },
        arg("x_indptr"), arg("x_indices"), arg("x_data"), arg("rows"), arg("resident"),
        "The given rows, copied, from a matrix in a mapped file.");
    m.def(
        "unit_factors",
        [](Array<int64_t> xp, Array<int32_t> xi, Array<float> xd, int64_t resident) {
            const GivenRows given(view(xp, xi, xd, 0), std::nullopt, resident);
            return to_numpy(without_gil([&] { return sparse::unit_factors(given.rows()); }));
        },
        arg("x_indptr"), arg("x_indices"), arg("x_data"), arg("resident") = 0,
        "What to multiply each row by to make its length 1.");
    m.def("label_vectors", label_vectors_, arg("x_indptr"), arg("x_indices"), arg("x_data"),
          arg("n_features"), arg("y_indptr"), arg("y_indices"), arg("n_labels"), arg("most"),
          arg("n_threads"), arg("progress").none(), nb::kw_only(), arg("scale") = nb::none(),
          arg("resident") = 0, "Label representations, Eq. (2).");
    m.def("grow_tree", grow_tree_, arg("v_indptr"), arg("v_indices"), arg("v_data"), arg("n_features"),
          arg("balanced"), arg("arity"), arg("max_leaf"), arg("max_depth"), arg("max_rounds"), arg("seed"),
          arg("n_threads"), arg("progress").none(), "A label tree by clustering, as (parent, label).");
    m.def("train_tree", train_tree_, arg("x_indptr"), arg("x_indices"), arg("x_data"), arg("n_features"),
          arg("y_indptr"), arg("y_indices"), arg("n_labels"), arg("child_ptr"), arg("label"), arg("logistic"),
          arg("cost"), arg("tolerance"), arg("skip"), arg("max_passes"), arg("bias"), arg("offset"),
          arg("threshold"), arg("seed"), arg("n_threads"), arg("progress").none(), nb::kw_only(),
          arg("ids") = nb::none(), arg("rows") = nb::none(), arg("scale") = nb::none(), arg("resident") = 0,
          arg("most_entries") = 0,
          "Weights of every inner node of a label tree, and the bytes of weights that the solver moved.");
    m.def("average_topk", average_topk_, arg("labels"), arg("scores"), arg("k"),
          "Average of several top-k lists per row.");
    nb::class_<TreeSearcher>(m, "TreeSearcher", "A packed label tree, ready to be searched.")
        .def(nb::init<Array<int32_t>, Array<int32_t>, Array<int32_t>, Array<int64_t>, Array<int32_t>,
                      Array<int64_t>, Array<uint32_t>,
                      nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>,
                      nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>, Array<float>,
                      Array<float>, label_tree::Link, int64_t>(),
             arg("child_ptr"), arg("label"), arg("inner_of"), arg("feature_ptr"), arg("features"),
             arg("weight_ptr"), arg("row_start"), arg("child"), arg("weights"), arg("scale"), arg("bias"),
             arg("link"), arg("n_features"))
        .def("search", &TreeSearcher::search, arg("x_indptr"), arg("x_indices"), arg("x_data"), arg("k"),
             arg("beam_width"), arg("exact"), arg("n_threads"), arg("progress").none(),
             "Best k labels of every row.");
}

}  // namespace labelwood::bind
