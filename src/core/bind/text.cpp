// Bindings of the text encoders: texts to rows of counts and weights.
#include "bind/bind.hpp"
#include "bind/options.hpp"
#include "text/count_terms.hpp"
#include "text/hash_terms.hpp"
#include "text/weigh.hpp"

namespace labelwood::bind {
namespace {

using namespace text;
// A smaller call is small (see Call): a service encodes one text at a time.
constexpr int64_t kSmallBytes = 1 << 16, kSmallEntries = 1 << 14;

void read(OptionsReader& from, AnalyzerOptions& to) {
    from.choose("unit", to.unit, {"word", "char", "char_wb"});
    from.read("shortest", to.shortest);
    from.read("longest", to.longest);
    from.read("min_length", to.min_length);
    from.read("lowercase", to.lowercase);
}

void read(OptionsReader& from, LearnOptions& to) {
    read(from, to.analyzer);
    from.read("min_documents", to.min_documents);
    from.read("max_documents", to.max_documents);
}

void read(OptionsReader& from, HashOptions& to) {
    read(from, to.analyzer);
    from.read("n_columns", to.n_columns);
    from.read("signed_counts", to.signed_counts);
}

void read(OptionsReader& from, Weighing& to) {
    from.read("sublinear", to.sublinear);
    from.read("binary", to.binary);
    from.choose("norm", to.norm, {"none", "l1", "l2"});
}

Strings strings(const Array<uint8_t>& utf8, const Array<int64_t>& offsets) {
    return {reinterpret_cast<const char*>(utf8.data()), offsets.data(), length(offsets) - 1};
}

nb::tuple rows_out(CountRows&& rows) {
    return nb::make_tuple(to_numpy(std::move(rows.indptr)), to_numpy(std::move(rows.indices)),
                          to_numpy(std::move(rows.counts)));
}

nb::tuple learn(const Array<uint8_t>& utf8, const Array<int64_t>& offsets, const nb::dict& options, int n_threads,
                const nb::object& progress) {
    Monitor monitor = monitor_of(progress);
    const auto given = options_from<LearnOptions>(options, read);
    LearntTerms learnt = without_gil([&] { return learn_terms(strings(utf8, offsets), given, n_threads, monitor); });
    return nb::make_tuple(rows_out(std::move(learnt.rows)), to_numpy(std::move(learnt.utf8)),
                          to_numpy(std::move(learnt.offsets)), to_numpy(std::move(learnt.n_documents)),
                          to_numpy(std::move(learnt.totals)));
}

Out<uint64_t> index(const Array<uint8_t>& utf8, const Array<int64_t>& offsets) {
    return to_numpy(index_terms(strings(utf8, offsets)));
}

nb::tuple find(const Array<uint8_t>& utf8, const Array<int64_t>& offsets, const Array<uint8_t>& terms_utf8,
               const Array<int64_t>& terms_offsets, const Array<uint64_t>& slots, const nb::dict& options,
               int n_threads, const nb::object& progress) {
    Call call(length(utf8) < kSmallBytes, n_threads, progress);
    const auto given = options_from<AnalyzerOptions>(options, read);
    return rows_out(without_gil([&] {
        return find_terms(strings(utf8, offsets), given, strings(terms_utf8, terms_offsets), slots.data(),
                          length(slots), call.n_threads, call.monitor);
    }));
}

nb::tuple hash(const Array<uint8_t>& utf8, const Array<int64_t>& offsets, const nb::dict& options, int n_threads,
               const nb::object& progress) {
    Call call(length(utf8) < kSmallBytes, n_threads, progress);
    const auto given = options_from<HashOptions>(options, read);
    return rows_out(
        without_gil([&] { return hash_terms(strings(utf8, offsets), given, call.n_threads, call.monitor); }));
}

Out<float> weigh_counts(const Array<int64_t>& indptr, const Array<int32_t>& indices, const Array<int32_t>& counts,
                        const std::optional<Array<double>>& scale, const nb::dict& options, int n_threads) {
    Call call(length(indices) < kSmallEntries, n_threads, nb::none());
    auto how = options_from<Weighing>(options, read);
    how.scale = data_or_null(scale);
    return to_numpy(without_gil([&] {
        return weigh(indptr.data(), indices.data(), counts.data(), length(indptr) - 1, how, call.n_threads,
                     call.monitor);
    }));
}

// The tables for every code point, for a test that compares them with Python's.
nb::tuple unicode_properties() {
    const Unicode unicode;
    std::vector<uint8_t> flags(0x110000);
    std::vector<int32_t> lower(0x110000);
    for (uint32_t code = 0; code < 0x110000; ++code) {
        flags[code] = unicode.flags(code);
        lower[code] = static_cast<int32_t>(unicode.lower(code));
    }
    return nb::make_tuple(kUnicodeVersion, to_numpy(std::move(flags)), to_numpy(std::move(lower)));
}

Out<uint8_t> lower(const Array<uint8_t>& utf8) {
    std::vector<uint8_t> lowered(static_cast<size_t>(lowered_bound(length(utf8))));
    char* const begin = reinterpret_cast<char*>(lowered.data());
    const char* const end = lower_text(Unicode(), reinterpret_cast<const char*>(utf8.data()), length(utf8), begin);
    lowered.resize(static_cast<size_t>(end - begin));
    return to_numpy(std::move(lowered));
}

}  // namespace

void bind_text(nb::module_& m) {
    m.def("learn_terms", &learn, arg("utf8"), arg("offsets"), arg("options"), arg("n_threads"),
          arg("progress") = nb::none(),
          "Count the terms of texts: (indptr, indices, counts), the vocabulary's UTF-8 and offsets, and for "
          "each term its documents and occurrences.");
    m.def("index_terms", &index, arg("utf8"), arg("offsets"),
          "The hash table over a vocabulary that find_terms needs; empty if a term occurs twice.");
    m.def("find_terms", &find, arg("utf8"), arg("offsets"), arg("terms_utf8"), arg("terms_offsets"), arg("slots"),
          arg("options"), arg("n_threads"), arg("progress") = nb::none(),
          "Count the terms of texts that are in a vocabulary: indptr, indices, counts.");
    m.def("hash_terms", &hash, arg("utf8"), arg("offsets"), arg("options"), arg("n_threads"),
          arg("progress") = nb::none(), "Count the hashed terms of texts: indptr, indices, counts.");
    m.def("weigh_counts", &weigh_counts, arg("indptr"), arg("indices"), arg("counts"), arg("scale").none(),
          arg("options"), arg("n_threads"), "Counts to weights: dampened, scaled by column, normalised by row.");
    m.def("unicode_properties", &unicode_properties,
          "The version of the tables, and the flags and the lower case of every code point.");
    m.def("lower_text", &lower, arg("utf8"), "The lower case of a text in UTF-8.");
}

}  // namespace labelwood::bind
