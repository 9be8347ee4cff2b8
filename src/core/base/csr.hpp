// Sparse matrices as every kernel sees them.
//
// base/ is the vocabulary of all folders and lives in the namespace labelwood itself; every other folder has
// a namespace of its name.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/span.hpp"

namespace labelwood {

// A view of a compressed sparse row matrix, validated in Python: indptr rises from 0 to nnz, and the indices
// of a row rise strictly within [0, n_cols).
struct Csr {
    const int64_t* indptr;
    const int32_t* indices;
    const float* data;  // null in a pattern matrix (labels)
    int64_t n_rows;
    int64_t n_cols;

    int64_t nnz() const { return indptr[n_rows]; }
    int64_t row_nnz(int64_t row) const { return indptr[row + 1] - indptr[row]; }
};

// Rows of a stream, where the number of columns is open: column ids have 32 or 64 bits.
template <class Column>
struct StreamRows {
    const int64_t* indptr;
    const Column* indices;
    const float* data;
    int64_t n_rows;
    int64_t n_cols;
};

// A matrix that owns its arrays.
struct OwnedCsr {
    Vector<int64_t> indptr{0};
    Vector<int32_t> indices;
    Vector<float> data;
    int64_t n_cols = 0;

    int64_t n_rows() const { return indptr.size() - 1; }
    Csr view() const { return {indptr.data(), indices.data(), data.data(), n_rows(), n_cols}; }
};

// Lists of rows, end to end; the rows of a list ascend.
struct RowLists {
    Vector<int64_t> ptr{0};
    Vector<int32_t> rows;

    int64_t count(int64_t list) const { return ptr[list + 1] - ptr[list]; }
    Span<const int32_t> operator[](int64_t list) const { return {rows.data() + ptr[list], count(list)}; }
    // Ends the list to which rows were appended.
    void close() { ptr.push_back(rows.size()); }
};

// One row of a matrix.
struct Query {
    const int32_t* columns;
    const float* values;
    int64_t count;
};

inline Query row_of(const Csr& x, int64_t row) {
    return {x.indices + x.indptr[row], x.data + x.indptr[row], x.row_nnz(row)};
}

// The factor that scales a vector of this squared length to unit length; 0 for a vector so short that the
// factor would not be a float.
inline float unit_factor(double square) {
    return square > 1e-76 ? static_cast<float>(1.0 / std::sqrt(square)) : 0.0f;
}

}  // namespace labelwood
