// The extension module: a list of what is bound where.
#include "bind/bind.hpp"
#include "memory/trim.hpp"
#include "simd/solver.hpp"

namespace labelwood {
void bind_craft(nb::module_& m);
void bind_forest(nb::module_& m);
void bind_graph(nb::module_& m);
void bind_label_tree(nb::module_& m);
void bind_ldsm(nb::module_& m);
void bind_online(nb::module_& m);
void bind_rows(nb::module_& m);
void bind_sparse(nb::module_& m);
void bind_text(nb::module_& m);
}  // namespace labelwood

NB_MODULE(_core, m) {
    m.doc() = "Compiled kernels of Labelwood. Private: inputs are validated by the callers in labelwood.";
    m.def("isa", [] { return labelwood::simd().name; }, "Instruction set the kernels run on.");
    m.def("give_back", &labelwood::trim_memory,
          "Returns freed memory to the system, where the allocator can.");
    labelwood::bind_craft(m);
    labelwood::bind_forest(m);
    labelwood::bind_graph(m);
    labelwood::bind_label_tree(m);
    labelwood::bind_ldsm(m);
    labelwood::bind_online(m);
    labelwood::bind_rows(m);
    labelwood::bind_sparse(m);
    labelwood::bind_text(m);
}
