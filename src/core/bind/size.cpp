// Bindings of what is counted before a label tree is trained.
#include "bind/tree_rows.hpp"
#include "label_tree/size_estimate.hpp"

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace labelwood {
namespace {

using nb::arg;

nb::tuple count_tree_(Array<int64_t> xp, Array<int32_t> xi, Array<float> xd, int64_t n_features,
                      Array<int64_t> yp, Array<int32_t> yi, int64_t n_labels, Array<int32_t> child_ptr,
                      Array<int32_t> label, int n_threads, nb::object progress, int64_t resident) {
    Monitor monitor = monitor_of(progress);
    const GivenRows given(view(xp, xi, xd, n_features), std::nullopt, resident);
    const Csr y = pattern(yp, yi, n_labels);
    const Tree tree = tree_view(child_ptr, label);
    NodeSizes out = without_gil(
        [&] { return count_nodes(given.rows(), node_members(y, tree), tree, n_threads, monitor); });
    return nb::make_tuple(to_numpy(std::move(out.features)), to_numpy(std::move(out.entries)),
                          to_numpy(std::move(out.rows)));
}

// What samples held is free again, but an allocator keeps it: a training that follows would have it on top of
// its own.
void give_back() {
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

}  // namespace

void bind_size(nb::module_& m) {
    m.def("give_back", give_back, "Returns freed memory to the system, where the allocator can.");
    m.def("count_tree", count_tree_, arg("x_indptr"), arg("x_indices"), arg("x_data"), arg("n_features"),
          arg("y_indptr"), arg("y_indices"), arg("n_labels"), arg("child_ptr"), arg("label"),
          arg("n_threads"), arg("progress").none(), nb::kw_only(), arg("resident") = 0,
          "Used features and row entries of every inner node, and rows of every node, of an untrained tree.");
}

}  // namespace labelwood
