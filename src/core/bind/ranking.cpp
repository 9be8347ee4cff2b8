// Bindings of the second look of a ranker.
#include "bind/arguments.hpp"
#include "bind/options.hpp"
#include "ranking/second_look.hpp"

namespace labelwood::bind {
namespace {

using nb::arg;

struct TreeArrays {
    Array<int32_t> roots, features, children;
    Array<float> thresholds;
    Array<double> values;
    double start;
};

void read(OptionsReader& reader, TreeArrays& into) {
    reader.read("roots", into.roots);
    reader.read("features", into.features);
    reader.read("thresholds", into.thresholds);
    reader.read("children", into.children);
    reader.read("values", into.values);
    reader.read("start", into.start);
}

class SecondLook {
  public:
    SecondLook(const Array<float>& log_counts, const CsrArrays& together, const Array<int64_t>& name_ptr,
               const CsrArrays& names)
        : log_counts_(log_counts), together_(together), name_ptr_(name_ptr), names_(names) {}

    void set_trees(const nb::dict& arrays) {
        const auto given = options_from<TreeArrays>(arrays, read);
        trees_ = ranking::boosted_trees(span(given.roots), span(given.features), span(given.thresholds),
                                        span(given.children), span(given.values), given.start);
    }

    nb::tuple describe(const CsrArrays& x, const Array2<int32_t>& labels, const Array2<float>& scores,
                       int64_t n_members, int n_threads, const nb::object& progress) const {
        Call call(x.view().n_rows <= kFew, n_threads, progress);
        ranking::Described found = without_gil([&] {
            return ranking::describe_candidates(x.view(), tables(), lists(labels, scores, n_members), call.n_threads,
                                                call.monitor);
        });
        const int64_t count = found.labels.size();
        return nb::make_tuple(to_numpy(std::move(found.ptr)), to_numpy(std::move(found.labels)),
                              to_numpy(std::move(found.features), count, ranking::n_features(n_members)));
    }

    nb::tuple topk(const CsrArrays& x, const Array2<int32_t>& labels, const Array2<float>& scores, int64_t n_members,
                   int64_t k, int n_threads, const nb::object& progress) const {
        Call call(x.view().n_rows <= kFew, n_threads, progress);
        return labels_and_scores(x.view().n_rows, k, [&](int32_t* best, float* chances) {
            ranking::rank_candidates(x.view(), tables(), lists(labels, scores, n_members), trees_, k, call.n_threads,
                                     call.monitor, best, chances);
        });
    }

  private:
    static constexpr int64_t kFew = 64;

    ranking::LabelTables tables() const {
        return {log_counts_.data(), together_.view(), name_ptr_.data(), names_.view()};
    }
    static ranking::Lists lists(const Array2<int32_t>& labels, const Array2<float>& scores, int64_t n_members) {
        return {labels.data(), scores.data(), n_members, static_cast<int64_t>(labels.shape(1)) / n_members};
    }

    Array<float> log_counts_;
    CsrArrays together_;
    Array<int64_t> name_ptr_;
    CsrArrays names_;
    ranking::BoostedTrees trees_;
};

Out<double> sums(const nb::dict& arrays, const Array2<float>& features) {
    const auto given = options_from<TreeArrays>(arrays, read);
    const auto n = static_cast<int64_t>(features.shape(0));
    return to_numpy(without_gil([&] {
        const ranking::BoostedTrees trees =
            ranking::boosted_trees(span(given.roots), span(given.features), span(given.thresholds),
                                   span(given.children), span(given.values), given.start);
        Vector<double> found(n);
        ranking::sum_leaves(trees, features.data(), static_cast<int64_t>(features.shape(1)), n, found.data());
        return found;
    }));
}

}  // namespace

void bind_ranking(nb::module_& m) {
    m.def("boosted_sums", &sums, arg("trees"), arg("features"), "Sums of the leaves that each feature vector reaches.");
    nb::class_<SecondLook>(m, "SecondLook", "What orders the candidates of several members.")
        .def(nb::init<const Array<float>&, const CsrArrays&, const Array<int64_t>&, const CsrArrays&>(),
             arg("log_counts"), arg("together"), arg("name_ptr"), arg("names"))
        .def("set_trees", &SecondLook::set_trees, arg("arrays"), "The boosted trees that topk uses.")
        .def("describe", &SecondLook::describe, arg("X"), arg("labels"), arg("scores"), arg("n_members"),
             arg("n_threads"), arg("progress").none(),
             "Candidates of every row and their features: ptr, labels, features.")
        .def("topk", &SecondLook::topk, arg("X"), arg("labels"), arg("scores"), arg("n_members"), arg("k"),
             arg("n_threads"), arg("progress").none(), "Best k candidates of every row by the boosted trees.");
}

}  // namespace labelwood::bind
