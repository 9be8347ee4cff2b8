// Decimal text to float32, correctly rounded: a short exact path for most numbers, std::from_chars for the
// rest.
#pragma once

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <system_error>

#include "base/compiler.hpp"

namespace labelwood::rows {

enum class Decimal { good, malformed, not_finite, huge };

inline bool is_digit(char c) {
    return static_cast<unsigned char>(c - '0') <= 9;
}

inline constexpr int64_t kWide = 16;  // bytes past a token's start that the wide readers may look at

// The digits at p, eight bytes at once. A loop over digits would mispredict its end, which takes half of the
// time of reading a file. `count` is the number of leading digits; if it is 8, more may follow.
inline uint64_t read_digits(const char* p, int& count) {
    static_assert(std::endian::native == std::endian::little, "the first character must be the lowest byte");
    uint64_t bytes;
    std::memcpy(&bytes, p, sizeof bytes);
    bytes ^= 0x3030303030303030U;  // digits become 0..9; other bytes get bit 7 below
    const uint64_t others = (((bytes & 0x7f7f7f7f7f7f7f7fU) + 0x7676767676767676U) | bytes) & 0x8080808080808080U;
    count = std::countr_zero(others) / 8;
    if (count == 0) return 0;
    bytes <<= 64 - 8 * count;           // leading zeros
    bytes = bytes * 10 + (bytes >> 8);  // pairs of digits in every second byte, then fours, then eight
    return (((bytes & 0x000000ff000000ffU) * 0x000f424000000064U) +
            (((bytes >> 16) & 0x000000ff000000ffU) * 0x0000271000000001U)) >>
           32;
}

// Reads `d` or `d.ddd` with up to 7 decimals with two wide loads; nearly all values have this form. Otherwise
// returns false and leaves `at`. The quotient of two exact numbers is rounded once. Narrowing it rounds as
// the true value would: a value D/10^k, k <= 7, that is not itself the midpoint M*2^q (M < 2^25) of two
// floats differs from it by at least 1/(M*10^k) > 2^-49 of its size, so the double (within 2^-53) is on the
// same side.
inline bool read_tiny_decimal(const char*& at, float& value) {
    if (!is_digit(at[0])) return false;
    const auto whole = static_cast<uint64_t>(at[0] - '0');
    if (at[1] != '.') {
        if (is_digit(at[1]) || at[1] == 'e' || at[1] == 'E') return false;
        value = static_cast<float>(whole);
        at += 1;
        return true;
    }
    static constexpr uint64_t scales[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000};
    int count = 0;
    const uint64_t decimals = read_digits(at + 2, count);
    if (count == 8 || at[2 + count] == 'e' || at[2 + count] == 'E') return false;
    value =
        static_cast<float>(static_cast<double>(whole * scales[count] + decimals) / static_cast<double>(scales[count]));
    at += 2 + count;
    return true;
}

// Reads the finite number that [at, end) begins with and moves `at` past it; otherwise returns false and
// leaves `at`.
inline bool read_plain_decimal(const char*& at, const char* end, float& value) {
    const auto [stop, error] = std::from_chars(at, end, value);
    if (error != std::errc() || !std::isfinite(value)) return false;
    at = stop;
    return true;
}

// Reads a decimal number that fills [p, end): optional sign, digits with an optional point, optional
// exponent. A number too small for float32 is zero; one too large, "nan" and "inf" have verdicts of their
// own.
inline Decimal read_decimal(const char* p, const char* end, float& value) {
    const bool negative = p != end && *p == '-';
    if (p != end && (*p == '-' || *p == '+')) ++p;
    if (p == end || *p == '-' || end[-1] == ')') return Decimal::malformed;  // from_chars reads "-1" and "nan(1)"
    float parsed = 0.0F;
    const auto [stop, error] = std::from_chars(p, end, parsed);
    if (stop != end || error == std::errc::invalid_argument) return Decimal::malformed;
    if (error == std::errc::result_out_of_range) {
        // The power of ten just above the number: 12.5 is below 10^2, 0.05 below 10^-1.
        const char* mantissa_end = std::find_if(p, end, [](char c) { return (c | 0x20) == 'e'; });
        const char* point = std::find(p, mantissa_end, '.');
        const char* leading = std::find_if(p, mantissa_end, [](char c) { return c >= '1' && c <= '9'; });
        int64_t power = leading < point ? point - leading : point + 1 - leading;
        if (mantissa_end != end) {
            const char* exponent = mantissa_end + (mantissa_end[1] == '+' ? 2 : 1);
            int64_t written = *exponent == '-' ? INT64_MIN / 2 : INT64_MAX / 2;  // unless it can be read
            std::from_chars(exponent, end, written);
            power += std::clamp<int64_t>(written, INT64_MIN / 2, INT64_MAX / 2);
        }
        if (power > 0) return Decimal::huge;
        parsed = 0.0F;
    }
    if (!std::isfinite(parsed)) return Decimal::not_finite;
    value = negative ? -parsed : parsed;
    return Decimal::good;
}

}  // namespace labelwood::rows
