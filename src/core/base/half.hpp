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

inline void narrow(float value, float& to) {
    to = value;
}
// The nearest half, of two equally near ones the even one; numbers too large become infinite. NaN stays NaN.
inline void narrow(float value, Half& to) {
    uint32_t bits;
    __builtin_memcpy(&bits, &value, 4);
    const uint32_t sign = (bits >> 16) & 0x8000u;
    bits &= 0x7fffffffu;
    uint32_t half;
    if (bits > 0x7f800000u) {
        half = 0x7e00u;
    } else if (bits >= 0x477ff000u) {  // 65520, from which rounding gives 65536
        half = 0x7c00u;
    } else if (bits >= 0x38800000u) {  // 2^-14, the smallest normal half
        half = (bits + 0x0fffu + ((bits >> 13) & 1u) - 0x38000000u) >> 13;
    } else {  // a float of at least 0.5 has a last bit of 2^-24, as a subnormal half has
        float shifted;
        __builtin_memcpy(&shifted, &bits, 4);
        shifted += 0.5f;
        __builtin_memcpy(&half, &shifted, 4);
        half -= 0x3f000000u;
    }
    to.bits = static_cast<uint16_t>(sign | half);
}

}  // namespace labelwood
