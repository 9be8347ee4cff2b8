// Label representations: for each label the sum of its rows.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "base/csr.hpp"
#include "base/parallel.hpp"
#include "base/span.hpp"
#include "base/vectors.hpp"
#include "simd/solver.hpp"
#include "sparse/keep_largest.hpp"
#include "sparse/row_ops.hpp"
#include "sparse/training_rows.hpp"

namespace labelwood::label_tree {

// A dense accumulator over columns that lists the columns it touched.
class SparseSum {
  public:
    explicit SparseSum(int64_t n_cols) : dense_(n_cols, 0.0f) {}

    // Adds the row times `scale`. Whether a column is new is unpredictable, so new columns are listed without
    // a branch.
    void add_row(const Csr& x, int64_t row, float scale) {
        const int64_t room = n_touched_ + x.row_nnz(row) + 1;
        if (room > touched_.size()) touched_.resize(2 * room);
        int64_t count = n_touched_;
        bool may_repeat = false;
        for (int64_t j = x.indptr[row]; j < x.indptr[row + 1]; ++j) {
            const int32_t column = x.indices[j];
            float& cell = dense_[column];
            touched_[count] = column;
            count += cell == 0.0f ? 1 : 0;
            cell += x.data[j] * scale;
            may_repeat |= cell == 0.0f;  // the column would be listed again
        }
        n_touched_ = count;
        may_repeat_ |= may_repeat;
    }
    // Moves the sum out as (column, value) pairs of ascending columns, keeping the `most` largest in size (0:
    // all); of equal ones, the first columns. Only columns that may be kept are sorted.
    void take(int64_t most, Vector<int32_t>* columns, Vector<float>* values) {
        touched_.resize(n_touched_);
        if (may_repeat_) sort_unique(touched_);
        may_repeat_ = false;
        sparse::Cutoff cutoff;
        if (most > 0 && touched_.size() > most) {
            values->clear();
            for (const int32_t c : touched_) values->push_back(std::fabs(dense_[c]));
            cutoff = sparse::cutoff_of(*values, most);
            std::erase_if(touched_, [&](int32_t c) {
                float& cell = dense_[c];
                const bool small = std::fabs(cell) < cutoff.floor;
                if (small) cell = 0.0f;
                return small;
            });
        }
        sort_unique(touched_);
        columns->clear();
        values->clear();
        for (const int32_t c : touched_) {
            float& cell = dense_[c];
            if (cutoff.admits(std::fabs(cell))) {
                columns->push_back(c);
                values->push_back(cell);
            }
            cell = 0.0f;
        }
        n_touched_ = 0;
    }

  private:
    static void sort_unique(Vector<int32_t>& columns) {
        std::sort(columns.begin(), columns.end());
        columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
    }

    Vector<float> dense_;
    Vector<int32_t> touched_;  // the first n_touched_
    int64_t n_touched_ = 0;
    bool may_repeat_ = false;
};

// A sparse matrix, and the dense columns beside it, [rows, width].
struct LabelVectors {
    OwnedCsr sparse;
    Vector<float> dense;
    int64_t width = 0;
};

// Sets all numbers but the `most` largest in size to zero; of equal ones, the first stay.
inline void keep_largest(float* numbers, int64_t count, int64_t most, Vector<float>& sizes) {
    sizes.clear();
    for (int64_t j = 0; j < count; ++j) sizes.push_back(std::fabs(numbers[j]));
    sparse::Cutoff cutoff = sparse::cutoff_of(sizes, most);
    for (int64_t j = 0; j < count; ++j) {
        if (!cutoff.admits(std::fabs(numbers[j]))) numbers[j] = 0.0f;
    }
}

// Eq. (2): the representation of a label is the sum of its rows, scaled to unit length. With most > 0 only
// the largest entries are kept of its sparse part and of its dense part, before scaling. A label without rows, or with
// empty rows, gets an empty vector.
inline LabelVectors label_vectors(const sparse::TrainingRows& rows, const Csr& y, int64_t most, int n_threads,
                                  Monitor& monitor) {
    const Csr& x = rows.x;
    const RowLists rows_of = sparse::transpose(y);
    const int64_t n_labels = y.n_cols;
    Vector<Vector<int32_t>> columns(n_labels);
    Vector<Vector<float>> values(n_labels);
    constexpr int64_t kPiece = 64;
    Vector<SparseSum> sums(std::max(n_threads, 1), SparseSum(x.n_cols));
    const int64_t width = rows.vectors.width;
    Vector<float> dense(n_labels * width, 0.0f);
    Vector<Vector<float>> sizes(std::max(n_threads, 1));
    parallel_for((y.n_cols + kPiece - 1) / kPiece, n_threads, monitor, [&](int64_t piece, int worker) {
        SparseSum& sum = sums[worker];
        const int64_t end = std::min(n_labels, (piece + 1) * kPiece);
        for (int64_t label = piece * kPiece; label < end; ++label) {
            for (const int32_t row : rows_of[label]) sum.add_row(x, row, rows.open(row));
            sum.take(most, &columns[label], &values[label]);
            double square = 0.0;
            for (const float v : values[label]) square += static_cast<double>(v) * v;
            float* own = dense.data() + label * width;
            for (const int32_t row : rows_of[label]) simd::solver().add_vector(rows.vectors, row, own);
            if (most > 0 && width > most) keep_largest(own, width, most, sizes[worker]);
            for (int64_t j = 0; j < width; ++j) square += static_cast<double>(own[j]) * own[j];
            const float factor = unit_factor(square);
            for (float& v : values[label]) v *= factor;
            for (int64_t j = 0; j < width; ++j) own[j] *= factor;
        }
    });
    OwnedCsr vectors;
    vectors.n_cols = x.n_cols;
    for (int64_t label = 0; label < n_labels; ++label) {
        vectors.indices.insert(vectors.indices.end(), columns[label].begin(), columns[label].end());
        vectors.data.insert(vectors.data.end(), values[label].begin(), values[label].end());
        vectors.indptr.push_back(vectors.indices.size());
    }
    return {std::move(vectors), std::move(dense), width};
}

}  // namespace labelwood::label_tree
