// Text rows in and out.
#include "bind/bind.hpp"
#include "rows/format.hpp"
#include "rows/parse.hpp"

namespace labelwood::bind {

namespace {

template <class T>
Out<T> own(std::unique_ptr<T[]>&& items, int64_t count) {
    T* held = items.release();
    nb::capsule owner(held, [](void* p) noexcept { delete[] static_cast<T*>(p); });
    return Out<T>(held, {static_cast<size_t>(count)}, owner);
}

nb::tuple parse(Array<uint8_t> text, bool svmlight, int64_t first_id, int64_t n_features, int64_t n_labels,
                int n_threads, const nb::object& progress, int64_t piece_size) {
    Monitor monitor = monitor_of(progress);
    const rows::Dialect dialect{svmlight, first_id, n_features, n_labels};
    const auto* bytes = reinterpret_cast<const char*>(text.data());
    const auto size = static_cast<int64_t>(text.shape(0));
    rows::ParsedRows rows =
        without_gil([&] { return rows::parse_rows(bytes, size, dialect, piece_size, n_threads, monitor); });
    if (rows.bad.problem != rows::Problem::none) {
        return nb::make_tuple(static_cast<int32_t>(rows.bad.problem), rows.bad.begin, rows.bad.end);
    }
    return nb::make_tuple(
        own(std::move(rows.feature_ptr), rows.n_rows + 1),
        own(std::move(rows.features), rows.n_features_stored),
        own(std::move(rows.values), rows.n_features_stored), own(std::move(rows.label_ptr), rows.n_rows + 1),
        own(std::move(rows.labels), rows.n_labels_stored), rows.feature_end, rows.label_end);
}

Out<uint8_t> format(Array<int64_t> x_indptr, Array<int32_t> x_indices, Array<float> x_data,
                    Array<int64_t> y_indptr, Array<int32_t> y_indices, bool svmlight, int n_threads) {
    Monitor monitor = monitor_of(nb::none());
    const Csr X = view(x_indptr, x_indices, x_data, 0);
    const Csr Y = pattern(y_indptr, y_indices, 0);
    rows::Text text = without_gil([&] { return rows::format_rows(X, Y, svmlight, n_threads, monitor); });
    auto* held = reinterpret_cast<uint8_t*>(text.bytes.release());
    nb::capsule owner(held, [](void* p) noexcept { delete[] static_cast<char*>(p); });
    return Out<uint8_t>(held, {static_cast<size_t>(text.size)}, owner);
}

}  // namespace

void bind_parse(nb::module_& m) {
    m.def("parse_rows", &parse, nb::arg("text"), nb::kw_only(), nb::arg("svmlight"), nb::arg("first_id"),
          nb::arg("n_features"), nb::arg("n_labels"), nb::arg("n_threads"), nb::arg("progress") = nb::none(),
          nb::arg("piece_size") = int64_t{1} << 20,
          "Parse text rows; the text must end in a newline. Returns (problem, begin, end) for the first bad "
          "token, "
          "else X's indptr, indices, data, Y's indptr, indices, and one past the largest feature and label "
          "id.");
    m.def("format_rows", &format, nb::arg("x_indptr"), nb::arg("x_indices"), nb::arg("x_data"),
          nb::arg("y_indptr"), nb::arg("y_indices"), nb::kw_only(), nb::arg("svmlight"), nb::arg("n_threads"),
          "Text rows of a pair of CSR matrices, as bytes.");
}

}  // namespace labelwood::bind
