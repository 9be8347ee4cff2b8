// Chooses the instruction set once, at first use.
#include <cstdlib>
#include <cstring>

#include "simd/forest.hpp"
#include "simd/online.hpp"
#include "simd/solver.hpp"

namespace labelwood {

#define LABELWOOD_DECLARE(isa)            \
    namespace isa {                       \
    extern const Simd table;              \
    extern const ForestSimd forest_table; \
    extern const OnlineSimd online_table; \
    }

LABELWOOD_DECLARE(baseline)
#if defined(LABELWOOD_HAS_avx2)
LABELWOOD_DECLARE(avx2)
LABELWOOD_DECLARE(avx512)
#define LABELWOOD_TABLES(name) {&baseline::name, &avx2::name, &avx512::name}
#else
#define LABELWOOD_TABLES(name) {&baseline::name}
#endif

// The place in LABELWOOD_TABLES of the best set this machine can run, or of the one asked for.
static int choose() {
#if defined(LABELWOOD_HAS_avx2)
    const char* wanted = std::getenv("LABELWOOD_ISA");
    const bool has_avx2 = __builtin_cpu_supports("x86-64-v3");
    const bool has_avx512 = __builtin_cpu_supports("x86-64-v4");
    if (wanted != nullptr && std::strcmp(wanted, "baseline") == 0) return 0;
    if (wanted != nullptr && std::strcmp(wanted, "avx2") == 0 && has_avx2) return 1;
    if (has_avx512) return 2;
    if (has_avx2) return 1;
#endif
    return 0;
}

static int chosen() {
    static const int isa = choose();
    return isa;
}

const Simd& simd() {
    static const Simd* const tables[] = LABELWOOD_TABLES(table);
    return *tables[chosen()];
}

const ForestSimd& forest_simd() {
    static const ForestSimd* const tables[] = LABELWOOD_TABLES(forest_table);
    return *tables[chosen()];
}

const OnlineSimd& online_simd() {
    static const OnlineSimd* const tables[] = LABELWOOD_TABLES(online_table);
    return *tables[chosen()];
}

}  // namespace labelwood
