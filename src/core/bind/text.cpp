// Texts to rows of counts and weights.
#include "bind/bind.hpp"
#include "text/count_terms.hpp"
#include "text/hash_terms.hpp"
#include "text/weigh.hpp"

namespace labelwood::bind {

namespace {

using namespace text;

// What ends before anyone could look gets no threads and no polling: a service encodes one text at a time.
constexpr size_t kSmallBytes = 1 << 16, kSmallEntries = 1 << 14;

Strings strings(const Array<uint8_t>& utf8, const Array<int64_t>& offsets) {
    return {reinterpret_cast<const char*>(utf8.data()), offsets.data(),
            static_cast<int64_t>(offsets.shape(0)) - 1};
}

AnalyzerOptions analyzer(int unit, int64_t shortest, int64_t longest, int64_t min_length, bool lowercase) {
    return {static_cast<Unit>(unit), shortest, longest, min_length, lowercase};
}

nb::tuple rows_out(CountRows&& rows) {
    return nb::make_tuple(to_numpy(std::move(rows.indptr)), to_numpy(std::move(rows.indices)),
                          to_numpy(std::move(rows.counts)));
}

nb::tuple learn(Array<uint8_t> utf8, Array<int64_t> offsets, int unit, int64_t shortest, int64_t longest,
                int64_t min_length, bool lowercase, int64_t min_documents, int64_t max_documents,
                int n_threads, const nb::object& progress) {
    Monitor monitor = monitor_of(progress);
    const AnalyzerOptions options = analyzer(unit, shortest, longest, min_length, lowercase);
    LearntTerms learnt = without_gil([&] {
        return learn_terms(strings(utf8, offsets), options, min_documents, max_documents, n_threads, monitor);
    });
    return nb::make_tuple(rows_out(std::move(learnt.rows)), to_numpy(std::move(learnt.utf8)),
                          to_numpy(std::move(learnt.offsets)), to_numpy(std::move(learnt.n_documents)),
                          to_numpy(std::move(learnt.totals)));
}

Out<uint64_t> index(Array<uint8_t> utf8, Array<int64_t> offsets) {
    return to_numpy(index_terms(strings(utf8, offsets)));
}

nb::tuple find(Array<uint8_t> utf8, Array<int64_t> offsets, int unit, int64_t shortest, int64_t longest,
               int64_t min_length, bool lowercase, Array<uint8_t> terms_utf8, Array<int64_t> terms_offsets,
               Array<uint64_t> slots, int n_threads, const nb::object& progress) {
    const bool small = utf8.shape(0) < kSmallBytes;
    Monitor monitor = small ? Monitor() : monitor_of(progress);
    const AnalyzerOptions options = analyzer(unit, shortest, longest, min_length, lowercase);
    return rows_out(without_gil([&] {
        return find_terms(strings(utf8, offsets), options, strings(terms_utf8, terms_offsets), slots.data(),
                          static_cast<int64_t>(slots.shape(0)), small ? 1 : n_threads, monitor);
    }));
}

nb::tuple hash(Array<uint8_t> utf8, Array<int64_t> offsets, int unit, int64_t shortest, int64_t longest,
               int64_t min_length, bool lowercase, int64_t n_columns, bool signed_counts, int n_threads,
               const nb::object& progress) {
    const bool small = utf8.shape(0) < kSmallBytes;
    Monitor monitor = small ? Monitor() : monitor_of(progress);
    const AnalyzerOptions options = analyzer(unit, shortest, longest, min_length, lowercase);
    return rows_out(without_gil([&] {
        return hash_terms(strings(utf8, offsets), options, n_columns, signed_counts, small ? 1 : n_threads,
                          monitor);
    }));
}

Out<float> weigh_counts(Array<int64_t> indptr, Array<int32_t> indices, Array<int32_t> counts, bool sublinear,
                        bool binary, std::optional<Array<double>> scale, int norm, int n_threads) {
    const bool small = indices.shape(0) < kSmallEntries;
    Monitor monitor = small ? Monitor() : monitor_of(nb::none());
    const Weighing how{sublinear, binary, scale ? scale->data() : nullptr, static_cast<Norm>(norm)};
    return to_numpy(without_gil([&] {
        return weigh(indptr.data(), indices.data(), counts.data(), static_cast<int64_t>(indptr.shape(0)) - 1,
                     how, small ? 1 : n_threads, monitor);
    }));
}

// Every code point through the kernel's tables, so that a test can compare them with Python's.
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

Out<uint8_t> lower(Array<uint8_t> utf8) {
    const auto size = static_cast<int64_t>(utf8.shape(0));
    std::vector<uint8_t> lowered(static_cast<size_t>(lowered_bound(size)));
    char* const begin = reinterpret_cast<char*>(lowered.data());
    const char* const end = lower_text(Unicode(), reinterpret_cast<const char*>(utf8.data()), size, begin);
    lowered.resize(static_cast<size_t>(end - begin));
    return to_numpy(std::move(lowered));
}

}  // namespace

void bind_text(nb::module_& m) {
    m.def("learn_terms", &learn, nb::arg("utf8"), nb::arg("offsets"), nb::arg("unit"), nb::arg("shortest"),
          nb::arg("longest"), nb::arg("min_length"), nb::arg("lowercase"), nb::arg("min_documents"),
          nb::arg("max_documents"), nb::arg("n_threads"), nb::arg("progress") = nb::none(),
          "Count the terms of texts: (indptr, indices, counts), the vocabulary's UTF-8 and offsets, the "
          "documents and "
          "the occurrences of each term.");
    m.def("index_terms", &index, nb::arg("utf8"), nb::arg("offsets"),
          "The hash table over a vocabulary that find_terms needs; empty if a term stands twice.");
    m.def("find_terms", &find, nb::arg("utf8"), nb::arg("offsets"), nb::arg("unit"), nb::arg("shortest"),
          nb::arg("longest"), nb::arg("min_length"), nb::arg("lowercase"), nb::arg("terms_utf8"),
          nb::arg("terms_offsets"), nb::arg("slots"), nb::arg("n_threads"), nb::arg("progress") = nb::none(),
          "Count the terms of texts that a vocabulary has: indptr, indices, counts.");
    m.def("hash_terms", &hash, nb::arg("utf8"), nb::arg("offsets"), nb::arg("unit"), nb::arg("shortest"),
          nb::arg("longest"), nb::arg("min_length"), nb::arg("lowercase"), nb::arg("n_columns"),
          nb::arg("signed_counts"), nb::arg("n_threads"), nb::arg("progress") = nb::none(),
          "Count the hashed terms of texts: indptr, indices, counts.");
    m.def("weigh_counts", &weigh_counts, nb::arg("indptr"), nb::arg("indices"), nb::arg("counts"),
          nb::arg("sublinear"), nb::arg("binary"), nb::arg("scale").none(), nb::arg("norm"),
          nb::arg("n_threads"),
          "Counts to weights: dampened, scaled by column, normalised by row (0 no, 1 l1, 2 l2).");
    m.def("unicode_properties", &unicode_properties,
          "The tables' version, and the flags and the lower case of every code point.");
    m.def("lower_text", &lower, nb::arg("utf8"), "The lower case of a text in UTF-8.");
}

}  // namespace labelwood::bind
