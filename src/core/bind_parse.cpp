#include "bind.hpp"

namespace labelwood {
void bind_parse(nb::module_&) {}
}  // namespace labelwood
