// The extension module: a list of what is bound where.
#include "bind/bind.hpp"
#include "memory/trim.hpp"
#include "simd/solver.hpp"

// One word per file of bindings: `craft` stands for bind_craft.
#define LABELWOOD_BINDINGS(each)                                                                                   \
    each(craft) each(fastxml) each(forest) each(graph) each(label_tree) each(ldsm) each(nearest_rows) each(online) \
        each(ranking) each(rows) each(sparse) each(text)

namespace labelwood::bind {
#define DECLARE(area) void bind_##area(nb::module_& m);
LABELWOOD_BINDINGS(DECLARE)
#undef DECLARE
}  // namespace labelwood::bind

NB_MODULE(_core, m) {
    m.doc() = "Compiled kernels of Labelwood. Private: inputs are validated by the callers in labelwood.";
    m.def("isa", &labelwood::simd::isa, "Instruction set the kernels run on.");
    m.def("give_back", &labelwood::memory::trim_memory, "Returns freed memory to the system, where the allocator can.");
#define BIND(area) labelwood::bind::bind_##area(m);
    LABELWOOD_BINDINGS(BIND)
#undef BIND
}
