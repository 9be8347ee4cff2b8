// Rows of term counts, with a vocabulary that is learnt or given.
#pragma once

#include "base/span.hpp"
#include "text/count_forms.hpp"
#include "text/count_rows.hpp"
#include "text/cutter.hpp"
#include "text/vocabulary.hpp"

namespace labelwood::text {

struct LearntTerms {
    CountRows rows;
    Vector<uint8_t> utf8;
    Vector<int64_t> offsets{0};
    Vector<int64_t> n_documents;
    Vector<int64_t> totals;
};

namespace learning {

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
            if (column != kNoColumn) *to++ = entry(column, static_cast<uint32_t>(*from));
        }
        sort_entries(begin, to, workspace, columns.size());
        size = to - begin;
    }
    piece.entries.resize(to - piece.entries.data());
}

// The kept terms, without rows.
inline LearntTerms described(const Vocabulary& terms, const Vector<uint32_t>& kept) {
    LearntTerms learnt;
    for (const uint32_t id : kept) {
        const Term& term = terms[id];
        learnt.utf8.insert(learnt.utf8.end(), terms.text(term), terms.text(term) + term.size);
        learnt.offsets.push_back(learnt.utf8.size());
        learnt.n_documents.push_back(term.n_documents);
        learnt.totals.push_back(term.total);
    }
    return learnt;
}

// The column of each term: its place among the kept ones.
inline Vector<uint32_t> columns_of(const Vector<uint32_t>& kept, int64_t n_terms) {
    Vector<uint32_t> columns(n_terms, kNoColumn);
    for (int64_t column = 0; column < kept.size(); ++column) columns[kept[column]] = static_cast<uint32_t>(column);
    return columns;
}

}  // namespace learning

struct LearnOptions {
    AnalyzerOptions analyzer;
    int64_t min_documents;
    int64_t max_documents;
};

// learn_terms where the form of a word is a term: words were numbered before, so terms are counted by number.
inline LearntTerms learn_forms(const Strings& strings, const WordForms& forms, const LearnOptions& options,
                               int n_threads, Monitor& monitor) {
    const int64_t n_fields = options.analyzer.n_fields();
    Vocabulary terms;
    Vector<uint32_t> of_word(forms.n_words(), kNoColumn);  // the term of each word
    for (int64_t word = 0; word < forms.n_words(); ++word) {
        const int64_t size = forms.size(word);
        if (size > 0) of_word[word] = terms.intern(forms.form(word), size, hash_string(forms.form(word), size));
    }
    count_documents(forms, of_word, n_fields, terms, n_threads, monitor);
    const Vector<uint32_t> kept = learning::kept_in_order(terms, options.min_documents, options.max_documents);
    const Vector<uint32_t> columns = learning::columns_of(kept, terms.size());
    for (uint32_t& one : of_word) one = one == kNoColumn ? kNoColumn : columns[one];
    LearntTerms learnt = learning::described(terms, kept);
    learnt.rows = count_forms(strings, forms, of_word, n_fields, kept.size(), n_threads, monitor);
    return learnt;
}

// Counts the terms of documents, string by string, and learns the vocabulary: the terms in at least
// min_documents and at most max_documents of the documents, sorted. Worker vocabularies differ from run to run; the
// result does not.
inline LearntTerms learn_terms(const Strings& strings, const LearnOptions& options, int n_threads, Monitor& monitor) {
    if (const WordForms* const forms = options.analyzer.single_forms()) {
        return learn_forms(strings, *forms, options, n_threads, monitor);
    }
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
    const Vector<Vector<uint32_t>> merged = merge(found);
    const Vocabulary& terms = found[0];
    const Vector<uint32_t> kept = learning::kept_in_order(terms, options.min_documents, options.max_documents);

    LearntTerms learnt = learning::described(terms, kept);
    const Vector<uint32_t> columns = learning::columns_of(kept, terms.size());
    parallel_for(pieces.size(), n_threads, monitor, [&](int64_t p, int) {
        Piece& piece = pieces[p];
        learning::renumber(piece, merged[piece.worker], columns);
    });
    learnt.rows = join_rows(pieces, n_threads, monitor);
    return learnt;
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

// Counts the terms that are in a vocabulary; other terms are ignored.
inline CountRows find_terms(const Strings& strings, const AnalyzerOptions& options, const Strings& terms,
                            const uint64_t* slots, int64_t n_slots, int n_threads, Monitor& monitor) {
    const auto mask = static_cast<uint64_t>(n_slots - 1);
    const auto column_of = [&](const char* text, int64_t size, uint64_t hash) {
        const int64_t at = find_slot(slots, mask, hash, [&](uint32_t id) {
            return terms.size(id) == size && std::memcmp(terms.begin(id), text, static_cast<size_t>(size)) == 0;
        });
        return slots[at] == 0 ? kNoColumn : static_cast<uint32_t>(slots[at]) - 1;
    };
    if (const WordForms* const forms = options.single_forms()) {
        Vector<uint32_t> of_word(forms->n_words(), kNoColumn);
        for (int64_t word = 0; word < forms->n_words(); ++word) {
            const int64_t size = forms->size(word);
            const char* const form = forms->form(word);
            if (size > 0) of_word[word] = column_of(form, size, hash_string(form, size));
        }
        return count_forms(strings, *forms, of_word, options.n_fields(), terms.count, n_threads, monitor);
    }
    Vector<Cutter> cutters(n_threads, Cutter(options));
    Vector<Vector<uint64_t>> workspaces(cutters.size());
    Vector<LastSeen> last_seen;
    for (int worker = 0; worker < n_threads; ++worker) last_seen.emplace_back(terms.count);
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
                const uint32_t column = column_of(text, size, hash);
                if (column != kNoColumn) seen[column].count(column, string, entries, before);
            });
            sort_entries(entries.data() + before, entries.data() + entries.size(), workspaces[worker], terms.count);
        });
    return join_rows(pieces, n_threads, monitor);
}

}  // namespace labelwood::text
