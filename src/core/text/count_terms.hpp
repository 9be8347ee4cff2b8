// Rows of term counts, with a vocabulary that is learnt or given.
#pragma once

#include <cstdlib>
#include <memory>
#include <new>
#include <numeric>

#include "base/span.hpp"
#include "text/analyzer.hpp"
#include "text/count_rows.hpp"
#include "text/vocabulary.hpp"

namespace labelwood::text {

// A worker's analyzer, and the terms of its string with their hashes. All hashes are computed and their
// slots prefetched before the first lookup, so that memory latencies overlap.
class Cutter {
  public:
    explicit Cutter(const AnalyzerOptions& options) : analyzer_(options) {}

    template <class Fetch>
    void cut(const Strings& strings, int64_t string, Fetch&& fetch) {
        spans_ = &analyzer_.terms(strings, string);
        hashes_.resize(spans_->size());
        for (int64_t i = 0; i < hashes_.size(); ++i) {
            hashes_[i] = hash_string(analyzer_.bytes() + (*spans_)[i].begin, (*spans_)[i].size);
            fetch(hashes_[i]);
        }
    }

    // Calls take(text, size, hash) for every term, in the order of the text, and fetch(hash) some terms
    // ahead.
    template <class Fetch, class Take>
    void each(Fetch&& fetch, Take&& take) {
        constexpr int64_t kAhead = 8;
        for (int64_t i = 0; i < hashes_.size(); ++i) {
            if (i + kAhead < hashes_.size()) fetch(hashes_[i + kAhead]);
            take(analyzer_.bytes() + (*spans_)[i].begin, (*spans_)[i].size, hashes_[i]);
        }
    }

  private:
    Analyzer analyzer_;
    const Vector<Stretch>* spans_ = nullptr;
    Vector<uint64_t> hashes_;
};

struct LearntTerms {
    CountRows rows;
    Vector<uint8_t> utf8;
    Vector<int64_t> offsets{0};
    Vector<int64_t> n_documents;
    Vector<int64_t> totals;
};

namespace learning {

// Adds the terms of all workers to those of the first; returns, per worker, the merged id of each id.
inline Vector<Vector<uint32_t>> merge(Vector<Vocabulary>& found) {
    Vector<Vector<uint32_t>> merged(found.size());
    merged[0].resize(found[0].size());
    std::iota(merged[0].begin(), merged[0].end(), 0u);
    for (int64_t w = 1; w < found.size(); ++w) {
        Vector<char> padded;
        for (uint32_t id = 0; id < found[w].size(); ++id) {
            const Term& term = found[w][id];
            padded.assign(found[w].text(term), found[w].text(term) + term.size);
            padded.resize(padded.size() + 8);
            const uint32_t to = found[0].intern(padded.data(), term.size, hash_string(padded.data(), term.size));
            found[0][to].n_documents += term.n_documents;
            found[0][to].total += term.total;
            merged[w].push_back(to);
        }
        found[w] = Vocabulary();
    }
    found[0].release_table();
    return merged;
}

// The ids of the terms in min_documents to max_documents documents, in the order of their strings.
inline Vector<uint32_t> kept_in_order(const Vocabulary& terms, int64_t min_documents, int64_t max_documents) {
    Vector<uint32_t> kept;
    for (uint32_t id = 0; id < terms.size(); ++id) {
        const int64_t count = terms[id].n_documents;
        if (count >= min_documents && count <= max_documents) kept.push_back(id);
    }
    std::sort(kept.begin(), kept.end(), [&](uint32_t one, uint32_t other) { return terms.before(one, other); });
    return kept;
}

// Maps a piece's entries to columns of the final vocabulary, drops entries without a column, and sorts each
// string.
inline void renumber(Piece& piece, const Vector<uint32_t>& merged, const Vector<uint32_t>& columns) {
    Vector<uint64_t> workspace;
    uint64_t* from = piece.entries.data();
    uint64_t* to = from;
    for (int64_t& size : piece.sizes) {
        uint64_t* const begin = to;
        for (const uint64_t* const end = from + size; from < end; ++from) {
            const uint32_t column = columns[merged[static_cast<int64_t>(*from >> 32)]];
            if (column != UINT32_MAX) *to++ = entry(column, static_cast<uint32_t>(*from));
        }
        sort_entries(begin, to, workspace, columns.size());
        size = to - begin;
    }
    piece.entries.resize(to - piece.entries.data());
}

}  // namespace learning

struct LearnOptions {
    AnalyzerOptions analyzer;
    int64_t min_documents;
    int64_t max_documents;
};

// Counts the terms of documents, string by string, and learns the vocabulary: the terms in at least
// min_documents and at most max_documents of the documents, sorted. Worker vocabularies differ from run to run; the
// result does not.
inline LearntTerms learn_terms(const Strings& strings, const LearnOptions& options, int n_threads, Monitor& monitor) {
    const int64_t n_fields = options.analyzer.n_fields();
    Vector<Vocabulary> found(n_threads);
    Vector<Cutter> cutters(found.size(), Cutter(options.analyzer));
    Vector<Piece> pieces =
        build_rows(strings, n_fields, n_threads, monitor, [&](int64_t string, Vector<uint64_t>& entries, int worker) {
            Vocabulary& vocabulary = found[worker];
            Cutter& cutter = cutters[worker];
            const int64_t before = entries.size(), first = string - string % n_fields;
            cutter.cut(strings, string, [&](uint64_t hash) { vocabulary.fetch_slot(hash); });
            const auto fetch_term = [&](uint64_t hash) { vocabulary.fetch_term(hash); };
            cutter.each(fetch_term, [&](const char* text, int64_t size, uint64_t hash) {
                const uint32_t id = vocabulary.intern(text, size, hash);
                Term& term = vocabulary[id];
                term.n_documents += term.seen.is_new_since(first);
                term.seen.count(id, string, entries, before);
                ++term.total;
            });
        });
    const Vector<Vector<uint32_t>> merged = learning::merge(found);
    const Vocabulary& terms = found[0];
    const Vector<uint32_t> kept = learning::kept_in_order(terms, options.min_documents, options.max_documents);

    LearntTerms learnt;
    Vector<uint32_t> columns(terms.size(), UINT32_MAX);
    for (int64_t column = 0; column < kept.size(); ++column) {
        const Term& term = terms[kept[column]];
        columns[kept[column]] = static_cast<uint32_t>(column);
        learnt.utf8.insert(learnt.utf8.end(), terms.text(term), terms.text(term) + term.size);
        learnt.offsets.push_back(learnt.utf8.size());
        learnt.n_documents.push_back(term.n_documents);
        learnt.totals.push_back(term.total);
    }
    parallel_for(pieces.size(), n_threads, monitor, [&](int64_t p, int) {
        Piece& piece = pieces[p];
        learning::renumber(piece, merged[piece.worker], columns);
    });
    learnt.rows = join_rows(pieces, n_threads, monitor);
    return learnt;
}

// The distinct words of the documents of each language, in no order; `languages` holds the language of each
// document. `options` must be those of single words.
inline Vector<Vocabulary> distinct_words(const Strings& strings, const AnalyzerOptions& options,
                                         const uint8_t* languages, int64_t n_languages, int n_threads,
                                         Monitor& monitor) {
    const int64_t n_fields = options.n_fields();
    Vector<Vector<Vocabulary>> found(n_languages, Vector<Vocabulary>(n_threads));
    Vector<Cutter> cutters(n_threads, Cutter(options));
    const Vector<Piece> pieces = pieces_of(strings, n_fields);
    parallel_for(pieces.size(), n_threads, monitor, [&](int64_t p, int worker) {
        Cutter& cutter = cutters[worker];
        for (int64_t string = pieces[p].begin; string < pieces[p].end; ++string) {
            Vocabulary& words = found[languages[string / n_fields]][worker];
            cutter.cut(strings, string, [&](uint64_t hash) { words.fetch_slot(hash); });
            cutter.each([&](uint64_t hash) { words.fetch_term(hash); },
                        [&](const char* text, int64_t size, uint64_t hash) { words.intern(text, size, hash); });
        }
    });
    Vector<Vocabulary> merged;
    for (Vector<Vocabulary>& of_workers : found) {
        learning::merge(of_workers);
        merged.push_back(std::move(of_workers[0]));
    }
    return merged;
}

// The hash table in which find_terms looks strings up; empty if two strings are equal.
inline Vector<uint64_t> index_terms(const Strings& terms) {
    Vector<uint64_t> slots(table_size(terms.count));
    const auto mask = static_cast<uint64_t>(slots.size() - 1);
    Vector<char> padded;
    for (int64_t id = 0; id < terms.count; ++id) {
        padded.assign(terms.begin(id), terms.begin(id) + terms.size(id));
        padded.resize(padded.size() + 8);
        const uint64_t hash = hash_string(padded.data(), terms.size(id));
        const int64_t at = find_slot(slots.data(), mask, hash, [&](uint32_t other) {
            return terms.size(other) == terms.size(id) &&
                   std::memcmp(terms.begin(other), terms.begin(id), static_cast<size_t>(terms.size(id))) == 0;
        });
        if (slots[at] != 0) return {};
        slots[at] = slot_of(hash, static_cast<uint32_t>(id));
    }
    return slots;
}

// What was seen of each column. The memory starts as zero pages and is touched only where a column occurs, so
// a short text is cheap whatever the size of the vocabulary.
class LastSeen {
  public:
    explicit LastSeen(int64_t n_columns)
        : seen_(static_cast<Seen*>(std::calloc(static_cast<size_t>(n_columns), sizeof(Seen))), &std::free) {
        if (!seen_) throw std::bad_alloc();
    }

    Seen& operator[](uint32_t column) { return seen_.get()[column]; }

  private:
    std::unique_ptr<Seen, decltype(&std::free)> seen_;
};

// Counts the terms that are in a vocabulary; other terms are ignored.
inline CountRows find_terms(const Strings& strings, const AnalyzerOptions& options, const Strings& terms,
                            const uint64_t* slots, int64_t n_slots, int n_threads, Monitor& monitor) {
    Vector<Cutter> cutters(n_threads, Cutter(options));
    Vector<Vector<uint64_t>> workspaces(cutters.size());
    Vector<LastSeen> last_seen;
    for (int worker = 0; worker < n_threads; ++worker) last_seen.emplace_back(terms.count);
    const auto mask = static_cast<uint64_t>(n_slots - 1);
    Vector<Piece> pieces = build_rows(
        strings, options.n_fields(), n_threads, monitor, [&](int64_t string, Vector<uint64_t>& entries, int worker) {
            Cutter& cutter = cutters[worker];
            LastSeen& seen = last_seen[worker];
            const int64_t before = entries.size();
            cutter.cut(strings, string, [&](uint64_t hash) { __builtin_prefetch(slots + (hash & mask)); });
            const auto fetch_term = [&](uint64_t hash) {
                const auto id = static_cast<uint32_t>(slots[hash & mask]);
                __builtin_prefetch(terms.offsets + id - (id > 0));
            };
            cutter.each(fetch_term, [&](const char* text, int64_t size, uint64_t hash) {
                const int64_t at = find_slot(slots, mask, hash, [&](uint32_t id) {
                    return terms.size(id) == size && std::memcmp(terms.begin(id), text, static_cast<size_t>(size)) == 0;
                });
                if (slots[at] == 0) return;
                const uint32_t column = static_cast<uint32_t>(slots[at]) - 1;
                seen[column].count(column, string, entries, before);
            });
            sort_entries(entries.data() + before, entries.data() + entries.size(), workspaces[worker], terms.count);
        });
    return join_rows(pieces, n_threads, monitor);
}

}  // namespace labelwood::text
