// Giving freed memory back to the system.
#pragma once

#include <cstdlib>
#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace labelwood::memory {

// Without it, glibc keeps pages that an earlier phase freed, and they count on top of the next phase's own.
inline void trim_memory() {
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

}  // namespace labelwood::memory
