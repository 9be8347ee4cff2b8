// Writes a pair of CSR matrices as text rows, in parallel. A value is the shortest decimal that reads back to
// the same bits.
#pragma once

#include <charconv>
#include <cstring>
#include <memory>
#include <string>

#include "base/csr.hpp"
#include "base/parallel.hpp"
#include "base/span.hpp"

namespace labelwood::rows {

struct Text {
    std::unique_ptr<char[]> bytes;
    int64_t size = 0;
};

namespace detail {

template <class Number>
void append(std::string& out, Number number) {
    char digits[32];
    out.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}

inline void append_row(std::string& out, const Csr& X, const Csr& Y, int64_t row, bool svmlight) {
    for (int64_t i = Y.indptr[row]; i < Y.indptr[row + 1]; ++i) {
        if (i > Y.indptr[row]) out += ',';
        append(out, Y.indices[i]);
    }
    for (int64_t i = X.indptr[row]; i < X.indptr[row + 1]; ++i) {
        out += ' ';
        append(out, X.indices[i]);
        out += ':';
        append(out, X.data[i]);
    }
    // Readers of svmlight skip blank lines, so an empty row is written as an explicit zero.
    if (X.row_nnz(row) == 0 && Y.row_nnz(row) == 0) out += svmlight ? " 0:0" : " ";
    out += '\n';
}

}  // namespace detail

inline Text format_rows(const Csr& X, const Csr& Y, bool svmlight, int n_threads, Monitor& monitor) {
    constexpr int64_t rows_per_task = 256;
    const int64_t n_tasks = (X.n_rows + rows_per_task - 1) / rows_per_task;
    Vector<std::string> pieces(n_tasks);
    parallel_for(n_tasks, n_threads, monitor, [&](int64_t task, int) {
        const int64_t first = task * rows_per_task, last = std::min(X.n_rows, first + rows_per_task);
        std::string& out = pieces[task];
        for (int64_t row = first; row < last; ++row) detail::append_row(out, X, Y, row, svmlight);
        monitor.add(X.indptr[last] - X.indptr[first]);
    });
    Text text;
    for (const std::string& piece : pieces) text.size += static_cast<int64_t>(piece.size());
    text.bytes = unwritten<char>(text.size);
    char* at = text.bytes.get();
    for (const std::string& piece : pieces) at = std::copy(piece.begin(), piece.end(), at);
    return text;
}

}  // namespace labelwood::rows
