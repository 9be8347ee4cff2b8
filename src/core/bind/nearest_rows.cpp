// Binding of the index of recent rows. Callers in Python have checked the arrays.
//
// Adding takes the object's mutex exclusively, searches share it, both without the interpreter lock.
#include "online/nearest_rows.hpp"

#include <mutex>
#include <shared_mutex>

#include "bind/arguments.hpp"

namespace labelwood::bind {
namespace {

class NearestRowsObject {
  public:
    NearestRowsObject(int64_t n_neighbors, int64_t max_visits) : index_({n_neighbors, max_visits}) {}

    void add(const StreamArrays& x, const PatternArrays& y) {
        without_gil([&] {
            const std::unique_lock lock(mutex_);
            x.with_rows([&](const auto& rows) { index_.add(rows, y.view()); });
        });
    }

    nb::tuple search(const StreamArrays& x, int64_t k, int n_threads, const nb::object& progress) const {
        Call call(x.n_rows() <= 64, n_threads, progress);
        return labels_and_scores(x.n_rows(), k, [&](int32_t* labels, float* shares) {
            const std::shared_lock lock(mutex_);
            x.with_rows(
                [&](const auto& rows) { index_.search(rows, k, call.n_threads, call.monitor, labels, shares); });
        });
    }

    nb::tuple search_then_add(const StreamArrays& x, const PatternArrays& y, int64_t k) {
        return labels_and_scores(x.n_rows(), k, [&](int32_t* labels, float* shares) {
            const std::unique_lock lock(mutex_);
            x.with_rows([&](const auto& rows) { index_.search_then_add(rows, y.view(), k, labels, shares); });
        });
    }

    int64_t n_rows() const {
        const std::shared_lock lock(mutex_);
        return index_.n_rows();
    }

  private:
    online::NearestRows index_;
    mutable std::shared_mutex mutex_;
};

}  // namespace

void bind_nearest_rows(nb::module_& m) {
    nb::class_<NearestRowsObject>(m, "NearestRows", "Rows whose nearest vote for their labels.")
        .def(nb::init<int64_t, int64_t>(), arg("n_neighbors"), arg("max_visits"))
        .def("add", &NearestRowsObject::add, arg("X"), arg("Y"), "Add rows.")
        .def("search", &NearestRowsObject::search, arg("X"), arg("k"), arg("n_threads"), arg("progress").none(),
             "Labels of the nearest rows, by their share of the votes.")
        .def("search_then_add", &NearestRowsObject::search_then_add, arg("X"), arg("Y"), arg("k"),
             "Search with each row, then add it.")
        .def_prop_ro("n_rows", &NearestRowsObject::n_rows);
}

}  // namespace labelwood::bind
