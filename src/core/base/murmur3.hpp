// MurmurHash3 (x86, 32 bits), block by block. Always inlined, as base/half.hpp is.
#pragma once

#include <cstdint>

namespace labelwood::murmur3 {

[[gnu::always_inline]] inline uint32_t scrambled(uint32_t block) {
    const uint32_t k = block * 0xcc9e2d51u;
    return ((k << 15) | (k >> 17)) * 0x1b873593u;
}

// Four more bytes of the key.
[[gnu::always_inline]] inline uint32_t add(uint32_t hash, uint32_t block) {
    const uint32_t h = hash ^ scrambled(block);
    return ((h << 13) | (h >> 19)) * 5u + 0xe6546b64u;
}

// The hash of a key of `size` bytes whose whole blocks have been added; `rest` holds its last bytes.
[[gnu::always_inline]] inline uint32_t finish(uint32_t hash, uint32_t rest, uint32_t size) {
    hash ^= scrambled(rest);
    hash ^= size;
    hash = (hash ^ (hash >> 16)) * 0x85ebca6bu;
    hash = (hash ^ (hash >> 13)) * 0xc2b2ae35u;
    return hash ^ (hash >> 16);
}

// The hash of a four-byte key.
[[gnu::always_inline]] inline uint32_t of(uint32_t key, uint32_t seed) {
    return finish(add(seed, key), 0, 4);
}

}  // namespace labelwood::murmur3
