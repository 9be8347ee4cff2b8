// Documents to rows of hashed terms: no vocabulary, so nothing to learn, to store or to grow.
#pragma once

#include "text/count_terms.hpp"

namespace labelwood::text {

// MurmurHash3 (x86, 32 bits) with seed 0, the hash that scikit-learn's hashing vectorizer takes columns from.
inline uint32_t murmur3(const char* text, int64_t size) {
    const auto scrambled = [](uint32_t block) { return std::rotl(block * 0xcc9e2d51U, 15) * 0x1b873593U; };
    const int64_t whole = size / 4;
    uint32_t hash = 0;
    for (int64_t i = 0; i < whole; ++i) {
        hash = std::rotl(hash ^ scrambled(static_cast<uint32_t>(head_of(text + 4 * i, 4))), 13) * 5 +
               0xe6546b64U;
    }
    if (size % 4 != 0) hash ^= scrambled(static_cast<uint32_t>(head_of(text + 4 * whole, size % 4)));
    hash ^= static_cast<uint32_t>(size);
    hash = (hash ^ hash >> 16) * 0x85ebca6bU;
    hash = (hash ^ hash >> 13) * 0xc2b2ae35U;
    return hash ^ hash >> 16;
}

struct HashOptions {
    AnalyzerOptions analyzer;
    int64_t n_columns;
    bool signed_counts;
};

// Counts hashed terms. With `signed_counts` half of the terms count negatively, so that collisions cancel on
// average; a column whose terms cancel stays, with a count of 0.
inline CountRows hash_terms(const Strings& documents, const HashOptions& options, int n_threads,
                            Monitor& monitor) {
    std::vector<Analyzer> analyzers(static_cast<size_t>(n_threads), Analyzer(options.analyzer));
    std::vector<std::vector<uint64_t>> workspaces(analyzers.size());
    std::vector<Piece> pieces = build_rows(
        documents, n_threads, monitor, [&](int64_t document, std::vector<uint64_t>& entries, int worker) {
            std::vector<uint64_t>& found = workspaces[static_cast<size_t>(worker)];
            found.clear();
            Analyzer& analyzer = analyzers[static_cast<size_t>(worker)];
            for (const Span& term : analyzer.terms(documents.begin(document), documents.size(document))) {
                const uint32_t hash = murmur3(analyzer.bytes() + term.begin, term.size);
                const auto value = static_cast<int64_t>(static_cast<int32_t>(hash));
                const auto column = static_cast<uint32_t>((value < 0 ? -value : value) % options.n_columns);
                found.push_back(entry(column, options.signed_counts && value < 0 ? 0 : 1));
            }
            std::sort(found.begin(), found.end());
            for (size_t i = 0; i < found.size();) {
                const auto column = static_cast<uint32_t>(found[i] >> 32);
                int32_t count = 0;
                for (; i < found.size() && found[i] >> 32 == column; ++i) count += found[i] & 1 ? 1 : -1;
                entries.push_back(entry(column, static_cast<uint32_t>(count)));
            }
        });
    return join_rows(pieces, n_threads, monitor);
}

}  // namespace labelwood::text
