// Bindings of what is counted and sampled before a label tree is trained.
#include "bind/tree_rows.hpp"
#include "label_tree/size_estimate.hpp"

#ifdef __GLIBC__
#include <malloc.h>

#include "base/rng.hpp"
#endif

namespace labelwood::bind {
namespace {

using nb::arg;

nb::tuple count_tree_(Array<int64_t> xp, Array<int32_t> xi, Array<float> xd, int64_t n_features,
                      Array<int64_t> yp, Array<int32_t> yi, int64_t n_labels, Array<int32_t> child_ptr,
                      Array<int32_t> label, int n_threads, nb::object progress, int64_t resident) {
    Monitor monitor = monitor_of(progress);
    const GivenRows given(view(xp, xi, xd, n_features), std::nullopt, resident);
    const Csr y = pattern(yp, yi, n_labels);
    const label_tree::Tree tree = tree_view(child_ptr, label);
    label_tree::NodeSizes out = without_gil([&] {
        return label_tree::count_nodes(given.rows(), label_tree::node_members(y, tree), tree, n_threads,
                                       monitor);
    });
    return nb::make_tuple(to_numpy(std::move(out.features)), to_numpy(std::move(out.entries)),
                          to_numpy(std::move(out.rows)));
}

nb::tuple reach_tree_(Array<int64_t> xp, Array<int32_t> xi, Array<float> xd, int64_t n_features,
                      Array<int64_t> yp, Array<int32_t> yi, int64_t n_labels, Array<int32_t> child_ptr,
                      Array<int32_t> label, Array<float> thresholds, int n_threads, nb::object progress,
                      std::optional<Array<float>> scale, int64_t resident) {
    Monitor monitor = monitor_of(progress);
    const GivenRows given(view(xp, xi, xd, n_features), scale, resident);
    const Csr y = pattern(yp, yi, n_labels);
    const label_tree::Tree tree = tree_view(child_ptr, label);
    const std::vector<float> levels(thresholds.data(), thresholds.data() + thresholds.shape(0));
    label_tree::ReachCounts out = without_gil([&] {
        return label_tree::reach_nodes(given.rows(), label_tree::node_members(y, tree), tree, levels,
                                       n_threads, monitor);
    });
    const size_t n_nodes = out.by_node.size() / levels.size(), n_inner = out.together.size() / levels.size();
    return nb::make_tuple(to_numpy(std::move(out.by_node), n_nodes, levels.size()),
                          to_numpy(std::move(out.together), n_inner, levels.size()),
                          to_numpy(std::move(out.square)));
}

// What samples held is free again, but an allocator keeps it: a training that follows would have it on top of
// its own.
void give_back() {
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

// One row of the results per sampled node, of `weights` and `reach` per picked sibling; a column per
// threshold, or two seconds.
struct Samples {
    std::vector<int64_t> weights, features, reach, reached;
    std::vector<double> seconds;

    void add(const label_tree::Kept& kept) {
        auto append = [](auto& all, const auto& part) { all.insert(all.end(), part.begin(), part.end()); };
        append(weights, kept.weights);
        append(features, kept.features);
        append(reach, kept.reach);
        append(reached, kept.reached);
        seconds.push_back(kept.build_seconds);
        seconds.push_back(kept.solve_seconds);
    }
};

nb::dict sample_tree_(Array<int64_t> xp, Array<int32_t> xi, Array<float> xd, int64_t n_features,
                      Array<int64_t> yp, Array<int32_t> yi, int64_t n_labels, Array<int32_t> child_ptr,
                      Array<int32_t> label, Array<int32_t> nodes, Array<int64_t> picked_ptr,
                      Array<int32_t> picked, Array<int64_t> n_rows, bool logistic, float cost,
                      float tolerance, float skip, int max_passes, float bias, float offset,
                      Array<float> thresholds, uint64_t seed, std::optional<Array<float>> scale,
                      int64_t resident, int64_t most_entries) {
    const GivenRows given(view(xp, xi, xd, n_features), scale, resident);
    const Csr y = pattern(yp, yi, n_labels);
    const label_tree::Tree tree = tree_view(child_ptr, label);
    const label_tree::SolverOptions solver{
        logistic ? label_tree::Loss::kLogistic : label_tree::Loss::kSquaredHinge,
        cost,
        tolerance,
        skip,
        max_passes,
        bias,
        offset};
    const std::vector<float> levels(thresholds.data(), thresholds.data() + thresholds.shape(0));
    const size_t n = nodes.shape(0);
    Monitor monitor = monitor_of(nb::none());
    Samples out = without_gil([&] {
        const RowLists members = label_tree::node_members(y, tree);
        StampedCounts columns(n_features);
        label_tree::Reach reach(n_features, levels);
        Samples samples;
        for (size_t i = 0; i < n; ++i) {
            const int32_t* first = picked.data() + picked_ptr.data()[i];
            const label_tree::SiblingSample sample{
                nodes.data()[i], {first, picked.data() + picked_ptr.data()[i + 1]}, n_rows.data()[i]};
            samples.add(label_tree::train_sample(given.rows(), members, tree, sample, solver, levels,
                                                 mix64(seed) ^ i, most_entries, columns, reach, monitor));
            monitor.poll();
            if (monitor.stopped()) throw Interrupted();
        }
        return samples;
    });
    nb::dict arrays;
    const size_t width = levels.size();
    arrays["weights"] = to_numpy(std::move(out.weights), picked.shape(0), width);
    arrays["features"] = to_numpy(std::move(out.features), n, width);
    arrays["reach"] = to_numpy(std::move(out.reach), picked.shape(0), width);
    arrays["reached"] = to_numpy(std::move(out.reached), n, width);
    arrays["seconds"] = to_numpy(std::move(out.seconds), n, 2);
    return arrays;
}

}  // namespace

void bind_size(nb::module_& m) {
    m.def("give_back", give_back, "Returns freed memory to the system, where the allocator can.");
    m.def("count_tree", count_tree_, arg("x_indptr"), arg("x_indices"), arg("x_data"), arg("n_features"),
          arg("y_indptr"), arg("y_indices"), arg("n_labels"), arg("child_ptr"), arg("label"),
          arg("n_threads"), arg("progress").none(), nb::kw_only(), arg("resident") = 0,
          "Used features and row entries of every inner node, and rows of every node, of an untrained tree.");
    m.def(
        "reach_tree", reach_tree_, arg("x_indptr"), arg("x_indices"), arg("x_data"), arg("n_features"),
        arg("y_indptr"), arg("y_indices"), arg("n_labels"), arg("child_ptr"), arg("label"), arg("thresholds"),
        arg("n_threads"), arg("progress").none(), nb::kw_only(), arg("scale") = nb::none(),
        arg("resident") = 0,
        "Columns whose sum over a node's rows exceeds each of the rising thresholds: per node, and per inner "
        "node those that any child reaches; and per node the squared length of that sum.");
    m.def("sample_tree", sample_tree_, arg("x_indptr"), arg("x_indices"), arg("x_data"), arg("n_features"),
          arg("y_indptr"), arg("y_indices"), arg("n_labels"), arg("child_ptr"), arg("label"), arg("nodes"),
          arg("picked_ptr"), arg("picked"), arg("n_rows"), arg("logistic"), arg("cost"), arg("tolerance"),
          arg("skip"), arg("max_passes"), arg("bias"), arg("offset"), arg("thresholds"), arg("seed"),
          nb::kw_only(), arg("scale") = nb::none(), arg("resident") = 0, arg("most_entries") = 0,
          "What picked siblings keep of their weights above each of the rising thresholds, trained on so "
          "many of "
          "their node's rows, what these reach, and the seconds.");
}

}  // namespace labelwood::bind
