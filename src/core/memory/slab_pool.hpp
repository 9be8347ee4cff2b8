// The memory of one growing model: pieces of a few sizes, cut from large slabs in huge pages. A piece given
// back waits for the next request of its size. Slabs are freed with the pool.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "memory/huge_pages.hpp"

namespace labelwood::memory {

class SlabPool {
  public:
    SlabPool() = default;
    SlabPool(const SlabPool&) = delete;
    SlabPool& operator=(const SlabPool&) = delete;

    // A piece that begins on a cache line, not cleared. Threads may call take() and give() at once.
    void* take(size_t bytes) {
        bytes = rounded(bytes);
        const std::lock_guard<std::mutex> guard(lock_);
        void*& given = given_[bytes];
        if (given != nullptr) return std::exchange(given, next_of(given));
        if (bytes > left_) add_slab(bytes);
        left_ -= bytes;
        void* piece = next_;
        next_ += bytes;
        return piece;
    }
    // Allocates nothing, so that freeing cannot fail when memory is exhausted.
    void give(void* piece, size_t bytes) {
        const std::lock_guard<std::mutex> guard(lock_);
        void*& given = given_.find(rounded(bytes))->second;
        next_of(piece) = std::exchange(given, piece);
    }

  private:
    static constexpr size_t kLine = 64, kLeast = size_t{64} << 10, kMost = size_t{16} << 20;

    // A free piece holds the address of the next free piece of its size.
    static void*& next_of(void* piece) { return *static_cast<void**>(piece); }
    static size_t rounded(size_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

    // Slabs grow with the model, so that a small model takes little memory.
    void add_slab(size_t bytes) {
        const size_t wanted = std::clamp(total_ / 4, kLeast, kMost);
        const size_t pages = wanted < LargeMemory::kPage ? kLine : LargeMemory::kPage;
        const size_t size = (std::max(wanted, bytes) + pages - 1) / pages * pages;
        slabs_.emplace_back(size);
        total_ += size;
        next_ = static_cast<std::byte*>(slabs_.back().data());
        left_ = size;
    }

    std::mutex lock_;
    std::vector<LargeMemory> slabs_;
    std::unordered_map<size_t, void*> given_;  // the first free piece of every size ever taken
    std::byte* next_ = nullptr;                // the rest of the newest slab
    size_t left_ = 0;
    size_t total_ = 0;
};

}  // namespace labelwood::memory
