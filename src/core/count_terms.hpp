// Documents to rows of term counts: with a vocabulary learnt on the way, with one that is given, or with hashed columns.
#pragma once

#include <cstdlib>
#include <numeric>

#include "analyze.hpp"
#include "parallel.hpp"
#include "vocabulary.hpp"

namespace labelwood::text {

// Many strings end to end; string i is [offsets[i], offsets[i + 1]).
struct Strings {
    const char* bytes;
    const int64_t* offsets;
    int64_t count;

    const char* begin(int64_t i) const { return bytes + offsets[i]; }
    int64_t size(int64_t i) const { return offsets[i + 1] - offsets[i]; }
};

// One entry of a row; as u64 it sorts by column.
inline uint64_t entry(uint32_t column, uint32_t count) { return static_cast<uint64_t>(column) << 32 | count; }

struct CountRows {
    std::vector<int64_t> indptr;
    std::vector<int32_t> indices;
    std::vector<int32_t> counts;
};

// The unit of parallel work: neighbouring documents, about kPieceBytes of text.
struct Piece {
    int64_t begin, end;
    int worker = 0;
    std::vector<uint64_t> entries{};
    std::vector<int64_t> sizes{};  // entries of each document
};

inline constexpr int64_t kPieceBytes = 1 << 19;

inline std::vector<Piece> pieces_of(const Strings& documents) {
    std::vector<Piece> pieces;
    int64_t begin = 0;
    for (int64_t i = 0; i < documents.count; ++i) {
        if (documents.offsets[i + 1] - documents.offsets[begin] >= kPieceBytes || i + 1 == documents.count) {
            pieces.push_back({begin, i + 1});
            begin = i + 1;
        }
    }
    return pieces;
}

// Calls row(document, entries, worker) for every document, in parallel; it appends the document's entries.
template <class Row>
std::vector<Piece> build_rows(const Strings& documents, int n_threads, Monitor& monitor, Row&& row) {
    std::vector<Piece> pieces = pieces_of(documents);
    monitor.set_total(documents.offsets[documents.count]);
    parallel_for(static_cast<int64_t>(pieces.size()), n_threads, monitor, [&](int64_t p, int worker) {
        Piece& piece = pieces[static_cast<size_t>(p)];
        piece.worker = worker;
        for (int64_t document = piece.begin; document < piece.end; ++document) {
            const size_t before = piece.entries.size();
            row(document, piece.entries, worker);
            piece.sizes.push_back(static_cast<int64_t>(piece.entries.size() - before));
            monitor.add(documents.size(document));
        }
    });
    return pieces;
}

// Joins the pieces' entries, which must be sorted within each document.
inline CountRows join_rows(std::vector<Piece>& pieces, int n_threads, Monitor& monitor) {
    CountRows rows;
    rows.indptr.push_back(0);
    std::vector<int64_t> starts;
    for (const Piece& piece : pieces) {
        starts.push_back(rows.indptr.back());
        for (const int64_t size : piece.sizes) rows.indptr.push_back(rows.indptr.back() + size);
    }
    rows.indices.resize(static_cast<size_t>(rows.indptr.back()));
    rows.counts.resize(rows.indices.size());
    parallel_for(static_cast<int64_t>(pieces.size()), n_threads, monitor, [&](int64_t p, int) {
        std::vector<uint64_t> entries;
        entries.swap(pieces[static_cast<size_t>(p)].entries);
        auto at = static_cast<size_t>(starts[static_cast<size_t>(p)]);
        for (const uint64_t one : entries) {
            rows.indices[at] = static_cast<int32_t>(one >> 32);
            rows.counts[at++] = static_cast<int32_t>(one);
        }
    });
    return rows;
}

struct LearntTerms {
    CountRows rows;
    std::vector<uint8_t> utf8;
    std::vector<int64_t> offsets{0};
    std::vector<int64_t> n_documents;
    std::vector<int64_t> totals;
};

namespace learning {

// Adds the other workers' terms to the first one's; returns each worker's id -> merged id.
inline std::vector<std::vector<uint32_t>> merge(std::vector<Vocabulary>& found) {
    std::vector<std::vector<uint32_t>> merged(found.size());
    merged[0].resize(found[0].size());
    std::iota(merged[0].begin(), merged[0].end(), 0u);
    for (size_t w = 1; w < found.size(); ++w) {
        std::vector<char> padded;
        for (uint32_t id = 0; id < found[w].size(); ++id) {
            const Term& term = found[w][id];
            padded.assign(found[w].text(term), found[w].text(term) + term.size);
            padded.resize(padded.size() + 8);
            const uint32_t to = found[0].intern(padded.data(), term.size);
            found[0][to].n_documents += term.n_documents;
            found[0][to].total += term.total;
            merged[w].push_back(to);
        }
        found[w] = Vocabulary();
    }
    found[0].release_table();
    return merged;
}

// The ids of the terms that enough and not too many documents have, in the order of their strings.
inline std::vector<uint32_t> kept_in_order(const Vocabulary& terms, int64_t min_documents,
                                           int64_t max_documents) {
    std::vector<uint32_t> kept;
    for (uint32_t id = 0; id < terms.size(); ++id) {
        const int64_t count = terms[id].n_documents;
        if (count >= min_documents && count <= max_documents) kept.push_back(id);
    }
    std::sort(kept.begin(), kept.end(), [&](uint32_t one, uint32_t other) { return terms.before(one, other); });
    return kept;
}

// Turns a piece's entries into columns of the final vocabulary, drops those that have none, sorts each document.
inline void renumber(Piece& piece, const std::vector<uint32_t>& merged, const std::vector<uint32_t>& columns) {
    uint64_t* from = piece.entries.data();
    uint64_t* to = from;
    for (int64_t& size : piece.sizes) {
        uint64_t* const begin = to;
        for (const uint64_t* const end = from + size; from < end; ++from) {
            const uint32_t column = columns[merged[*from >> 32]];
            if (column != UINT32_MAX) *to++ = entry(column, static_cast<uint32_t>(*from));
        }
        std::sort(begin, to);
        size = to - begin;
    }
    piece.entries.resize(static_cast<size_t>(to - piece.entries.data()));
}

}  // namespace learning

// Counts the terms of documents and learns the vocabulary: the terms in at least min_documents and at most
// max_documents of them, sorted. Worker vocabularies differ from run to run; what is returned does not.
inline LearntTerms learn_terms(const Strings& documents, const AnalyzerOptions& options, int64_t min_documents,
                               int64_t max_documents, int n_threads, Monitor& monitor) {
    std::vector<Vocabulary> found(static_cast<size_t>(n_threads));
    std::vector<Analyzer> analyzers(found.size(), Analyzer(options));
    std::vector<Piece> pieces = build_rows(
        documents, n_threads, monitor, [&](int64_t document, std::vector<uint64_t>& entries, int worker) {
            Vocabulary& vocabulary = found[static_cast<size_t>(worker)];
            const size_t before = entries.size();
            const auto count = [&](const char* text, int64_t size) {
                const uint32_t id = vocabulary.intern(text, size);
                Term& term = vocabulary[id];
                if (term.document != document) {
                    term.document = static_cast<int32_t>(document);
                    term.place = static_cast<uint32_t>(entries.size() - before);
                    ++term.n_documents;
                    entries.push_back(entry(id, 1));
                } else {
                    ++entries[before + term.place];
                }
                ++term.total;
            };
            analyzers[static_cast<size_t>(worker)].terms(documents.begin(document), documents.size(document), count);
        });
    const std::vector<std::vector<uint32_t>> merged = learning::merge(found);
    const Vocabulary& terms = found[0];
    const std::vector<uint32_t> kept = learning::kept_in_order(terms, min_documents, max_documents);

    LearntTerms learnt;
    std::vector<uint32_t> columns(terms.size(), UINT32_MAX);
    for (size_t column = 0; column < kept.size(); ++column) {
        const Term& term = terms[kept[column]];
        columns[kept[column]] = static_cast<uint32_t>(column);
        learnt.utf8.insert(learnt.utf8.end(), terms.text(term), terms.text(term) + term.size);
        learnt.offsets.push_back(static_cast<int64_t>(learnt.utf8.size()));
        learnt.n_documents.push_back(term.n_documents);
        learnt.totals.push_back(term.total);
    }
    parallel_for(static_cast<int64_t>(pieces.size()), n_threads, monitor, [&](int64_t p, int) {
        Piece& piece = pieces[static_cast<size_t>(p)];
        learning::renumber(piece, merged[static_cast<size_t>(piece.worker)], columns);
    });
    learnt.rows = join_rows(pieces, n_threads, monitor);
    return learnt;
}

// The hash table over a list of strings that find_terms looks them up in; empty if two strings are the same.
inline std::vector<uint64_t> index_terms(const Strings& terms) {
    std::vector<uint64_t> slots(static_cast<size_t>(table_size(terms.count)));
    std::vector<char> padded;
    for (int64_t id = 0; id < terms.count; ++id) {
        padded.assign(terms.begin(id), terms.begin(id) + terms.size(id));
        padded.resize(padded.size() + 8);
        const uint64_t hash = hash_string(padded.data(), terms.size(id));
        const int64_t at = find_slot(slots.data(), slots.size() - 1, hash, [&](uint32_t other) {
            return terms.size(other) == terms.size(id) &&
                   std::memcmp(terms.begin(other), terms.begin(id), static_cast<size_t>(terms.size(id))) == 0;
        });
        if (slots[static_cast<size_t>(at)] != 0) return {};
        slots[static_cast<size_t>(at)] = slot_of(hash, static_cast<uint32_t>(id));
    }
    return slots;
}

// Sorts a document's columns and counts the repeated ones. `columns` is emptied.
inline void count_columns(std::vector<uint32_t>& columns, std::vector<uint64_t>& entries) {
    std::sort(columns.begin(), columns.end());
    for (size_t i = 0; i < columns.size();) {
        size_t end = i;
        while (end < columns.size() && columns[end] == columns[i]) ++end;
        entries.push_back(entry(columns[i], static_cast<uint32_t>(end - i)));
        i = end;
    }
    columns.clear();
}

// Counts the terms of documents that a vocabulary has; the others are passed over.
inline CountRows find_terms(const Strings& documents, const AnalyzerOptions& options, const Strings& terms,
                            const uint64_t* slots, int64_t n_slots, int n_threads, Monitor& monitor) {
    std::vector<Analyzer> analyzers(static_cast<size_t>(n_threads), Analyzer(options));
    std::vector<std::vector<uint32_t>> columns(analyzers.size());
    const auto mask = static_cast<uint64_t>(n_slots - 1);
    std::vector<Piece> pieces = build_rows(
        documents, n_threads, monitor, [&](int64_t document, std::vector<uint64_t>& entries, int worker) {
            std::vector<uint32_t>& found = columns[static_cast<size_t>(worker)];
            const auto look_up = [&](const char* text, int64_t size) {
                const int64_t at = find_slot(slots, mask, hash_string(text, size), [&](uint32_t id) {
                    return terms.size(id) == size &&
                           std::memcmp(terms.begin(id), text, static_cast<size_t>(size)) == 0;
                });
                if (slots[at] != 0) found.push_back(static_cast<uint32_t>(slots[at]) - 1);
            };
            analyzers[static_cast<size_t>(worker)].terms(documents.begin(document), documents.size(document), look_up);
            count_columns(found, entries);
        });
    return join_rows(pieces, n_threads, monitor);
}

}  // namespace labelwood::text
