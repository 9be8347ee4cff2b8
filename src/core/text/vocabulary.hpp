// Maps strings to ids 0, 1, 2, ... in order of first occurrence. Open addressing; strings are in one arena.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <stdexcept>

#include "base/csr.hpp"
#include "base/span.hpp"
#include "text/count_rows.hpp"

namespace labelwood::text {

inline constexpr int64_t kMaxTerms = (int64_t{1} << 31) - 2;

// The first eight bytes of a string, padded with zeros. Eight bytes must be readable.
inline uint64_t head_of(const char* text, int64_t size) {
    uint64_t head = 0;
    std::memcpy(&head, text, 8);
    if constexpr (std::endian::native == std::endian::big) head = __builtin_bswap64(head);
    return size >= 8 ? head : head & ((uint64_t{1} << (8 * size)) - 1);
}

// The last eight bytes of a string; 0 if it is shorter.
inline uint64_t tail_of(const char* text, int64_t size) {
    return size >= 8 ? head_of(text + size - 8, 8) : 0;
}

// A hash of a nonempty string. Up to eight bytes past its end are read.
inline uint64_t hash_string(const char* text, int64_t size) {
    uint64_t hash = static_cast<uint64_t>(size) * 0x9e3779b97f4a7c15ULL;
    for (; size > 8; text += 8, size -= 8) {
        hash = (hash ^ head_of(text, 8)) * 0xbf58476d1ce4e5b9ULL;
        hash ^= hash >> 32;
    }
    hash = (hash ^ head_of(text, size)) * 0x94d049bb133111ebULL;
    return hash ^ hash >> 29;
}

// A hash table of (part of the hash, id + 1), with a power of two of slots; 0 is a free slot. It holds no
// strings, so it is a plain array of u64.
inline uint64_t slot_of(uint64_t hash, uint32_t id) {
    return (hash & 0xFFFFFFFF00000000ULL) | (id + 1);
}

template <class Same>
inline int64_t find_slot(const uint64_t* slots, uint64_t mask, uint64_t hash, Same&& same) {
    uint64_t at = hash & mask;
    for (; slots[at] != 0; at = (at + 1) & mask) {
        if ((slots[at] ^ hash) >> 32 == 0 && same(static_cast<uint32_t>(slots[at]) - 1)) break;
    }
    return static_cast<int64_t>(at);
}

inline int64_t table_size(int64_t count) {
    return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(2 * count, 16))));
}

// A string, without counts.
struct Word {
    uint64_t head, tail;  // with the size, these identify strings of up to sixteen bytes
    int64_t offset;       // in the arena
    int32_t size;
    int32_t n_documents;  // of a Term only

    void add(const Word&) {}
};

// A string with counts.
struct Term : Word {
    int64_t total = 0;  // occurrences
    Seen seen{};

    // Adds the counts of another part of the documents.
    void add(const Term& other) {
        n_documents += other.n_documents;
        total += other.total;
    }
};

template <class Item>
class VocabularyOf {
  public:
    VocabularyOf() : slots_(table_size(1 << 12)) {}

    // The id of a string, added if new; `hash` is its hash_string.
    uint32_t intern(const char* text, int64_t size, uint64_t hash) {
        const uint64_t head = head_of(text, size), tail = tail_of(text, size);
        const int64_t at = find_slot(slots_.data(), mask(), hash, [&](uint32_t id) {
            const Word& term = terms_[id];
            return term.head == head && term.tail == tail && term.size == size &&
                   (size <= 16 || std::memcmp(arena_.data() + term.offset, text, static_cast<size_t>(size)) == 0);
        });
        const uint64_t slot = slots_[at];
        if (slot != 0) return static_cast<uint32_t>(slot) - 1;
        return add(text, size, hash, at);
    }

    // Prefetch the slot of a hash; later, prefetch the term in that slot.
    void fetch_slot(uint64_t hash) const { __builtin_prefetch(slots_.data() + (hash & mask())); }
    void fetch_term(uint64_t hash) const {
        const auto id = static_cast<uint32_t>(slots_[static_cast<int64_t>(hash & mask())]);
        __builtin_prefetch(terms_.data() + id - (id > 0));
    }

    Item& operator[](uint32_t id) { return terms_[id]; }
    const Item& operator[](uint32_t id) const { return terms_[id]; }
    uint32_t size() const { return static_cast<uint32_t>(terms_.size()); }
    const char* text(const Word& term) const { return arena_.data() + term.offset; }

    // True if one string sorts before another, by bytes, which is also the order of code points.
    bool before(uint32_t one, uint32_t other) const {
        const Word &a = terms_[one], &b = terms_[other];
        if (a.head != b.head) return __builtin_bswap64(a.head) < __builtin_bswap64(b.head);
        const int order = std::memcmp(text(a), text(b), static_cast<size_t>(std::min(a.size, b.size)));
        return order != 0 ? order < 0 : a.size < b.size;
    }

    void release_table() { Vector<uint64_t>().swap(slots_); }

  private:
    uint32_t add(const char* text, int64_t size, uint64_t hash, int64_t at) {
        if (terms_.size() >= kMaxTerms) throw std::length_error("too many terms");
        const uint32_t id = this->size();
        const int64_t offset = arena_.size();
        Word& added = terms_.emplace_back();
        added = {head_of(text, size), tail_of(text, size), offset, static_cast<int32_t>(size), 0};
        arena_.insert(arena_.end(), text, text + size);
        slots_[at] = slot_of(hash, id);
        if (2 * terms_.size() > slots_.size()) grow();
        return id;
    }

    void grow() {
        Vector<uint64_t> wider(slots_.size() * 4);
        arena_.resize(arena_.size() + 8);  // hashing reads past the end of a string
        for (uint32_t id = 0; id < terms_.size(); ++id) {
            const uint64_t hash = hash_string(text(terms_[id]), terms_[id].size);
            wider[find_slot(wider.data(), static_cast<uint64_t>(wider.size() - 1), hash,
                            [](uint32_t) { return false; })] = slot_of(hash, id);
        }
        arena_.resize(arena_.size() - 8);
        slots_.swap(wider);
    }

    uint64_t mask() const { return static_cast<uint64_t>(slots_.size() - 1); }

    Vector<uint64_t> slots_;
    Vector<Item> terms_;
    Vector<char> arena_;
};

using Vocabulary = VocabularyOf<Term>;
using WordList = VocabularyOf<Word>;

}  // namespace labelwood::text
