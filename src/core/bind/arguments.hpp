// Python objects that kernels take whole: a CSR matrix, its pattern, a label tree. Each caster reads
// attributes by name.
#pragma once

#include <memory>
#include <optional>

#include "bind/bind.hpp"
#include "label_tree/tree.hpp"
#include "sparse/training_rows.hpp"

namespace labelwood::bind {

// A matrix with values.
struct CsrArrays {
    Array<int64_t> indptr;
    Array<int32_t> indices;
    Array<float> data;
    int64_t n_cols;

    Csr view() const { return {indptr.data(), indices.data(), data.data(), length(indptr) - 1, n_cols}; }
};

// A matrix of labels: its values are not read.
struct PatternArrays {
    Array<int64_t> indptr;
    Array<int32_t> indices;
    int64_t n_cols;

    Csr view() const { return {indptr.data(), indices.data(), nullptr, length(indptr) - 1, n_cols}; }
};

// Rows of a stream: column ids have 32 or 64 bits, and the number of columns is open.
template <class Column>
struct StreamArrays {
    Array<int64_t> indptr;
    Array<Column> indices;
    Array<float> data;
};

struct LabelTreeArrays {
    Array<int32_t> child_ptr, label;

    label_tree::Tree view() const {
        return {child_ptr.data(), label.data(), static_cast<int32_t>(label.shape(0))};
    }
};

// A matrix that may be a mapped file: `resident` bytes of its pages may be in memory, 0 if it is no file.
struct FileCsrArrays : CsrArrays {
    int64_t resident;
};

// Rows to train on, each multiplied by its `scale`, if there is one. Pages of a file are let go at the end.
class GivenRows {
  public:
    explicit GivenRows(const FileCsrArrays& x, const std::optional<Array<float>>& scale = std::nullopt)
        : rows_{x.view(), data_or_null(scale), nullptr} {
        if (x.resident == 0) return;
        const int64_t nnz = rows_.x.nnz();
        residency_ = std::make_unique<sparse::Residency>(x.resident, nnz * int64_t{sizeof(float)});
        residency_->watch(rows_.x.indices, nnz * int64_t{sizeof(int32_t)});
        residency_->watch(rows_.x.data, nnz * int64_t{sizeof(float)});
        rows_.residency = residency_.get();
    }
    ~GivenRows() {
        if (residency_) residency_->let_go();
    }
    const sparse::TrainingRows& rows() const { return rows_; }

  private:
    std::unique_ptr<sparse::Residency> residency_;
    sparse::TrainingRows rows_;
};

}  // namespace labelwood::bind

namespace nanobind::detail {

// Reads one attribute; false if it is missing or has another type.
template <class T>
bool read_attribute(handle object, const char* name, uint32_t flags, cleanup_list* cleanup,
                    T& into) noexcept {
    PyObject* found = PyObject_GetAttrString(object.ptr(), name);
    if (found == nullptr) {
        PyErr_Clear();
        return false;
    }
    const nanobind::object held = steal(found);
    make_caster<T> caster;
    if (!caster.from_python(held, flags, cleanup)) return false;
    into = caster.operator cast_t<T>();
    return true;
}

template <>
struct type_caster<labelwood::bind::CsrArrays> {
    NB_TYPE_CASTER(labelwood::bind::CsrArrays, const_name("labelwood.sparse.CSR"))
    bool from_python(handle src, uint32_t flags, cleanup_list* cleanup) noexcept {
        return read_attribute(src, "indptr", flags, cleanup, value.indptr) &&
               read_attribute(src, "indices", flags, cleanup, value.indices) &&
               read_attribute(src, "data", flags, cleanup, value.data) &&
               read_attribute(src, "n_cols", flags, cleanup, value.n_cols);
    }
};

template <>
struct type_caster<labelwood::bind::FileCsrArrays> {
    NB_TYPE_CASTER(labelwood::bind::FileCsrArrays, const_name("labelwood.sparse.CSR"))
    bool from_python(handle src, uint32_t flags, cleanup_list* cleanup) noexcept {
        type_caster<labelwood::bind::CsrArrays> matrix;
        if (!matrix.from_python(src, flags, cleanup)) return false;
        static_cast<labelwood::bind::CsrArrays&>(value) = matrix.value;
        return read_attribute(src, "resident", flags, cleanup, value.resident);
    }
};

template <>
struct type_caster<labelwood::bind::PatternArrays> {
    NB_TYPE_CASTER(labelwood::bind::PatternArrays, const_name("labelwood.sparse.CSR"))
    bool from_python(handle src, uint32_t flags, cleanup_list* cleanup) noexcept {
        return read_attribute(src, "indptr", flags, cleanup, value.indptr) &&
               read_attribute(src, "indices", flags, cleanup, value.indices) &&
               read_attribute(src, "n_cols", flags, cleanup, value.n_cols);
    }
};

template <class Column>
struct type_caster<labelwood::bind::StreamArrays<Column>> {
    NB_TYPE_CASTER(labelwood::bind::StreamArrays<Column>, const_name("labelwood.sparse.CSR"))
    // Column ids are never converted: their type chooses the overload.
    bool from_python(handle src, uint32_t flags, cleanup_list* cleanup) noexcept {
        return read_attribute(src, "indices", 0, cleanup, value.indices) &&
               read_attribute(src, "indptr", flags, cleanup, value.indptr) &&
               read_attribute(src, "data", flags, cleanup, value.data);
    }
};

template <>
struct type_caster<labelwood::bind::LabelTreeArrays> {
    NB_TYPE_CASTER(labelwood::bind::LabelTreeArrays, const_name("labelwood.trees.LabelTree"))
    bool from_python(handle src, uint32_t flags, cleanup_list* cleanup) noexcept {
        return read_attribute(src, "child_ptr", flags, cleanup, value.child_ptr) &&
               read_attribute(src, "label", flags, cleanup, value.label);
    }
};

}  // namespace nanobind::detail
