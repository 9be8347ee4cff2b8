// Vectors that begin on a cache line, and vectors in pages of their own.
#pragma once

#include <cstddef>
#include <new>
#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "base/span.hpp"

namespace labelwood::memory {

// Begins on a cache line, so that a row of 16 floats is in one line instead of two.
template <class T>
struct LineAllocator {
    using value_type = T;
    static constexpr std::align_val_t kLine{64};

    LineAllocator() = default;
    template <class U>
    explicit LineAllocator(const LineAllocator<U>&) {}

    T* allocate(size_t count) { return static_cast<T*>(::operator new(count * sizeof(T), kLine)); }
    void deallocate(T* memory, size_t) { ::operator delete(memory, kLine); }
    friend bool operator==(const LineAllocator&, const LineAllocator&) { return true; }
};

template <class T>
using AlignedVector = Vector<T, LineAllocator<T>>;

// Maps large blocks itself, and unmaps them as soon as they are freed. Other allocators keep freed blocks of
// up to 32 MB, or not, depending on earlier calls: the memory of a training would be unpredictable.
template <class T>
struct OwnPages {
    using value_type = T;
    static constexpr size_t kLarge = size_t{1} << 18;  // bytes

    OwnPages() = default;
    template <class U>
    OwnPages(const OwnPages<U>&) {}

    T* allocate(size_t count) {
#if defined(__linux__)
        if (count * sizeof(T) >= kLarge) {
            void* pages = mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (pages == MAP_FAILED) throw std::bad_alloc();
            return static_cast<T*>(pages);
        }
#endif
        return static_cast<T*>(::operator new(count * sizeof(T)));
    }
    void deallocate(T* data, size_t count) {
#if defined(__linux__)
        if (count * sizeof(T) >= kLarge) {
            munmap(data, count * sizeof(T));
            return;
        }
#endif
        ::operator delete(data);
    }
    friend bool operator==(const OwnPages&, const OwnPages&) { return true; }
};

template <class T>
using OwnVector = Vector<T, OwnPages<T>>;

}  // namespace labelwood::memory
