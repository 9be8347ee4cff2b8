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
#include "memory/allocators.hpp"
#include "memory/page_pool.hpp"
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
    Vector<int64_t> indptr{0};
    memory::OwnVector<int32_t> indices;
    memory::OwnVector<float> data;
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
    LabelVectors vectors;
    vectors.width = rows.vectors.width;
    const int64_t width = vectors.width;
    vectors.dense.assign(n_labels * width, 0.0f);
    vectors.indptr.assign(n_labels + 1, 0);  // the number of entries of label l at l + 1, until they are added up
    constexpr int64_t kPiece = 64;
    struct Scratch {
        explicit Scratch(int64_t n_cols) : sum(n_cols) {}
        SparseSum sum;
        Vector<int32_t> columns, all_columns;
        Vector<float> values, all_values, sizes;
    };
    Vector<Scratch> scratches(std::max(n_threads, 1), Scratch(x.n_cols));
    // The vectors of a piece, columns before values. The pieces are joined as the nodes of a tree are.
    memory::PagePool pool;
    const int64_t n_pieces = (n_labels + kPiece - 1) / kPiece;
    Vector<char*> pieces(n_pieces, nullptr);
    parallel_for(n_pieces, n_threads, monitor, [&](int64_t piece, int worker) {
        Scratch& own = scratches[worker];
        own.all_columns.clear();
        own.all_values.clear();
        const int64_t end = std::min(n_labels, (piece + 1) * kPiece);
        for (int64_t label = piece * kPiece; label < end; ++label) {
            for (const int32_t row : rows_of[label]) own.sum.add_row(x, row, rows.open(row));
            own.sum.take(most, &own.columns, &own.values);
            double square = 0.0;
            for (const float v : own.values) square += static_cast<double>(v) * v;
            float* dense = vectors.dense.data() + label * width;
            for (const int32_t row : rows_of[label]) simd::solver().add_vector(rows.vectors, row, dense);
            if (most > 0 && width > most) keep_largest(dense, width, most, own.sizes);
            for (int64_t j = 0; j < width; ++j) square += static_cast<double>(dense[j]) * dense[j];
            const float factor = unit_factor(square);
            for (float& v : own.values) v *= factor;
            for (int64_t j = 0; j < width; ++j) dense[j] *= factor;
            vectors.indptr[label + 1] = own.columns.size();
            own.all_columns.insert(own.all_columns.end(), own.columns.begin(), own.columns.end());
            own.all_values.insert(own.all_values.end(), own.values.begin(), own.values.end());
        }
        const int64_t count = own.all_columns.size();
        pieces[piece] = pool.take(8 * count);
        std::copy_n(own.all_columns.data(), count, reinterpret_cast<int32_t*>(pieces[piece]));
        std::copy_n(own.all_values.data(), count, reinterpret_cast<float*>(pieces[piece]) + count);
    });
    for (int64_t label = 0; label < n_labels; ++label) vectors.indptr[label + 1] += vectors.indptr[label];
    vectors.indices.reserve(vectors.indptr.back());
    vectors.data.reserve(vectors.indptr.back());
    for (int64_t piece = 0; piece < n_pieces; ++piece) {
        const int64_t end = std::min(n_labels, (piece + 1) * kPiece);
        const int64_t count = vectors.indptr[end] - vectors.indptr[piece * kPiece];
        const auto* columns = reinterpret_cast<const int32_t*>(pieces[piece]);
        const auto* values = reinterpret_cast<const float*>(pieces[piece]) + count;
        vectors.indices.insert(vectors.indices.end(), columns, columns + count);
        vectors.data.insert(vectors.data.end(), values, values + count);
        memory::PagePool::give_back(pieces[piece], 8 * count);
    }
    return vectors;
}

}  // namespace labelwood::label_tree
