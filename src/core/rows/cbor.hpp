// The items of a CBOR document (RFC 8949) as flat tokens, in the order of the file. A tree of millions of
// numbers is then read by slices of arrays instead of by a call per number.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/span.hpp"

namespace labelwood::rows {

enum class CborKind : uint8_t { number, text, array, map };

// The value of a number is itself; of an array or a map, its count of items or pairs; of a text,
// 256 * (offset of its first byte) + (its length, below 256).
struct CborTokens {
    Vector<uint8_t> kinds;
    Vector<double> values;
    int64_t bad = -1;  // offset of the first item that is damaged or of a kind that no model has
};

namespace detail {

inline double half_to_double(uint64_t bits) {
    const auto exponent = static_cast<int>((bits >> 10) & 31);
    const auto mantissa = static_cast<double>(bits & 1023);
    const double size = exponent == 0     ? std::ldexp(mantissa, -24)
                        : exponent < 31   ? std::ldexp(mantissa + 1024.0, exponent - 25)
                        : mantissa == 0.0 ? std::numeric_limits<double>::infinity()
                                          : std::numeric_limits<double>::quiet_NaN();
    return (bits >> 15) != 0 ? -size : size;
}

}  // namespace detail

inline CborTokens cbor_tokens(Span<const uint8_t> bytes) {
    CborTokens tokens;
    const int64_t size = bytes.size();
    for (int64_t at = 0; at < size;) {
        const int64_t head = at;
        const int major = bytes[at] >> 5, more = bytes[at] & 31;
        ++at;
        const int64_t width = more < 24 ? 0 : more < 28 ? int64_t{1} << (more - 24) : -1;
        if (width < 0 || width > size - at) {  // 28 to 31: reserved, or of indefinite length
            tokens.bad = head;
            return tokens;
        }
        uint64_t argument = width == 0 ? static_cast<uint64_t>(more) : 0;
        for (int64_t i = 0; i < width; ++i) argument = (argument << 8) | bytes[at++];
        auto kind = CborKind::number;
        auto value = static_cast<double>(argument);
        bool good = true;
        if (major == 1) {
            value = -1.0 - value;
        } else if (major == 3) {
            kind = CborKind::text;
            good = argument < 256 && static_cast<int64_t>(argument) <= size - at;
            value = static_cast<double>(at) * 256.0 + value;
            if (good) at += static_cast<int64_t>(argument);
        } else if (major == 4 || major == 5) {
            kind = major == 4 ? CborKind::array : CborKind::map;
            good = argument <= static_cast<uint64_t>(size);  // each item takes a byte at least
        } else if (major == 7 && width == 2) {
            value = detail::half_to_double(argument);
        } else if (major == 7 && width == 4) {
            value = static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(argument)));
        } else if (major == 7 && width == 8) {
            value = std::bit_cast<double>(argument);
        } else if (major != 0) {
            good = false;  // byte strings, tags, booleans, null
        }
        if (!good) {
            tokens.bad = head;
            return tokens;
        }
        tokens.kinds.push_back(static_cast<uint8_t>(kind));
        tokens.values.push_back(value);
    }
    return tokens;
}

}  // namespace labelwood::rows
