// The extension module: a list of what is bound where. No logic here.
#include <nanobind/nanobind.h>

namespace labelwood {
void bind_craft(nanobind::module_& m);
void bind_forest(nanobind::module_& m);
void bind_graph(nanobind::module_& m);
void bind_online(nanobind::module_& m);
void bind_ldsm(nanobind::module_& m);
void bind_parse(nanobind::module_& m);
void bind_size(nanobind::module_& m);
void bind_text(nanobind::module_& m);
void bind_tree(nanobind::module_& m);
}  // namespace labelwood

NB_MODULE(_core, m) {
    m.doc() = "Compiled kernels of Labelwood. Private: inputs are validated by the callers in labelwood.";
    labelwood::bind_craft(m);
    labelwood::bind_forest(m);
    labelwood::bind_graph(m);
    labelwood::bind_online(m);
    labelwood::bind_ldsm(m);
    labelwood::bind_parse(m);
    labelwood::bind_size(m);
    labelwood::bind_text(m);
    labelwood::bind_tree(m);
}
