// Bindings of operations on sparse rows.
#include "bind/arguments.hpp"
#include "sparse/keep_largest.hpp"
#include "sparse/row_ops.hpp"

namespace labelwood::bind {
namespace {

int check(const StreamArrays& x) {
    const auto nnz = static_cast<int64_t>(x.indices.shape(0));
    return static_cast<int>(
        without_gil([&] { return x.with_rows([&](const auto& rows) { return sparse::check_csr(rows, nnz); }); }));
}

// Takes no column ids: those of a stream may have 64 bits.
Out<float> scale_to_unit(const Array<int64_t>& indptr, const Array<float>& data) {
    const Csr x{indptr.data(), nullptr, data.data(), length(indptr) - 1, 0};
    return to_numpy(without_gil([&] { return sparse::unit_rows(x); }));
}

Out<float> factors(const FileCsrArrays& x) {
    const GivenRows given(x);
    return to_numpy(without_gil([&] { return sparse::unit_factors(given.rows()); }));
}

Out<double> lengths(const HybridArrays& x) {
    const Vectors vectors = x.dense(std::nullopt);
    const auto n_rows = x.vectors ? static_cast<int64_t>(x.vectors->shape(0)) : 0;
    return to_numpy(without_gil([&] { return sparse::vector_lengths(vectors, n_rows); }));
}

nb::tuple take(const FileCsrArrays& x, const Array<int64_t>& rows) {
    const GivenRows given(x);
    return to_numpy(without_gil([&] { return sparse::take_rows(given.rows(), rows.data(), length(rows)); }));
}

Out<int64_t> largest(const Array<int64_t>& ptr, const Array<float>& values, int64_t most) {
    return to_numpy(
        without_gil([&] { return sparse::keep_largest(ptr.data(), length(ptr) - 1, values.data(), most); }));
}

nb::tuple largest_share(const Array<int64_t>& ptr, const Array<float>& values, double share, int64_t least) {
    sparse::KeptEntries kept =
        without_gil([&] { return sparse::keep_share(ptr.data(), length(ptr) - 1, values.data(), share, least); });
    return nb::make_tuple(to_numpy(std::move(kept.ptr)), to_numpy(std::move(kept.positions)));
}

}  // namespace

void bind_sparse(nb::module_& m) {
    m.def("check_csr", &check, arg("X"),
          "0 for a sound CSR matrix, else the number of its fault: 1 pointers, 2 range, 3 order, 4 values.");
    m.def("unit_rows", &scale_to_unit, arg("indptr"), arg("data"), "Values of the rows scaled to unit length.");
    m.def("unit_factors", &factors, arg("X"), "The factor that scales each row to unit length.");
    m.def("vector_lengths", &lengths, arg("X"), "The length of each row's vector.");
    m.def("take_rows", &take, arg("X"), arg("rows"), "The given rows, copied, from a mapped matrix.");
    m.def("keep_largest", &largest, arg("ptr"), arg("values"), arg("most"),
          "Positions of each row's `most` largest entries by absolute value.");
    m.def("keep_share", &largest_share, arg("ptr"), arg("values"), arg("share"), arg("least"),
          "Pointer and positions of each row's largest entries that make up a share of its squared length.");
}

}  // namespace labelwood::bind
