// The extension module: a list of what is bound where.
#include "bind/bind.hpp"
#include "memory/trim.hpp"
#include "simd/solver.hpp"

namespace labelwood::bind {
void bind_craft(nb::module_& m);
void bind_forest(nb::module_& m);
void bind_graph(nb::module_& m);
void bind_label_tree(nb::module_& m);
void bind_ldsm(nb::module_& m);
void bind_online(nb::module_& m);
void bind_ranking(nb::module_& m);
void bind_rows(nb::module_& m);
void bind_sparse(nb::module_& m);
void bind_text(nb::module_& m);
}  // namespace labelwood::bind

NB_MODULE(_core, m) {
    m.doc() = "Compiled kernels of Labelwood. Private: inputs are validated by the callers in labelwood.";
    m.def("isa", &labelwood::simd::isa, "Instruction set the kernels run on.");
    m.def("give_back", &labelwood::memory::trim_memory, "Returns freed memory to the system, where the allocator can.");
    labelwood::bind::bind_craft(m);
    labelwood::bind::bind_forest(m);
    labelwood::bind::bind_graph(m);
    labelwood::bind::bind_label_tree(m);
    labelwood::bind::bind_ldsm(m);
    labelwood::bind::bind_online(m);
    labelwood::bind::bind_ranking(m);
    labelwood::bind::bind_rows(m);
    labelwood::bind::bind_sparse(m);
    labelwood::bind::bind_text(m);
}
