// Binding of the FastXML forests. Its caller in Python has checked the arrays.
#include "bind/arguments.hpp"
#include "bind/growers/forest_arrays.hpp"
#include "bind/options.hpp"
#include "forest/fastxml/grower.hpp"

namespace labelwood::bind {
namespace {

namespace fastxml = forest::fastxml;

void read(OptionsReader& from, fastxml::Options& to) {
    read_binary(from, to.tree);
    from.read("C", to.separator.cost);
    from.read("tolerance", to.separator.tolerance);
    from.read("bias", to.separator.bias);
    from.read("rounds", to.rounds);
    from.view("label_weights", to.label_weights);
}

nb::dict grow(const CsrArrays& x, const PatternArrays& y, const nb::dict& options, int n_threads,
              const nb::object& progress) {
    Monitor monitor = monitor_of(progress);
    const auto given = options_from<fastxml::Options>(options, read);
    return forest_arrays(
        without_gil([&] { return fastxml::grow_forest(x.view(), y.view(), given, n_threads, monitor); }));
}

}  // namespace

void bind_fastxml(nb::module_& m) {
    m.def("grow_fastxml_forest", &grow, arg("X"), arg("Y"), arg("options"), arg("n_threads"), arg("progress").none(),
          "A forest of FastXML, as the arrays of a RoutedForest.");
}

}  // namespace labelwood::bind
