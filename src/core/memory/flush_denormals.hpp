// Treats denormal numbers as zero while it lives: arithmetic on them is a hundred times slower.
#pragma once

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace labelwood::memory {

class FlushDenormals {
  public:
#if defined(__SSE2__)
    FlushDenormals() : before_(_mm_getcsr()) { _mm_setcsr(before_ | 0x8040u); }
    ~FlushDenormals() { _mm_setcsr(before_); }
    FlushDenormals(const FlushDenormals&) = delete;
    FlushDenormals& operator=(const FlushDenormals&) = delete;

  private:
    unsigned before_;
#endif
};

}  // namespace labelwood::memory
