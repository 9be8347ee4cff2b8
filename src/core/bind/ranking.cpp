// Bindings of the second look of a ranker.
#include "bind/arguments.hpp"
#include "bind/options.hpp"
#include "ranking/name_index.hpp"
#include "ranking/second_look.hpp"
#include "ranking/similar_rows.hpp"
#include "ranking/similar_vectors.hpp"

namespace labelwood::bind {
namespace {

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
               const CsrArrays& names, const Array<float>& log_name_rows, int64_t n_lists, int64_t n_members)
        : log_counts_(log_counts),
          together_(together),
          name_ptr_(name_ptr),
          names_(names),
          log_name_rows_(log_name_rows),
          n_lists_(n_lists),
          n_members_(n_members) {}

    void set_trees(const nb::dict& arrays) {
        const auto given = options_from<TreeArrays>(arrays, read);
        trees_ = ranking::boosted_trees(span(given.roots), span(given.features), span(given.thresholds),
                                        span(given.children), span(given.values), given.start);
    }

    nb::tuple describe(const CsrArrays& x, const Array2<int32_t>& labels, const Array2<float>& scores, int n_threads,
                       const nb::object& progress) const {
        Call call(x.view().n_rows <= kFew, n_threads, progress);
        ranking::Described found = without_gil([&] {
            return ranking::describe_candidates(x.view(), tables(), lists(labels, scores), call.n_threads,
                                                call.monitor);
        });
        const int64_t count = found.labels.size();
        return nb::make_tuple(to_numpy(std::move(found.ptr)), to_numpy(std::move(found.labels)),
                              to_numpy(std::move(found.features), count, ranking::n_features(n_lists_)));
    }

    nb::tuple topk(const CsrArrays& x, const Array2<int32_t>& labels, const Array2<float>& scores, int64_t k,
                   int n_threads, const nb::object& progress) const {
        Call call(x.view().n_rows <= kFew, n_threads, progress);
        return labels_and_scores(x.view().n_rows, k, [&](int32_t* best, float* chances) {
            ranking::rank_candidates(x.view(), tables(), lists(labels, scores), trees_, k, call.n_threads, call.monitor,
                                     best, chances);
        });
    }

  private:
    static constexpr int64_t kFew = 64;

    ranking::LabelTables tables() const {
        return {log_counts_.data(), together_.view(), name_ptr_.data(), names_.view(), log_name_rows_.data()};
    }
    ranking::Lists lists(const Array2<int32_t>& labels, const Array2<float>& scores) const {
        const int64_t width = static_cast<int64_t>(labels.shape(1)) / n_lists_;
        return {labels.data(), scores.data(), n_lists_, n_members_, width};
    }

    Array<float> log_counts_;
    CsrArrays together_;
    Array<int64_t> name_ptr_;
    CsrArrays names_;
    Array<float> log_name_rows_;
    int64_t n_lists_, n_members_;
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

nb::tuple matches(const CsrArrays& x, const CsrArrays& postings, const Array<int32_t>& label_of, int64_t n_labels,
                  int64_t k, int n_threads, const nb::object& progress) {
    Call call(x.view().n_rows <= 64, n_threads, progress);
    const ranking::NameIndex index{postings.view(), label_of.data(), length(label_of), n_labels};
    return labels_and_scores(x.view().n_rows, k, [&](int32_t* labels, float* scores) {
        ranking::match_names(x.view(), index, k, call.n_threads, call.monitor, labels, scores);
    });
}

// The four arrays of voted lists, filled by `write`.
template <class Write>
nb::tuple voted_lists(int64_t n_rows, int64_t k, Write&& write) {
    Vector<int32_t> voted(n_rows * k), nearest(n_rows * k);
    Vector<float> shares(n_rows * k), similarities(n_rows * k);
    without_gil([&] { write({voted.data(), shares.data(), nearest.data(), similarities.data()}); });
    return nb::make_tuple(to_numpy(std::move(voted), n_rows, k), to_numpy(std::move(shares), n_rows, k),
                          to_numpy(std::move(nearest), n_rows, k), to_numpy(std::move(similarities), n_rows, k));
}

nb::tuple votes(const CsrArrays& x, const CsrArrays& postings, const CsrArrays& labels, int64_t n_terms,
                int64_t n_neighbors, int64_t k, int n_threads, const nb::object& progress) {
    Call call(x.view().n_rows <= 64, n_threads, progress);
    const ranking::RowIndex index{postings.view(), labels.view(), n_terms, n_neighbors};
    return voted_lists(x.view().n_rows, k, [&](const ranking::VotedLists& out) {
        ranking::vote(x.view(), index, k, call.n_threads, call.monitor, out);
    });
}

// `vectors` has the bits of half-precision numbers.
nb::tuple vector_votes(const Array2<float>& x, const Array2<uint16_t>& vectors, const CsrArrays& labels,
                       int64_t n_neighbors, int64_t k, int n_threads, const nb::object& progress) {
    const auto n_queries = static_cast<int64_t>(x.shape(0)), width = static_cast<int64_t>(x.shape(1));
    Call call(n_queries == 1, n_threads, progress);
    const Vectors queries{reinterpret_cast<const char*>(x.data()), width, VectorType::kFloat};
    const Vectors known{reinterpret_cast<const char*>(vectors.data()), width, VectorType::kHalf};
    const ranking::VectorIndex index{known, static_cast<int64_t>(vectors.shape(0)), labels.view(), n_neighbors};
    return voted_lists(n_queries, k, [&](const ranking::VotedLists& out) {
        ranking::vote_of_vectors(queries, n_queries, index, k, call.n_threads, call.monitor, out);
    });
}

}  // namespace

void bind_ranking(nb::module_& m) {
    m.def("boosted_sums", &sums, arg("trees"), arg("features"), "Sums of the leaves that each feature vector reaches.");
    m.def("match_names", &matches, arg("X"), arg("postings"), arg("label_of"), arg("n_labels"), arg("k"),
          arg("n_threads"), arg("progress").none(), "The k labels of each row whose names stand in it.");
    m.def("vote_of_similar_rows", &votes, arg("X"), arg("postings"), arg("labels"), arg("n_terms"), arg("n_neighbors"),
          arg("k"), arg("n_threads"), arg("progress").none(),
          "Labels of the similar training rows: by share of the votes, and by similarity of the nearest row.");
    m.def("vote_of_similar_vectors", &vector_votes, arg("X"), arg("vectors"), arg("labels"), arg("n_neighbors"),
          arg("k"), arg("n_threads"), arg("progress").none(),
          "Labels of the training rows of the nearest vectors: by share of the votes, and by the nearest row.");
    nb::class_<SecondLook>(m, "SecondLook", "What orders the candidates of several members.")
        .def(nb::init<const Array<float>&, const CsrArrays&, const Array<int64_t>&, const CsrArrays&,
                      const Array<float>&, int64_t, int64_t>(),
             arg("log_counts"), arg("together"), arg("name_ptr"), arg("names"), arg("log_name_rows"), arg("n_lists"),
             arg("n_members"))
        .def("set_trees", &SecondLook::set_trees, arg("arrays"), "The boosted trees that topk uses.")
        .def("describe", &SecondLook::describe, arg("X"), arg("labels"), arg("scores"), arg("n_threads"),
             arg("progress").none(), "Candidates of every row and their features: ptr, labels, features.")
        .def("topk", &SecondLook::topk, arg("X"), arg("labels"), arg("scores"), arg("k"), arg("n_threads"),
             arg("progress").none(), "Best k candidates of every row by the boosted trees.");
}

}  // namespace labelwood::bind
