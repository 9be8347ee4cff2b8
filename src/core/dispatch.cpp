// Chooses the instruction set once, at first use.
#include <cstdlib>
#include <cstring>

#include "simd.hpp"
#include "simd_online.hpp"

namespace labelwood {

namespace baseline {
extern const Simd table;
extern const OnlineSimd online_table;
}  // namespace baseline
#if defined(LABELWOOD_HAS_avx2)
namespace avx2 {
extern const Simd table;
extern const OnlineSimd online_table;
}  // namespace avx2
namespace avx512 {
extern const Simd table;
extern const OnlineSimd online_table;
}  // namespace avx512
#endif

static const Simd& choose() {
#if defined(LABELWOOD_HAS_avx2)
    const char* wanted = std::getenv("LABELWOOD_ISA");
    const bool has_avx2 = __builtin_cpu_supports("x86-64-v3");
    const bool has_avx512 = __builtin_cpu_supports("x86-64-v4");
    if (wanted != nullptr && std::strcmp(wanted, "baseline") == 0) return baseline::table;
    if (wanted != nullptr && std::strcmp(wanted, "avx2") == 0 && has_avx2) return avx2::table;
    if (has_avx512) return avx512::table;
    if (has_avx2) return avx2::table;
#endif
    return baseline::table;
}

const Simd& simd() {
    static const Simd& chosen = choose();
    return chosen;
}

static const OnlineSimd& choose_online() {
#if defined(LABELWOOD_HAS_avx2)
    if (&simd() == &avx512::table) return avx512::online_table;
    if (&simd() == &avx2::table) return avx2::online_table;
#endif
    return baseline::online_table;
}

const OnlineSimd& online_simd() {
    static const OnlineSimd& chosen = choose_online();
    return chosen;
}

}  // namespace labelwood
