// Rows of hashed terms: no vocabulary, so there is nothing to learn or to store.
#pragma once

#include "base/murmur3.hpp"
#include "base/span.hpp"
#include "text/count_terms.hpp"

namespace labelwood::text {

// MurmurHash3 (x86, 32 bits) with seed 0, as scikit-learn's HashingVectorizer uses it.
inline uint32_t hash_term(const char* text, int64_t size) {
    const int64_t whole = size / 4 * 4;
    uint32_t hash = 0;
    for (int64_t i = 0; i < whole; i += 4) hash = murmur3::add(hash, static_cast<uint32_t>(head_of(text + i, 4)));
    const uint64_t rest = size == whole ? 0 : head_of(text + whole, size - whole);
    return murmur3::finish(hash, static_cast<uint32_t>(rest), static_cast<uint32_t>(size));
}

struct HashOptions {
    AnalyzerOptions analyzer;
    int64_t n_columns;
    bool signed_counts;
};

// Counts hashed terms. With `signed_counts`, half of the terms count negatively, so that collisions cancel on
// average. A column whose terms cancel keeps an entry of 0.
inline CountRows hash_terms(const Strings& strings, const HashOptions& options, int n_threads, Monitor& monitor) {
    Vector<Analyzer> analyzers(n_threads, Analyzer(options.analyzer));
    Vector<Vector<uint64_t>> workspaces(analyzers.size());
    Vector<Piece> pieces =
        build_rows(strings, options.analyzer.n_fields(), n_threads, monitor,
                   [&](int64_t string, Vector<uint64_t>& entries, int worker) {
                       Vector<uint64_t>& found = workspaces[worker];
                       found.clear();
                       Analyzer& analyzer = analyzers[worker];
                       for (const Stretch& term : analyzer.terms(strings, string)) {
                           const uint32_t hash = hash_term(analyzer.bytes() + term.begin, term.size);
                           const auto value = static_cast<int64_t>(static_cast<int32_t>(hash));
                           const auto column = static_cast<uint32_t>((value < 0 ? -value : value) % options.n_columns);
                           found.push_back(entry(column, options.signed_counts && value < 0 ? 0 : 1));
                       }
                       std::sort(found.begin(), found.end());
                       for (int64_t i = 0; i < found.size();) {
                           const auto column = static_cast<uint32_t>(found[i] >> 32);
                           int32_t count = 0;
                           for (; i < found.size() && found[i] >> 32 == column; ++i) count += found[i] & 1 ? 1 : -1;
                           entries.push_back(entry(column, static_cast<uint32_t>(count)));
                       }
                   });
    return join_rows(pieces, n_threads, monitor);
}

}  // namespace labelwood::text
