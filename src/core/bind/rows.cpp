// Bindings of the parser and the writer of text rows, and of the reader of CBOR.
#include "bind/arguments.hpp"
#include "bind/options.hpp"
#include "rows/cbor.hpp"
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

void read(OptionsReader& from, rows::Dialect& to) {
    from.read("svmlight", to.svmlight);
    from.read("first_id", to.first_id);
    from.read("n_features", to.n_features);
    from.read("n_labels", to.n_labels);
}

nb::tuple parse(const Array<uint8_t>& text, const nb::dict& options, int n_threads, const nb::object& progress,
                int64_t piece_size) {
    Monitor monitor = monitor_of(progress);
    const auto dialect = options_from<rows::Dialect>(options, read);
    const auto* bytes = reinterpret_cast<const char*>(text.data());
    rows::ParsedRows parsed =
        without_gil([&] { return rows::parse_rows(bytes, length(text), dialect, piece_size, n_threads, monitor); });
    if (parsed.bad.problem != rows::Problem::none) {
        return nb::make_tuple(static_cast<int32_t>(parsed.bad.problem), parsed.bad.begin, parsed.bad.end);
    }
    return nb::make_tuple(own(std::move(parsed.feature_ptr), parsed.n_rows + 1),
                          own(std::move(parsed.features), parsed.n_features_stored),
                          own(std::move(parsed.values), parsed.n_features_stored),
                          own(std::move(parsed.label_ptr), parsed.n_rows + 1),
                          own(std::move(parsed.labels), parsed.n_labels_stored), parsed.feature_end, parsed.label_end);
}

Out<uint8_t> format(const CsrArrays& x, const PatternArrays& y, bool svmlight, int n_threads) {
    Monitor monitor = monitor_of(nb::none());
    rows::Text text = without_gil([&] { return rows::format_rows(x.view(), y.view(), svmlight, n_threads, monitor); });
    auto* held = reinterpret_cast<uint8_t*>(text.bytes.release());
    nb::capsule owner(held, [](void* p) noexcept { delete[] static_cast<char*>(p); });
    return Out<uint8_t>(held, {static_cast<size_t>(text.size)}, owner);
}

nb::tuple cbor(const Array<uint8_t>& bytes) {
    rows::CborTokens tokens = without_gil([&] { return rows::cbor_tokens(span(bytes)); });
    return nb::make_tuple(to_numpy(std::move(tokens.kinds)), to_numpy(std::move(tokens.values)), tokens.bad);
}

}  // namespace

void bind_rows(nb::module_& m) {
    m.def("parse_rows", &parse, arg("text"), arg("options"), arg("n_threads"), arg("progress") = nb::none(),
          nb::kw_only(), arg("piece_size") = int64_t{1} << 20,
          "Parse text rows; the text must end in a newline. Returns (problem, begin, end) for the first bad "
          "token, else X's indptr, indices, data, Y's indptr, indices, and one past the largest feature and "
          "label id.");
    m.def("format_rows", &format, arg("X"), arg("Y"), nb::kw_only(), arg("svmlight"), arg("n_threads"),
          "Text rows of a pair of CSR matrices, as bytes.");
    m.def("cbor_tokens", &cbor, arg("bytes"),
          "Kinds (0 number, 1 text, 2 array, 3 map) and values of the items of a CBOR document, and the offset of the "
          "first bad item or -1.");
}

}  // namespace labelwood::bind
