// Builds rows of counts in parallel: documents are divided into pieces, workers fill the rows of pieces, and
// the pieces are joined in order.
#pragma once

#include <algorithm>
#include <utility>

#include "base/parallel.hpp"
#include "base/span.hpp"

namespace labelwood::text {

// Strings end to end; string i is [offsets[i], offsets[i + 1]).
struct Strings {
    const char* bytes;
    const int64_t* offsets;
    int64_t count;

    const char* begin(int64_t i) const { return bytes + offsets[i]; }
    int64_t size(int64_t i) const { return offsets[i + 1] - offsets[i]; }
};

// One entry of a row, as a u64 that sorts by column.
inline uint64_t entry(uint32_t column, uint32_t count) {
    return static_cast<uint64_t>(column) << 32 | count;
}

// The last document with a column, counted from 1, and the column's place in that document's entries.
struct Seen {
    uint32_t document = 0, place = 0;

    // Counts the column in a document whose entries begin at `before`; true if it is new there.
    bool count(uint32_t column, int64_t number, Vector<uint64_t>& entries, int64_t before) {
        if (document == static_cast<uint32_t>(number) + 1) {
            ++entries[before + place];
            return false;
        }
        *this = {static_cast<uint32_t>(number) + 1, static_cast<uint32_t>(entries.size() - before)};
        entries.push_back(entry(column, 1));
        return true;
    }
};

// Sorts entries by column; every column occurs once. Few entries are sorted by comparison, many by radix.
inline void sort_entries(uint64_t* begin, uint64_t* end, Vector<uint64_t>& workspace, int64_t n_columns) {
    constexpr int64_t kFew = 48;
    if (end - begin <= kFew) {
        std::sort(begin, end);
        return;
    }
    workspace.assign(begin, end);
    uint64_t *from = begin, *to = workspace.data();
    const auto count = end - begin;
    for (int shift = 32; n_columns > 1; shift += 8, n_columns = (n_columns + 255) >> 8) {
        uint32_t places[256] = {};
        for (int64_t i = 0; i < count; ++i) ++places[from[i] >> shift & 255];
        uint32_t place = 0;
        for (uint32_t& next : places) place += std::exchange(next, place);
        for (int64_t i = 0; i < count; ++i) to[places[from[i] >> shift & 255]++] = from[i];
        std::swap(from, to);
    }
    if (from != begin) std::copy(from, from + count, begin);
}

struct CountRows {
    Vector<int64_t> indptr;
    Vector<int32_t> indices;
    Vector<int32_t> counts;
};

// The unit of parallel work: neighbouring documents, about kPieceBytes of text.
struct Piece {
    int64_t begin, end;
    int worker = 0;
    Vector<uint64_t> entries{};
    Vector<int64_t> sizes{};  // entries of each document
};

inline constexpr int64_t kPieceBytes = 1 << 19;

inline Vector<Piece> pieces_of(const Strings& documents) {
    Vector<Piece> pieces;
    int64_t begin = 0;
    for (int64_t i = 0; i < documents.count; ++i) {
        if (documents.offsets[i + 1] - documents.offsets[begin] >= kPieceBytes || i + 1 == documents.count) {
            pieces.push_back({begin, i + 1});
            begin = i + 1;
        }
    }
    return pieces;
}

// Calls row(document, entries, worker) for every document, in parallel. `row` appends the document's entries.
template <class Row>
Vector<Piece> build_rows(const Strings& documents, int n_threads, Monitor& monitor, Row&& row) {
    Vector<Piece> pieces = pieces_of(documents);
    monitor.set_total(documents.offsets[documents.count]);
    parallel_for(pieces.size(), n_threads, monitor, [&](int64_t p, int worker) {
        Piece& piece = pieces[p];
        piece.worker = worker;
        for (int64_t document = piece.begin; document < piece.end; ++document) {
            const int64_t before = piece.entries.size();
            row(document, piece.entries, worker);
            piece.sizes.push_back(static_cast<int64_t>(piece.entries.size() - before));
            monitor.add(documents.size(document));
        }
    });
    return pieces;
}

// Joins the pieces' entries, which must be sorted within each document.
inline CountRows join_rows(Vector<Piece>& pieces, int n_threads, Monitor& monitor) {
    CountRows rows;
    rows.indptr.push_back(0);
    Vector<int64_t> starts;
    for (const Piece& piece : pieces) {
        starts.push_back(rows.indptr.back());
        for (const int64_t size : piece.sizes) rows.indptr.push_back(rows.indptr.back() + size);
    }
    rows.indices.resize(rows.indptr.back());
    rows.counts.resize(rows.indices.size());
    parallel_for(pieces.size(), n_threads, monitor, [&](int64_t p, int) {
        Vector<uint64_t> entries;
        entries.swap(pieces[p].entries);
        int64_t at = starts[p];
        for (const uint64_t one : entries) {
            rows.indices[at] = static_cast<int32_t>(one >> 32);
            rows.counts[at++] = static_cast<int32_t>(one);
        }
    });
    return rows;
}

}  // namespace labelwood::text
