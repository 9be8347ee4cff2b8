// Checking, scaling, copying and transposing sparse rows.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>

#include "base/csr.hpp"
#include "base/span.hpp"
#include "base/vectors.hpp"
#include "memory/allocators.hpp"
#include "simd/search.hpp"
#include "sparse/training_rows.hpp"

namespace labelwood::sparse {

// Faults of a matrix from outside, in the order of the checks.
enum class CsrFault : int { kNone = 0, kPointers = 1, kRange = 2, kOrder = 3, kValue = 4 };

template <class Rows>
CsrFault check_csr(const Rows& x, int64_t nnz) {
    if (x.n_rows < 0 || x.indptr[0] != 0 || x.indptr[x.n_rows] != nnz) return CsrFault::kPointers;
    for (int64_t row = 0; row < x.n_rows; ++row) {
        if (x.indptr[row + 1] < x.indptr[row]) return CsrFault::kPointers;
    }
    bool in_range = true, finite = true;
    for (int64_t j = 0; j < nnz; ++j) {
        in_range &= x.indices[j] >= 0 && x.indices[j] < x.n_cols;
        finite &= std::fabs(x.data[j]) <= std::numeric_limits<float>::max();
    }
    if (!in_range) return CsrFault::kRange;
    for (int64_t row = 0; row < x.n_rows; ++row) {
        bool rises = true;
        for (int64_t j = x.indptr[row] + 1; j < x.indptr[row + 1]; ++j) rises &= x.indices[j] > x.indices[j - 1];
        if (!rises) return CsrFault::kOrder;
    }
    return finite ? CsrFault::kNone : CsrFault::kValue;
}

// The factor that scales a row to unit length.
inline float row_factor(const Csr& x, int64_t row) {
    double square = 0.0;
    for (int64_t j = x.indptr[row]; j < x.indptr[row + 1]; ++j) square += static_cast<double>(x.data[j]) * x.data[j];
    return unit_factor(square);
}

inline Vector<float> unit_factors(const TrainingRows& rows) {
    Vector<float> factors(rows.x.n_rows);
    for (int64_t row = 0; row < rows.x.n_rows; ++row) {
        rows.open(row);
        factors[row] = row_factor(rows.x, row);
    }
    return factors;
}

// The length of each vector. Eight sums in double precision: the square of a large float is none, and sums that do
// not wait for each other are added at once.
inline Vector<double> vector_lengths(const Vectors& vectors, int64_t n_rows) {
    constexpr int kSums = 8;
    static_assert(kVectorPad % kSums == 0);
    memory::AlignedVector<float> wide(padded(vectors.width));
    Vector<double> lengths(n_rows);
    for (int64_t row = 0; row < n_rows; ++row) {
        simd::search().widen_row(vectors.row(row), vectors.type, vectors.width, 1.0f, wide.data());
        double sums[kSums] = {};
        for (int64_t j = 0; j < padded(vectors.width); j += kSums) {
            for (int i = 0; i < kSums; ++i) {
                const auto value = static_cast<double>(wide[j + i]);
                sums[i] += value * value;
            }
        }
        lengths[row] = std::sqrt(std::accumulate(sums, sums + kSums, 0.0));
    }
    return lengths;
}

// Copies rows in the given order. Reads them in the order of the matrix, which suits a mapped file.
inline OwnedCsr take_rows(const TrainingRows& from, const int64_t* rows, int64_t count) {
    const Csr& x = from.x;
    OwnedCsr taken;
    taken.n_cols = x.n_cols;
    taken.indptr.reserve(count + 1);
    for (int64_t i = 0; i < count; ++i) taken.indptr.push_back(taken.indptr.back() + x.row_nnz(rows[i]));
    taken.indices.resize(taken.indptr.back());
    taken.data.resize(taken.indptr.back());
    Vector<int64_t> order(count);
    std::iota(order.begin(), order.end(), int64_t{0});
    std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return rows[a] < rows[b]; });
    for (const int64_t i : order) {
        const int64_t begin = x.indptr[rows[i]], n = x.row_nnz(rows[i]), at = taken.indptr[i];
        from.open(rows[i]);
        std::copy_n(x.indices + begin, n, taken.indices.data() + at);
        std::copy_n(x.data + begin, n, taken.data.data() + at);
    }
    return taken;
}

// The values of x with every row scaled to unit length.
inline Vector<float> unit_rows(const Csr& x) {
    Vector<float> scaled(x.nnz());
    for (int64_t row = 0; row < x.n_rows; ++row) {
        const float factor = row_factor(x, row);
        for (int64_t j = x.indptr[row]; j < x.indptr[row + 1]; ++j) scaled[j] = factor * x.data[j];
    }
    return scaled;
}

// The transposed pattern: for each column the rows that have it, ascending.
inline RowLists transpose(const Csr& matrix) {
    RowLists by_column;
    by_column.ptr.assign(matrix.n_cols + 1, 0);
    const int64_t nnz = matrix.nnz();
    for (int64_t j = 0; j < nnz; ++j) ++by_column.ptr[matrix.indices[j] + 1];
    for (int64_t c = 0; c < matrix.n_cols; ++c) by_column.ptr[c + 1] += by_column.ptr[c];
    by_column.rows.resize(nnz);
    Vector<int64_t> next(by_column.ptr.begin(), by_column.ptr.end() - 1);
    for (int64_t row = 0; row < matrix.n_rows; ++row) {
        for (int64_t j = matrix.indptr[row]; j < matrix.indptr[row + 1]; ++j) {
            by_column.rows[next[matrix.indices[j]]++] = static_cast<int32_t>(row);
        }
    }
    return by_column;
}

}  // namespace labelwood::sparse
