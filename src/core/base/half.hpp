// Numbers in half precision.
#pragma once

#include <cstdint>
#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace labelwood {

struct Half {
    uint16_t bits;
};

// Always inlined: the files of simd/ compile this for newer instruction sets, and a copy of theirs must not
// be linked into code for older machines.
[[gnu::always_inline]] inline float widen(float value) {
    return value;
}
[[gnu::always_inline]] inline float widen(Half half) {
#if defined(__F16C__)
    return _cvtsh_ss(half.bits);
#else
    uint32_t bits = static_cast<uint32_t>(half.bits & 0x7fffu) << 13;
    float value;
    __builtin_memcpy(&value, &bits, 4);
    value *= 0x1.0p112f;  // changes the exponent's bias from 15 to 127, also of subnormals
    __builtin_memcpy(&bits, &value, 4);
    bits |= static_cast<uint32_t>(half.bits & 0x8000u) << 16;
    __builtin_memcpy(&value, &bits, 4);
    return value;
#endif
}

}  // namespace labelwood
