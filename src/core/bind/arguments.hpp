// Python objects that kernels take as one argument: CSR matrices and label trees. Casters read their
// attributes.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <type_traits>

#include "bind/bind.hpp"
#include "label_tree/tree.hpp"
#include "sparse/training_rows.hpp"

namespace labelwood::bind {

using VectorArray = nb::ndarray<nb::ro, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// The type of the numbers of an array; 16 bits that are no floats are bfloat16.
template <class Numbers>
VectorType vector_type(const Numbers& array) {
    const nb::dlpack::dtype type = array.dtype();
    if (type.bits == 8) return VectorType::kInt8;
    if (type.bits == 32) return VectorType::kFloat;
    return type.code == static_cast<uint8_t>(nb::dlpack::dtype_code::Float) ? VectorType::kHalf : VectorType::kBrain;
}

// A matrix with values.
struct CsrArrays {
    Array<int64_t> indptr;
    Array<int32_t> indices;
    Array<float> data;
    int64_t n_cols;

    Csr view() const { return {indptr.data(), indices.data(), data.data(), length(indptr) - 1, n_cols}; }
};

// Rows whose column ids may have 64 bits, as those of a stream do.
struct StreamArrays {
    Array<int64_t> indptr;
    AnyArray indices;
    Array<float> data;
    int64_t n_cols;

    bool is_wide() const { return indices.dtype() == nb::dtype<int64_t>(); }
    int64_t n_rows() const { return length(indptr) - 1; }

    // Calls use(StreamRows<Column>) with the type of the column ids.
    template <class Use>
    auto with_rows(Use&& use) const {
        return is_wide() ? use(view<int64_t>()) : use(view<int32_t>());
    }

  private:
    template <class Column>
    StreamRows<Column> view() const {
        return {indptr.data(), static_cast<const Column*>(indices.data()), data.data(), n_rows(), n_cols};
    }
};

// A matrix of labels: its values are not read.
struct PatternArrays {
    Array<int64_t> indptr;
    Array<int32_t> indices;
    int64_t n_cols;

    Csr view() const { return {indptr.data(), indices.data(), nullptr, length(indptr) - 1, n_cols}; }
};

struct LabelTreeArrays {
    Array<int32_t> child_ptr, label;

    label_tree::Tree view() const { return {child_ptr.data(), label.data(), static_cast<int32_t>(label.shape(0))}; }
};

// A matrix that may be a mapped file: at most `resident` bytes of its pages stay in memory; 0 if it is no
// file.
struct FileCsrArrays : CsrArrays {
    int64_t resident;
};

// Rows with a vector each, or none. Numbers of 16 bits that are no floats are bfloat16.
struct HybridArrays : FileCsrArrays {
    std::optional<VectorArray> vectors;  // dense columns, counted by n_cols

    Csr sparse() const {
        Csr rows = view();
        rows.n_cols -= width();
        return rows;
    }
    Vectors dense(const std::optional<Array<float>>& scale) const {
        if (!vectors) return {};
        return {static_cast<const char*>(vectors->data()), width(), vector_type(*vectors), data_or_null(scale)};
    }

  private:
    int64_t width() const { return vectors ? static_cast<int64_t>(vectors->shape(1)) : 0; }
};

// Training rows, each multiplied by its `scale`, if given. The destructor releases pages of a file.
class GivenRows {
  public:
    GivenRows(const HybridArrays& x, const std::optional<Array<float>>& scale,
              const std::optional<Array<float>>& vector_scale)
        : GivenRows(x, scale) {
        rows_.x = x.sparse();
        rows_.vectors = x.dense(vector_scale);
    }
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

template <size_t N>
struct Name {
    constexpr Name(const char (&text)[N]) { std::copy_n(text, N, this->text); }
    char text[N];
};

// Reads one attribute; false if it is missing or has another type, which is never converted. Interned names and moves
// take 0.9 us off a call with one matrix, which matters for the prediction of a single row.
template <Name Attribute, class T>
bool read(handle object, uint32_t flags, cleanup_list* cleanup, T& into) noexcept {
    static PyObject* const name = PyUnicode_InternFromString(Attribute.text);
    PyObject* found = PyObject_GetAttr(object.ptr(), name);
    if (found == nullptr) {
        PyErr_Clear();
        return false;
    }
    const nanobind::object held = steal(found);
    if constexpr (std::is_integral_v<T>) return labelwood::bind::read_integer(held, into);
    make_caster<T> caster;
    if (!caster.from_python(held, flags & ~static_cast<uint32_t>(cast_flags::convert), cleanup)) return false;
    into = std::move(caster.value);
    return true;
}

template <>
struct type_caster<labelwood::bind::CsrArrays> {
    NB_TYPE_CASTER(labelwood::bind::CsrArrays, const_name("labelwood.sparse.CSR"))
    bool from_python(handle src, uint32_t flags, cleanup_list* cleanup) noexcept {
        return read<"indptr">(src, flags, cleanup, value.indptr) &&
               read<"indices">(src, flags, cleanup, value.indices) && read<"data">(src, flags, cleanup, value.data) &&
               read<"n_cols">(src, flags, cleanup, value.n_cols);
    }
};

template <>
struct type_caster<labelwood::bind::FileCsrArrays> {
    NB_TYPE_CASTER(labelwood::bind::FileCsrArrays, const_name("labelwood.sparse.CSR"))
    bool from_python(handle src, uint32_t flags, cleanup_list* cleanup) noexcept {
        type_caster<labelwood::bind::CsrArrays> matrix;
        if (!matrix.from_python(src, flags, cleanup)) return false;
        static_cast<labelwood::bind::CsrArrays&>(value) = std::move(matrix.value);
        return read<"resident">(src, flags, cleanup, value.resident);
    }
};

template <>
struct type_caster<labelwood::bind::HybridArrays> {
    NB_TYPE_CASTER(labelwood::bind::HybridArrays, const_name("labelwood.sparse.CSR"))
    bool from_python(handle src, uint32_t flags, cleanup_list* cleanup) noexcept {
        type_caster<labelwood::bind::FileCsrArrays> matrix;
        if (!matrix.from_python(src, flags, cleanup)) return false;
        static_cast<labelwood::bind::FileCsrArrays&>(value) = std::move(matrix.value);
        return read<"dense_part">(src, flags, cleanup, value.vectors) && are_known(value.vectors);
    }

  private:
    static bool are_known(const std::optional<labelwood::bind::VectorArray>& vectors) {
        return !vectors || vectors->dtype() == dtype<float>() || vectors->dtype().bits == 16;
    }
};

template <>
struct type_caster<labelwood::bind::PatternArrays> {
    NB_TYPE_CASTER(labelwood::bind::PatternArrays, const_name("labelwood.sparse.CSR"))
    bool from_python(handle src, uint32_t flags, cleanup_list* cleanup) noexcept {
        return read<"indptr">(src, flags, cleanup, value.indptr) &&
               read<"indices">(src, flags, cleanup, value.indices) && read<"n_cols">(src, flags, cleanup, value.n_cols);
    }
};

template <>
struct type_caster<labelwood::bind::StreamArrays> {
    NB_TYPE_CASTER(labelwood::bind::StreamArrays, const_name("labelwood.sparse.CSR"))
    bool from_python(handle src, uint32_t flags, cleanup_list* cleanup) noexcept {
        return read<"indptr">(src, flags, cleanup, value.indptr) &&
               read<"indices">(src, flags, cleanup, value.indices) && read<"data">(src, flags, cleanup, value.data) &&
               read<"n_cols">(src, flags, cleanup, value.n_cols) &&
               (value.is_wide() || value.indices.dtype() == dtype<int32_t>());
    }
};

template <>
struct type_caster<labelwood::bind::LabelTreeArrays> {
    NB_TYPE_CASTER(labelwood::bind::LabelTreeArrays, const_name("labelwood.packed.tree_shape.LabelTree"))
    bool from_python(handle src, uint32_t flags, cleanup_list* cleanup) noexcept {
        return read<"child_ptr">(src, flags, cleanup, value.child_ptr) &&
               read<"label">(src, flags, cleanup, value.label);
    }
};

}  // namespace nanobind::detail
