// Binding of the LdSM forests. Its caller in Python has checked the arrays.
#include "bind/arguments.hpp"
#include "bind/growers/forest_arrays.hpp"
#include "bind/options.hpp"
#include "forest/ldsm/grower.hpp"

namespace labelwood::bind {
namespace {

namespace ldsm = forest::ldsm;

void read(OptionsReader& from, ldsm::Options& to) {
    from.read("first_tree", to.first_tree);
    from.read("n_trees", to.n_trees);
    from.read("arity", to.arity);
    from.read("max_nodes", to.max_nodes);
    from.read("epochs", to.epochs);
    from.read("lambda_integrity", to.lambda_integrity);
    from.read("lambda_multiway", to.lambda_multiway);
    from.choose("optimizer", to.optimizer, {"nag", "adagrad", "sgd"});
    from.read("learning_rate", to.learning_rate);
    from.read("weight_threshold", to.weight_threshold);
    from.choose("loss", to.loss, {"logistic", "squared", "clamped"});
    from.read("start_weights", to.start_weights);
    from.read("first_of_ties", to.first_of_ties);
    from.read("partial_splits", to.partial_splits);
    from.read("shuffle_epoch", to.shuffle_epoch);
    from.read("divide_by_rows", to.divide_by_rows);
    from.read("leaf_size", to.leaf_size);
    from.read("seed", to.seed);
}

nb::dict grow(const CsrArrays& x, const PatternArrays& y, const nb::dict& options, int n_threads,
              const nb::object& progress) {
    Monitor monitor = monitor_of(progress);
    const auto given = options_from<ldsm::Options>(options, read);
    ldsm::Forest grown = without_gil([&] { return ldsm::grow_forest(x.view(), y.view(), given, n_threads, monitor); });
    nb::dict arrays = forest_arrays(std::move(grown.flat));
    const int64_t n_splits = grown.splits.size() / ldsm::kSplitColumns;
    arrays["splits"] = to_numpy(std::move(grown.splits), n_splits, ldsm::kSplitColumns);
    return arrays;
}

}  // namespace

void bind_ldsm(nb::module_& m) {
    m.def("grow_ldsm_forest", &grow, arg("X"), arg("Y"), arg("options"), arg("n_threads"), arg("progress").none(),
          "LdSM trees as the arrays of a RoutedForest, and `splits`: objective, balancedness, purity and "
          "running objective of every inner node.");
}

}  // namespace labelwood::bind
