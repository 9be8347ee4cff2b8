// Bindings of the text encoders: texts to rows of counts and weights.
#include "bind/bind.hpp"
#include "bind/options.hpp"
#include "text/count_terms.hpp"
#include "text/hash_terms.hpp"
#include "text/read_words.hpp"
#include "text/weigh.hpp"

namespace labelwood::bind {
namespace {

using namespace text;
// A smaller call is small (see Call): a service encodes one text at a time.
constexpr int64_t kSmallBytes = 1 << 16, kSmallEntries = 1 << 14;

void read(OptionsReader& from, AnalyzerOptions& to) {
    from.choose("unit", to.unit, {"word", "char", "char_wb"});
    Span<const int64_t> shortest, longest;
    from.view("shortest", shortest);
    from.view("longest", longest);
    if (shortest.empty() || shortest.size() != longest.size()) throw nb::value_error("no n-grams of some field");
    for (int64_t field = 0; field < shortest.size(); ++field) to.fields.push_back({shortest[field], longest[field]});
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

// The arrays of the forms of words, and the table over them; empty if there are none.
struct GivenForms {
    Span<const uint8_t> lines;
    Span<const int32_t> tokens;
    Span<const int64_t> starts;
    std::optional<WordForms> table;
};

void read(OptionsReader& from, GivenForms& to) {
    from.view("lines", to.lines);
    from.view("tokens", to.tokens);
    from.view("starts", to.starts);
}

Strings strings(const Array<uint8_t>& utf8, const Array<int64_t>& offsets) {
    return {reinterpret_cast<const char*>(utf8.data()), offsets.data(), length(offsets) - 1};
}

GivenForms read_forms(const std::optional<nb::dict>& given, const Strings& texts) {
    if (!given) return {};
    auto read_in = options_from<GivenForms>(*given, read);
    read_in.table.emplace(read_in.lines, read_in.tokens, read_in.starts);
    if (read_in.table->n_strings() != texts.count) throw nb::value_error("a text lacks its words");
    return read_in;
}

// The strings of documents, n_fields for each.
Strings documents(const Array<uint8_t>& utf8, const Array<int64_t>& offsets, const AnalyzerOptions& analyzer) {
    const Strings found = strings(utf8, offsets);
    if (found.count % analyzer.n_fields() != 0) throw nb::value_error("a document lacks a field");
    return found;
}

nb::tuple rows_out(CountRows&& rows) {
    return nb::make_tuple(to_numpy(std::move(rows.indptr)), to_numpy(std::move(rows.indices)),
                          to_numpy(std::move(rows.counts)));
}

nb::tuple learn(const Array<uint8_t>& utf8, const Array<int64_t>& offsets, const nb::dict& options,
                const std::optional<nb::dict>& forms, int n_threads, const nb::object& progress) {
    Monitor monitor = monitor_of(progress);
    auto given = options_from<LearnOptions>(options, read);
    const Strings texts = documents(utf8, offsets, given.analyzer);
    const GivenForms held = read_forms(forms, texts);
    given.analyzer.forms = held.table ? &*held.table : nullptr;
    LearntTerms learnt = without_gil([&] { return learn_terms(texts, given, n_threads, monitor); });
    return nb::make_tuple(rows_out(std::move(learnt.rows)), to_numpy(std::move(learnt.utf8)),
                          to_numpy(std::move(learnt.offsets)), to_numpy(std::move(learnt.n_documents)),
                          to_numpy(std::move(learnt.totals)));
}

Out<uint64_t> index(const Array<uint8_t>& utf8, const Array<int64_t>& offsets) {
    return to_numpy(index_terms(strings(utf8, offsets)));
}

nb::tuple find(const Array<uint8_t>& utf8, const Array<int64_t>& offsets, const Array<uint8_t>& terms_utf8,
               const Array<int64_t>& terms_offsets, const Array<uint64_t>& slots, const nb::dict& options,
               const std::optional<nb::dict>& forms, int n_threads, const nb::object& progress) {
    Call call(length(utf8) < kSmallBytes, n_threads, progress);
    auto given = options_from<AnalyzerOptions>(options, read);
    const Strings texts = documents(utf8, offsets, given);
    const GivenForms held = read_forms(forms, texts);
    given.forms = held.table ? &*held.table : nullptr;
    return rows_out(without_gil([&] {
        return find_terms(texts, given, strings(terms_utf8, terms_offsets), slots.data(), length(slots), call.n_threads,
                          call.monitor);
    }));
}

nb::tuple hash(const Array<uint8_t>& utf8, const Array<int64_t>& offsets, const nb::dict& options,
               const std::optional<nb::dict>& forms, int n_threads, const nb::object& progress) {
    Call call(length(utf8) < kSmallBytes, n_threads, progress);
    auto given = options_from<HashOptions>(options, read);
    const Strings texts = documents(utf8, offsets, given.analyzer);
    const GivenForms held = read_forms(forms, texts);
    given.analyzer.forms = held.table ? &*held.table : nullptr;
    return rows_out(without_gil([&] { return hash_terms(texts, given, call.n_threads, call.monitor); }));
}

nb::tuple words(const Array<uint8_t>& utf8, const Array<int64_t>& offsets, const nb::dict& options,
                const Array<uint8_t>& languages, int n_languages, int n_threads) {
    Call call(length(utf8) < kSmallBytes, n_threads, nb::none());
    const auto given = options_from<AnalyzerOptions>(options, read);
    const Strings texts = documents(utf8, offsets, given);
    const auto is_known = [&](int language) { return language < n_languages; };
    const uint8_t* const end = languages.data() + length(languages);
    if (length(languages) * given.n_fields() != texts.count || !std::all_of(languages.data(), end, is_known)) {
        throw nb::value_error("one known language a document");
    }
    ReadWords found = without_gil(
        [&] { return read_words(texts, given, languages.data(), n_languages, call.n_threads, call.monitor); });
    return nb::make_tuple(to_numpy(std::move(found.lines)), to_numpy(std::move(found.languages)),
                          to_numpy(std::move(found.tokens)), to_numpy(std::move(found.starts)));
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

nb::tuple weigh_all_fields(const Array<int64_t>& indptr, const Array<int32_t>& indices, const Array<int32_t>& counts,
                           const std::optional<Array<double>>& scale, const Array<double>& weights,
                           const nb::dict& options, int n_threads) {
    Call call(length(indices) < kSmallEntries, n_threads, nb::none());
    auto how = options_from<Weighing>(options, read);
    how.scale = data_or_null(scale);
    if (length(weights) == 0 || (length(indptr) - 1) % length(weights) != 0) {
        throw nb::value_error("a document lacks a field");
    }
    WeighedRows rows = without_gil([&] {
        return weigh_fields(indptr.data(), indices.data(), counts.data(), length(indptr) - 1,
                            {weights.data(), length(weights)}, how, call.n_threads, call.monitor);
    });
    return nb::make_tuple(to_numpy(std::move(rows.indptr)), to_numpy(std::move(rows.indices)),
                          to_numpy(std::move(rows.data)));
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
    m.def("read_words", &words, arg("utf8"), arg("offsets"), arg("options"), arg("languages"), arg("n_languages"),
          arg("n_threads"),
          "The distinct words of texts, one per line; the first word of each language and the end; the texts as "
          "numbers of words; where each text starts in these.");
    m.def("learn_terms", &learn, arg("utf8"), arg("offsets"), arg("options"), arg("forms").none(), arg("n_threads"),
          arg("progress") = nb::none(),
          "Count the terms of texts: (indptr, indices, counts), the vocabulary's UTF-8 and offsets, and for "
          "each term its documents and occurrences.");
    m.def("index_terms", &index, arg("utf8"), arg("offsets"),
          "The hash table over a vocabulary that find_terms needs; empty if a term occurs twice.");
    m.def("find_terms", &find, arg("utf8"), arg("offsets"), arg("terms_utf8"), arg("terms_offsets"), arg("slots"),
          arg("options"), arg("forms").none(), arg("n_threads"), arg("progress") = nb::none(),
          "Count the terms of texts that are in a vocabulary: indptr, indices, counts.");
    m.def("hash_terms", &hash, arg("utf8"), arg("offsets"), arg("options"), arg("forms").none(), arg("n_threads"),
          arg("progress") = nb::none(), "Count the hashed terms of texts: indptr, indices, counts.");
    m.def("weigh_counts", &weigh_counts, arg("indptr"), arg("indices"), arg("counts"), arg("scale").none(),
          arg("options"), arg("n_threads"), "Counts to weights: dampened, scaled by column, normalised by row.");
    m.def("weigh_fields", &weigh_all_fields, arg("indptr"), arg("indices"), arg("counts"), arg("scale").none(),
          arg("weights"), arg("options"), arg("n_threads"),
          "Counts of the fields of documents to weights of the documents: indptr, indices, weights.");
    m.def("unicode_properties", &unicode_properties,
          "The version of the tables, and the flags and the lower case of every code point.");
    m.def("lower_text", &lower, arg("utf8"), "The lower case of a text in UTF-8.");
}

}  // namespace labelwood::bind
