// Treats denormal numbers as zero while it lives: arithmetic on them is a hundred times slower.
#pragma once

#include <cstdint>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace labelwood::memory {

class FlushDenormals {
  public:
    FlushDenormals() : before_(mode()) { set_mode(before_ | kFlush); }
    ~FlushDenormals() { set_mode(before_); }
    FlushDenormals(const FlushDenormals&) = delete;
    FlushDenormals& operator=(const FlushDenormals&) = delete;

  private:
#if defined(__SSE2__)
    using Mode = uint32_t;
    static constexpr Mode kFlush = 0x8040;  // operands and results
    static Mode mode() { return _mm_getcsr(); }
    static void set_mode(Mode value) { _mm_setcsr(value); }
#elif defined(__aarch64__)
    using Mode = uint64_t;
    static constexpr Mode kFlush = uint64_t{1} << 24;  // operands and results
    static Mode mode() {
        Mode value;
        asm volatile("mrs %0, fpcr" : "=r"(value));
        return value;
    }
    static void set_mode(Mode value) { asm volatile("msr fpcr, %0" : : "r"(value) : "memory"); }
#else
    using Mode = int;
    static constexpr Mode kFlush = 0;
    static Mode mode() { return 0; }
    static void set_mode(Mode) {}
#endif

    Mode before_;
};

}  // namespace labelwood::memory
