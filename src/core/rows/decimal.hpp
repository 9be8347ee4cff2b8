// Decimal text to float32, correctly rounded: a short exact path for most numbers, std::from_chars for the
// rest.
#pragma once

#include <bit>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <system_error>

namespace labelwood::rows {

enum class Decimal { good, malformed, not_finite, huge };

inline bool is_digit(char c) {
    return static_cast<unsigned char>(c - '0') <= 9;
}

inline constexpr int64_t kWide = 16;  // bytes past a token's start that the wide readers may look at
inline constexpr double kPowersOfTen[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8, 1e9,
                                          1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18};

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
    value = static_cast<float>(static_cast<double>(whole * scales[count] + decimals) / kPowersOfTen[count]);
    at += 2 + count;
    return true;
}

// Reads the number at `at`, moves `at` past it and returns true. Returns false and leaves `at` if this path
// cannot guarantee the rounding. A character that is in no number must follow (the caller's sentinel).
//
// It reads up to 18 digits without exponent. digits / 10^k in double has one rounding, since both are exact
// below 2^53 and 10^22. Narrowing to float rounds as the true value would, unless the double is the midpoint
// of two floats (its low 29 bits are 1 and zeros): the division may have rounded to the midpoint.
inline bool read_short_decimal(const char*& at, float& value) {
    const char* p = at;
    const bool negative = *p == '-';
    p += (negative || *p == '+') ? 1 : 0;
    uint64_t digits = 0;
    const char* first = p;
    while (is_digit(*p)) digits = digits * 10 + static_cast<uint64_t>(*p++ - '0');
    int64_t n_digits = p - first;
    int64_t n_decimals = 0;
    if (*p == '.') {
        const char* decimals = ++p;
        while (is_digit(*p)) digits = digits * 10 + static_cast<uint64_t>(*p++ - '0');
        n_decimals = p - decimals;
        n_digits += n_decimals;
    }
    if (n_digits == 0 || n_digits > 18 || digits > (uint64_t{1} << 53) || *p == 'e' || *p == 'E') return false;
    double number = static_cast<double>(digits);
    if (n_decimals > 0) number /= kPowersOfTen[n_decimals];
    if ((std::bit_cast<uint64_t>(number) & 0x1fffffffU) == 0x10000000U) return false;
    const auto rounded = static_cast<float>(number);
    value = negative ? -rounded : rounded;
    at = p;
    return true;
}

namespace detail {

inline bool spells(const char* p, const char* end, const char* word) {
    for (; *word != '\0'; ++word, ++p) {
        if (p == end || (*p | 0x20) != *word) return false;
    }
    return p == end;
}

}  // namespace detail

// Reads a decimal number that fills [p, end): optional sign, digits with an optional point, optional
// exponent. A number too small for float32 is zero; one too large, "nan" and "inf" have verdicts of their
// own.
inline Decimal read_decimal(const char* p, const char* end, float& value) {
    const bool negative = p != end && *p == '-';
    if (p != end && (*p == '-' || *p == '+')) ++p;
    if (detail::spells(p, end, "nan") || detail::spells(p, end, "inf") || detail::spells(p, end, "infinity")) {
        return Decimal::not_finite;
    }
    const char* begin = p;
    int64_t magnitude = 0;  // the power of ten just above the number: 12.5 is below 10^2, 0.05 below 10^-1
    bool any = false, nonzero = false;
    for (; p != end && is_digit(*p); ++p) {
        any = true;
        nonzero = nonzero || *p != '0';
        if (nonzero) ++magnitude;
    }
    if (p != end && *p == '.') {
        for (++p; p != end && is_digit(*p); ++p) {
            any = true;
            nonzero = nonzero || *p != '0';
            if (!nonzero) --magnitude;
        }
    }
    if (!any) return Decimal::malformed;
    if (p != end && (*p == 'e' || *p == 'E')) {
        ++p;
        const bool shrinks = p != end && *p == '-';
        if (p != end && (*p == '-' || *p == '+')) ++p;
        if (p == end) return Decimal::malformed;
        int64_t exponent = 0;
        for (; p != end && is_digit(*p); ++p) {
            if (exponent < (int64_t{1} << 50)) exponent = exponent * 10 + (*p - '0');
        }
        magnitude += shrinks ? -exponent : exponent;
    }
    if (p != end) return Decimal::malformed;
    float parsed = 0.0F;
    if (nonzero) {
        const auto [stop, error] = std::from_chars(begin, end, parsed);
        if (error == std::errc::result_out_of_range) {
            if (magnitude > 0) return Decimal::huge;
            parsed = 0.0F;
        } else if (error != std::errc() || stop != end) {
            return Decimal::malformed;
        }
    }
    value = negative ? -parsed : parsed;
    return Decimal::good;
}

}  // namespace labelwood::rows
