// Memory in huge pages, for data that is read at random.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>
#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "base/span.hpp"

namespace labelwood::memory {

// A block that never moves. Linux is asked for pages of 2 MB: with pages of 4 KB nearly every random access
// to a large block walks the page tables.
class LargeMemory {
  public:
    static constexpr size_t kPage = size_t{2} << 20;

    explicit LargeMemory(size_t bytes) : align_{bytes >= kPage ? kPage : kLine} {
        data_ = ::operator new(bytes, align_);
#if defined(__linux__)
        if (bytes >= kPage) madvise(data_, bytes, MADV_HUGEPAGE);
#endif
    }
    ~LargeMemory() { ::operator delete(data_, align_); }
    LargeMemory(LargeMemory&& other) noexcept : align_(other.align_), data_(std::exchange(other.data_, nullptr)) {}
    LargeMemory(const LargeMemory&) = delete;
    LargeMemory& operator=(const LargeMemory&) = delete;

    void* data() const { return data_; }

  private:
    static constexpr size_t kLine = 64;

    std::align_val_t align_;
    void* data_;
};

// An array of zeros in huge pages.
template <class T>
class ZeroArray {
  public:
    explicit ZeroArray(int64_t count) : memory_(static_cast<size_t>(count) * sizeof(T)) {
        std::memset(memory_.data(), 0, static_cast<size_t>(count) * sizeof(T));
    }

    T* data() { return static_cast<T*>(memory_.data()); }
    const T* data() const { return static_cast<const T*>(memory_.data()); }

  private:
    LargeMemory memory_;
};

// A copy of an array in huge pages.
template <class T>
class LargeCopy {
  public:
    explicit LargeCopy(Span<const T> from) : memory_(static_cast<size_t>(from.size()) * sizeof(T)) {
        std::copy(from.begin(), from.end(), static_cast<T*>(memory_.data()));
    }

    const T* data() const { return static_cast<const T*>(memory_.data()); }

  private:
    LargeMemory memory_;
};

}  // namespace labelwood::memory
