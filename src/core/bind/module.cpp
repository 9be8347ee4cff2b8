// The extension module: a list of what is bound where. No logic here.
#include <nanobind/nanobind.h>

namespace labelwood::bind {
void bind_craft(nanobind::module_& m);
void bind_forest(nanobind::module_& m);
void bind_graph(nanobind::module_& m);
void bind_online(nanobind::module_& m);
void bind_ldsm(nanobind::module_& m);
void bind_parse(nanobind::module_& m);
void bind_size(nanobind::module_& m);
void bind_text(nanobind::module_& m);
void bind_tree(nanobind::module_& m);
}  // namespace labelwood::bind

NB_MODULE(_core, m) {
    m.doc() = "Compiled kernels of Labelwood. Private: inputs are validated by the callers in labelwood.";
    labelwood::bind::bind_craft(m);
    labelwood::bind::bind_forest(m);
    labelwood::bind::bind_graph(m);
    labelwood::bind::bind_online(m);
    labelwood::bind::bind_ldsm(m);
    labelwood::bind::bind_parse(m);
    labelwood::bind::bind_size(m);
    labelwood::bind::bind_text(m);
    labelwood::bind::bind_tree(m);
}
