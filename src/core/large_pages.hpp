// Memory that is read all over, a few bytes at a time.
#pragma once

#include <cstddef>
#include <cstring>
#include <new>
#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace labelwood {

// An array of zeros that is never moved. With pages of 4 KB nearly every access to a large one costs a walk
// through the page tables; Linux is asked for pages of 2 MB.
template <class T>
class ZeroArray {
  public:
    explicit ZeroArray(size_t count) {
        const bool large = count * sizeof(T) >= kPage;
        align_ = std::align_val_t{large ? kPage : kLine};
        data_ = static_cast<T*>(::operator new(count * sizeof(T), align_));
#if defined(__linux__)
        if (large) madvise(data_, count * sizeof(T), MADV_HUGEPAGE);
#endif
        std::memset(static_cast<void*>(data_), 0, count * sizeof(T));
    }
    ~ZeroArray() { ::operator delete(data_, align_); }
    ZeroArray(const ZeroArray&) = delete;
    ZeroArray& operator=(const ZeroArray&) = delete;

    T* data() { return data_; }
    const T* data() const { return data_; }

  private:
    static constexpr size_t kPage = size_t{2} << 20, kLine = 64;

    std::align_val_t align_;
    T* data_;
};

}  // namespace labelwood
