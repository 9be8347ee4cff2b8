// Random numbers: a stream depends on its seed and its purpose, never on threads or time.
#pragma once

#include <cmath>
#include <cstdint>

namespace labelwood {

// splitmix64, a hash of a counter: a random number is a function of its key alone.
inline uint64_t mix64(uint64_t x) {
    x += 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}

// A standard normal number from two uniform ones, u in (0, 1] and v in [0, 1) (Box and Muller).
inline double standard_normal(double u, double v) {
    return std::sqrt(-2.0 * std::log(u)) * std::cos(6.283185307179586 * v);
}

// The generator of every kernel. A task makes its own from (seed, stream).
class Rng {
  public:
    explicit Rng(uint64_t seed, uint64_t stream = 0) : state_(mix64(seed ^ mix64(stream))) {}

    uint64_t next() { return mix64(state_ += 0x9e3779b97f4a7c15ULL); }

    // Uniform on [0, bound) by multiply-shift; the bias is below 2^-32 for the sizes used here.
    uint32_t below(uint32_t bound) {
        return static_cast<uint32_t>(((next() >> 32) * static_cast<uint64_t>(bound)) >> 32);
    }

    // Uniform on [0, 1) with 53 random bits.
    double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

    template <class T>
    void shuffle(T* items, int64_t count) {
        for (int64_t i = count - 1; i > 0; --i) {
            const auto j = static_cast<int64_t>(below(static_cast<uint32_t>(i + 1)));
            const T held = items[i];
            items[i] = items[j];
            items[j] = held;
        }
    }

  private:
    uint64_t state_;
};

}  // namespace labelwood
