// UTF-8, properties of code points, and lower case. Input is valid UTF-8; a lone surrogate may occur as three
// bytes, as Python's "surrogatepass" writes it.
#pragma once

#include <cstdint>
#include <cstring>

#include "base/span.hpp"
#include "text/unicode_tables.hpp"

namespace labelwood::text {

enum UnicodeFlag : uint8_t { kWord = 1, kSpace = 2, kCased = 4, kLookedThrough = 8 };

inline constexpr uint32_t kCapitalSigma = 0x3A3, kSmallSigma = 0x3C3, kFinalSigma = 0x3C2;
inline constexpr uint32_t kDottedCapitalI = 0x130, kCombiningDot = 0x307;

// The kind of every code point, one byte each, expanded from the runs at first use.
inline const uint8_t* unicode_kinds() {
    static const Vector<uint8_t> kinds = [] {
        Vector<uint8_t> spread;
        spread.reserve(0x110000);
        for (const UnicodeRun& run : kUnicodeRuns) {
            for (uint32_t i = 0; i < run.size; ++i) spread.push_back(i % 2 == 0 ? run.kind : run.other);
        }
        return spread;
    }();
    return kinds.data();
}

class Unicode {
  public:
    uint8_t flags(uint32_t code) const { return kUnicodeKinds[kinds_[code]].flags; }
    uint32_t lower(uint32_t code) const { return code + static_cast<uint32_t>(kUnicodeKinds[kinds_[code]].to_lower); }

  private:
    const uint8_t* kinds_ = unicode_kinds();
};

// Reads one code point and moves past it.
inline uint32_t decode(const char*& at) {
    const auto byte = [&](int i) { return static_cast<uint32_t>(static_cast<uint8_t>(at[i])); };
    const uint32_t first = byte(0);
    uint32_t code = first;
    int size = 1;
    if (first >= 0xF0) {
        code = (first & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F);
        size = 4;
    } else if (first >= 0xE0) {
        code = (first & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
        size = 3;
    } else if (first >= 0xC0) {
        code = (first & 0x1F) << 6 | (byte(1) & 0x3F);
        size = 2;
    }
    at += size;
    return code;
}

// Moves back by one code point and reads it.
inline uint32_t decode_before(const char*& at) {
    do --at;
    while ((static_cast<uint8_t>(*at) & 0xC0) == 0x80);
    const char* from = at;
    return decode(from);
}

// Writes one code point and moves past it; at most four bytes.
inline void encode(uint32_t code, char*& to) {
    const auto put = [&](uint32_t byte) { *to++ = static_cast<char>(byte); };
    if (code < 0x80) {
        put(code);
    } else if (code < 0x800) {
        put(0xC0 | code >> 6);
        put(0x80 | (code & 0x3F));
    } else if (code < 0x10000) {
        put(0xE0 | code >> 12);
        put(0x80 | (code >> 6 & 0x3F));
        put(0x80 | (code & 0x3F));
    } else {
        put(0xF0 | code >> 18);
        put(0x80 | (code >> 12 & 0x3F));
        put(0x80 | (code >> 6 & 0x3F));
        put(0x80 | (code & 0x3F));
    }
}

// The lower case of the capital sigma at [at, after): a final sigma if a cased letter comes before it and
// none after it. Marks and apostrophes are skipped.
inline uint32_t lower_sigma(const Unicode& unicode, const char* begin, const char* at, const char* after,
                            const char* end) {
    uint8_t flags = kLookedThrough;
    while (at > begin && (flags & kLookedThrough)) flags = unicode.flags(decode_before(at));
    if (!(flags & kCased)) return kSmallSigma;
    flags = kLookedThrough;
    while (after < end && (flags & kLookedThrough)) flags = unicode.flags(decode(after));
    return flags & kCased ? kSmallSigma : kFinalSigma;
}

// An upper bound of the bytes of a lower-cased text: U+023A and U+0130 grow from two bytes to three.
inline int64_t lowered_bound(int64_t size) {
    return size + size / 2 + 4;
}

inline char lower_ascii(char byte) {
    return static_cast<char>(byte | (static_cast<uint8_t>(byte - 'A') < 26 ? 0x20 : 0));
}

// Writes the lower case of a text, as Python's str.lower does; returns its end.
inline char* lower_text(const Unicode& unicode, const char* text, int64_t size, char* to) {
    constexpr int64_t kBlock = 32;  // ASCII bytes that are tested and lowered together
    const char* const end = text + size;
    for (const char* at = text; at < end;) {
        while (end - at >= kBlock) {
            char block[kBlock];  // a copy, so that the compiler sees that reads and writes do not alias
            std::memcpy(block, at, kBlock);
            uint8_t any = 0;
            for (const char byte : block) any |= static_cast<uint8_t>(byte);
            if (any >= 0x80) break;
            for (char& byte : block) byte = lower_ascii(byte);
            std::memcpy(to, block, kBlock);
            at += kBlock;
            to += kBlock;
        }
        for (; at < end && static_cast<uint8_t>(*at) < 0x80; ++at) *to++ = lower_ascii(*at);
        for (; at < end && static_cast<uint8_t>(*at) >= 0x80;) {
            const char* const here = at;
            const uint32_t code = decode(at);
            if (code == kDottedCapitalI) {
                encode('i', to);
                encode(kCombiningDot, to);
            } else if (code == kCapitalSigma) {
                encode(lower_sigma(unicode, text, here, at, end), to);
            } else {
                encode(unicode.lower(code), to);
            }
        }
    }
    return to;
}

}  // namespace labelwood::text
