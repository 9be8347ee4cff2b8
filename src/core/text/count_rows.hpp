// Builds rows of counts in parallel, one row per string: documents are divided into pieces, workers fill the
// rows of pieces, and the pieces are joined in order.
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

// The last string with a column, counted from 1, and the column's place in that string's entries.
struct Seen {
    uint32_t string = 0, place = 0;

    // Counts the column in a string whose entries begin at `before`.
    void count(uint32_t column, int64_t number, Vector<uint64_t>& entries, int64_t before) {
        if (string == static_cast<uint32_t>(number) + 1) {
            ++entries[before + place];
            return;
        }
        *this = {static_cast<uint32_t>(number) + 1, static_cast<uint32_t>(entries.size() - before)};
        entries.push_back(entry(column, 1));
    }

    // True if the column was in none of the strings from `first` on.
    bool is_new_since(int64_t first) const { return string <= static_cast<uint32_t>(first); }
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

// The unit of parallel work: the strings of neighbouring documents, about kPieceBytes of text.
struct Piece {
    int64_t begin, end;
    int worker = 0;
    Vector<uint64_t> entries{};
    Vector<int64_t> sizes{};  // entries of each string
};

inline constexpr int64_t kPieceBytes = 1 << 19;

// A document has n_fields strings, which stay together.
inline Vector<Piece> pieces_of(const Strings& strings, int64_t n_fields) {
    Vector<Piece> pieces;
    int64_t begin = 0;
    for (int64_t end = n_fields; end <= strings.count; end += n_fields) {
        if (strings.offsets[end] - strings.offsets[begin] >= kPieceBytes || end == strings.count) {
            pieces.push_back({begin, end});
            begin = end;
        }
    }
    return pieces;
}

// Calls row(string, entries, worker) for every string, in parallel. `row` appends the string's entries.
template <class Row>
Vector<Piece> build_rows(const Strings& strings, int64_t n_fields, int n_threads, Monitor& monitor, Row&& row) {
    Vector<Piece> pieces = pieces_of(strings, n_fields);
    monitor.set_total(strings.offsets[strings.count]);
    parallel_for(pieces.size(), n_threads, monitor, [&](int64_t p, int worker) {
        Piece& piece = pieces[p];
        piece.worker = worker;
        for (int64_t string = piece.begin; string < piece.end; ++string) {
            const int64_t before = piece.entries.size();
            row(string, piece.entries, worker);
            piece.sizes.push_back(static_cast<int64_t>(piece.entries.size() - before));
            monitor.add(strings.size(string));
        }
    });
    return pieces;
}

// Joins the pieces' entries, which must be sorted within each string.
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
