// Memory for pieces that are written once, in any order, and given back in any order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>
#if defined(__linux__)
#include <unistd.h>
#endif

#include "memory/allocators.hpp"

namespace labelwood::memory {

// Cuts pieces from large blocks that the system fills with zeros when they are touched. A piece that is given back
// returns its whole pages to the system at once: an allocator would keep the freed pieces until its heap shrinks. The
// blocks themselves end with the pool.
class PagePool {
  public:
    PagePool() = default;
    PagePool(const PagePool&) = delete;
    PagePool& operator=(const PagePool&) = delete;

    // Zeros, aligned for any number. Threads may call this at once.
    char* take(int64_t bytes) {
        const int64_t rounded = (bytes + kAlign - 1) / kAlign * kAlign;
        const std::lock_guard<std::mutex> guard(lock_);
        if (rounded > left_) {
            const int64_t size = std::max(rounded, kBlock);
            blocks_.emplace_back(size);
            next_ = blocks_.back().data;
            left_ = size;
        }
        char* piece = next_;
        next_ += rounded;
        left_ -= rounded;
        return piece;
    }

    // The piece must not be read again.
    static void give_back(char* piece, int64_t bytes) {
#if defined(__linux__)
        static const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
        const auto begin = (reinterpret_cast<uintptr_t>(piece) + page - 1) / page * page;
        const auto end = reinterpret_cast<uintptr_t>(piece + bytes) / page * page;
        if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
#else
        static_cast<void>(piece), static_cast<void>(bytes);
#endif
    }

  private:
    static constexpr int64_t kAlign = 16, kBlock = int64_t{64} << 20;

    struct Block {
        explicit Block(int64_t size) : bytes(static_cast<size_t>(size)), data(OwnPages<char>().allocate(bytes)) {
#if !defined(__linux__)
            std::fill_n(data, bytes, '\0');
#endif
        }
        Block(Block&& other) noexcept : bytes(other.bytes), data(other.data) { other.data = nullptr; }
        Block& operator=(Block&&) = delete;
        ~Block() {
            if (data != nullptr) OwnPages<char>().deallocate(data, bytes);
        }

        size_t bytes;
        char* data;
    };

    std::mutex lock_;
    std::vector<Block> blocks_;
    char* next_ = nullptr;  // the rest of the newest block
    int64_t left_ = 0;
};

}  // namespace labelwood::memory
