// Small operations on sparse rows that more than one kernel needs.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "base/csr.hpp"
#include "base/parallel.hpp"
#include "sparse/training_rows.hpp"

namespace labelwood {

// What is wrong with a matrix from outside, in the order it is looked for.
enum class CsrFault : int { kNone = 0, kPointers = 1, kRange = 2, kOrder = 3, kValue = 4 };

inline CsrFault check_csr(const Csr& x, int64_t nnz) {
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
        for (int64_t j = x.indptr[row] + 1; j < x.indptr[row + 1]; ++j)
            rises &= x.indices[j] > x.indices[j - 1];
        if (!rises) return CsrFault::kOrder;
    }
    return finite ? CsrFault::kNone : CsrFault::kValue;
}

// The factors that scale every row to unit length; rows without length stay as they are.
inline std::vector<float> unit_factors(const TrainingRows& rows) {
    const Csr& x = rows.x;
    std::vector<float> factors(static_cast<size_t>(x.n_rows), 1.0f);
    for (int64_t row = 0; row < x.n_rows; ++row) {
        rows.open(row);
        double square = 0.0;
        for (int64_t j = x.indptr[row]; j < x.indptr[row + 1]; ++j) {
            square += static_cast<double>(x.data[j]) * x.data[j];
        }
        factors[static_cast<size_t>(row)] = unit_factor(square);
    }
    return factors;
}

// The given rows in the given order. They are read in the order of their places, which suits a file.
inline OwnedCsr take_rows(const TrainingRows& from, const int64_t* rows, int64_t count) {
    const Csr& x = from.x;
    OwnedCsr taken;
    taken.n_cols = x.n_cols;
    taken.indptr.reserve(static_cast<size_t>(count) + 1);
    for (int64_t i = 0; i < count; ++i) taken.indptr.push_back(taken.indptr.back() + x.row_nnz(rows[i]));
    taken.indices.resize(static_cast<size_t>(taken.indptr.back()));
    taken.data.resize(static_cast<size_t>(taken.indptr.back()));
    std::vector<int64_t> order(static_cast<size_t>(count));
    std::iota(order.begin(), order.end(), int64_t{0});
    std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return rows[a] < rows[b]; });
    for (const int64_t i : order) {
        const int64_t begin = x.indptr[rows[i]], n = x.row_nnz(rows[i]),
                      at = taken.indptr[static_cast<size_t>(i)];
        from.open(rows[i]);
        std::copy_n(x.indices + begin, n, taken.indices.data() + at);
        std::copy_n(x.data + begin, n, taken.data.data() + at);
    }
    return taken;
}

// The values of x with every row scaled to unit length.
inline std::vector<float> unit_rows(const Csr& x) {
    const std::vector<float> factors = unit_factors({x});
    std::vector<float> scaled(x.data, x.data + x.nnz());
    for (int64_t row = 0; row < x.n_rows; ++row) {
        for (int64_t j = x.indptr[row]; j < x.indptr[row + 1]; ++j)
            scaled[static_cast<size_t>(j)] *= factors[static_cast<size_t>(row)];
    }
    return scaled;
}

// The transposed pattern: for each column the rows that have it, ascending.
struct Postings {
    std::vector<int64_t> ptr;
    std::vector<int32_t> rows;
};

inline Postings transpose(const Csr& matrix) {
    Postings by_column;
    by_column.ptr.assign(static_cast<size_t>(matrix.n_cols) + 1, 0);
    const int64_t nnz = matrix.nnz();
    for (int64_t j = 0; j < nnz; ++j) ++by_column.ptr[static_cast<size_t>(matrix.indices[j]) + 1];
    for (size_t c = 0; c < static_cast<size_t>(matrix.n_cols); ++c) by_column.ptr[c + 1] += by_column.ptr[c];
    by_column.rows.resize(static_cast<size_t>(nnz));
    std::vector<int64_t> next(by_column.ptr.begin(), by_column.ptr.end() - 1);
    for (int64_t row = 0; row < matrix.n_rows; ++row) {
        for (int64_t j = matrix.indptr[row]; j < matrix.indptr[row + 1]; ++j) {
            by_column.rows[static_cast<size_t>(next[static_cast<size_t>(matrix.indices[j])]++)] =
                static_cast<int32_t>(row);
        }
    }
    return by_column;
}

// A dense accumulator over columns that remembers which it touched.
class SparseSum {
  public:
    explicit SparseSum(int64_t n_cols) : dense_(static_cast<size_t>(n_cols), 0.0f) {}

    // Adds the row times `scale`. Whether a column is new cannot be foretold, so that noting it takes no
    // branch.
    void add_row(const Csr& x, int64_t row, float scale) {
        const auto room = n_touched_ + static_cast<size_t>(x.row_nnz(row)) + 1;
        if (room > touched_.size()) touched_.resize(2 * room);
        size_t count = n_touched_;
        bool may_repeat = false;
        for (int64_t j = x.indptr[row]; j < x.indptr[row + 1]; ++j) {
            const int32_t column = x.indices[j];
            float& cell = dense_[static_cast<size_t>(column)];
            touched_[count] = column;
            count += cell == 0.0f ? 1 : 0;
            cell += x.data[j] * scale;
            may_repeat |= cell == 0.0f;  // it would be noted again
        }
        n_touched_ = count;
        may_repeat_ |= may_repeat;
    }
    // Moves the sum out as sorted (column, value) pairs, keeping the `most` largest in size (0 keeps all); of
    // equal ones, the first columns. Only what may be kept is sorted.
    void take(int64_t most, std::vector<int32_t>* columns, std::vector<float>* values) {
        touched_.resize(n_touched_);
        if (may_repeat_) sort_unique(touched_);
        may_repeat_ = false;
        float floor = -1.0f;
        int64_t ties = 0;
        if (most > 0 && static_cast<int64_t>(touched_.size()) > most) {
            values->clear();
            for (const int32_t c : touched_) values->push_back(std::fabs(dense_[static_cast<size_t>(c)]));
            std::nth_element(values->begin(), values->begin() + (most - 1), values->end(),
                             std::greater<float>());
            floor = (*values)[static_cast<size_t>(most - 1)];
            ties = most - std::count_if(values->begin(), values->end(), [&](float v) { return v > floor; });
            std::erase_if(touched_, [&](int32_t c) {
                float& cell = dense_[static_cast<size_t>(c)];
                const bool small = std::fabs(cell) < floor;
                if (small) cell = 0.0f;
                return small;
            });
        }
        sort_unique(touched_);
        columns->clear();
        values->clear();
        for (const int32_t c : touched_) {
            float& cell = dense_[static_cast<size_t>(c)];
            const float size = std::fabs(cell);
            if (size > floor || (size == floor && ties-- > 0)) {
                columns->push_back(c);
                values->push_back(cell);
            }
            cell = 0.0f;
        }
        n_touched_ = 0;
    }

  private:
    static void sort_unique(std::vector<int32_t>& columns) {
        std::sort(columns.begin(), columns.end());
        columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
    }

    std::vector<float> dense_;
    std::vector<int32_t> touched_;  // the first n_touched_
    size_t n_touched_ = 0;
    bool may_repeat_ = false;
};

// Eq. (2): the representation of a label is the sum of its rows, scaled to unit length. With most > 0 only
// the largest entries are kept (before scaling). A label without rows, or whose rows are empty, gets an empty
// vector.
inline OwnedCsr label_vectors(const TrainingRows& rows, const Csr& y, int64_t most, int n_threads,
                              Monitor& monitor) {
    const Csr& x = rows.x;
    const Postings rows_of = transpose(y);
    const auto n_labels = static_cast<size_t>(y.n_cols);
    std::vector<std::vector<int32_t>> columns(n_labels);
    std::vector<std::vector<float>> values(n_labels);
    constexpr int64_t kPiece = 64;
    std::vector<SparseSum> sums(static_cast<size_t>(std::max(n_threads, 1)), SparseSum(x.n_cols));
    parallel_for((y.n_cols + kPiece - 1) / kPiece, n_threads, monitor, [&](int64_t piece, int worker) {
        SparseSum& sum = sums[static_cast<size_t>(worker)];
        const auto end = static_cast<size_t>(std::min(y.n_cols, (piece + 1) * kPiece));
        for (auto label = static_cast<size_t>(piece * kPiece); label < end; ++label) {
            for (int64_t i = rows_of.ptr[label]; i < rows_of.ptr[label + 1]; ++i) {
                const int32_t row = rows_of.rows[static_cast<size_t>(i)];
                sum.add_row(x, row, rows.open(row));
            }
            sum.take(most, &columns[label], &values[label]);
            double square = 0.0;
            for (const float v : values[label]) square += static_cast<double>(v) * v;
            const float factor = unit_factor(square);
            for (float& v : values[label]) v *= factor;
        }
    });
    OwnedCsr vectors;
    vectors.n_cols = x.n_cols;
    for (size_t label = 0; label < n_labels; ++label) {
        vectors.indices.insert(vectors.indices.end(), columns[label].begin(), columns[label].end());
        vectors.data.insert(vectors.data.end(), values[label].begin(), values[label].end());
        vectors.indptr.push_back(static_cast<int64_t>(vectors.indices.size()));
    }
    return vectors;
}

}  // namespace labelwood
