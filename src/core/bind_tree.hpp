// What the bindings of label trees share.
#pragma once

#include "bind.hpp"
#include "tree.hpp"

namespace labelwood {

inline Tree tree_view(const Array<int32_t>& child_ptr, const Array<int32_t>& label) {
    return {child_ptr.data(), label.data(), static_cast<int32_t>(label.shape(0))};
}

}  // namespace labelwood
