// Chooses the instruction set once, at first use.
#include <cstdlib>
#include <cstring>

#include "simd/forest/cut.hpp"
#include "simd/forest/ldsm.hpp"
#include "simd/forest/router.hpp"
#include "simd/online.hpp"
#include "simd/search.hpp"
#include "simd/solver.hpp"

namespace labelwood::simd {

#define LABELWOOD_DECLARE(isa)                 \
    namespace isa {                            \
    extern const SolverKernels solver_kernels; \
    extern const SearchKernels search_kernels; \
    extern const CutKernels cut_kernels;       \
    extern const ForestKernels forest_kernels; \
    extern const LdsmKernels ldsm_kernels;     \
    extern const OnlineKernels online_kernels; \
    }

LABELWOOD_DECLARE(baseline)
#if defined(LABELWOOD_HAS_avx2)
LABELWOOD_DECLARE(avx2)
LABELWOOD_DECLARE(avx512)
#define LABELWOOD_CHOOSE(name) choose(&baseline::name, &avx2::name, &avx512::name)
#else
#define LABELWOOD_CHOOSE(name) choose(&baseline::name)
#endif

namespace {

constexpr const char* kNames[] = {"baseline", "avx2", "avx512"};

// The number among kNames of the best set this machine can run, or of the one asked for.
int best() {
#if defined(LABELWOOD_HAS_avx2)
    const char* wanted = std::getenv("LABELWOOD_ISA");
#if defined(__clang__)  // Clang 16 knows features, not levels
    const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                          __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
    const bool has_avx512 = has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                            __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                            __builtin_cpu_supports("avx512vl");
#else
    const bool has_avx2 = __builtin_cpu_supports("x86-64-v3");
    const bool has_avx512 = __builtin_cpu_supports("x86-64-v4");
#endif
    if (wanted != nullptr && std::strcmp(wanted, "baseline") == 0) return 0;
    if (wanted != nullptr && std::strcmp(wanted, "avx2") == 0 && has_avx2) return 1;
    if (has_avx512) return 2;
    if (has_avx2) return 1;
#endif
    return 0;
}

int chosen() {
    static const int number = best();
    return number;
}

template <class Kernels, class... Others>
const Kernels& choose(const Kernels* first, Others... others) {
    const Kernels* const sets[] = {first, others...};
    return *sets[chosen()];
}

}  // namespace

const char* isa() {
    return kNames[chosen()];
}

const SolverKernels& solver() {
    return LABELWOOD_CHOOSE(solver_kernels);
}

const SearchKernels& search() {
    return LABELWOOD_CHOOSE(search_kernels);
}

const CutKernels& cut() {
    return LABELWOOD_CHOOSE(cut_kernels);
}

const ForestKernels& forest() {
    return LABELWOOD_CHOOSE(forest_kernels);
}

const LdsmKernels& ldsm() {
    return LABELWOOD_CHOOSE(ldsm_kernels);
}

const OnlineKernels& online() {
    return LABELWOOD_CHOOSE(online_kernels);
}

}  // namespace labelwood::simd
