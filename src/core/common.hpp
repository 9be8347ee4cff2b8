// Plain views and small helpers that every kernel shares.
#pragma once

#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace labelwood {

// A compressed sparse row matrix that someone else owns. Validated in Python: indptr rises from 0 to nnz,
// indices of a row are strictly increasing and lie in [0, n_cols).
struct Csr {
    const int64_t* indptr;
    const int32_t* indices;
    const float* data;  // may be null for a pattern matrix (labels)
    int64_t n_rows;
    int64_t n_cols;

    int64_t nnz() const { return indptr[n_rows]; }
    int64_t row_nnz(int64_t row) const { return indptr[row + 1] - indptr[row]; }
};

// The same matrix, owned.
struct OwnedCsr {
    std::vector<int64_t> indptr{0};
    std::vector<int32_t> indices;
    std::vector<float> data;
    int64_t n_cols = 0;

    int64_t n_rows() const { return static_cast<int64_t>(indptr.size()) - 1; }
    Csr view() const { return {indptr.data(), indices.data(), data.data(), n_rows(), n_cols}; }
};

// What scales a vector of this squared length to unit length. Of a vector so short that the factor would not
// be a float32, nothing is left.
inline float unit_factor(double square) {
    return square > 1e-76 ? static_cast<float>(1.0 / std::sqrt(square)) : 0.0f;
}

// splitmix64: a counter-based mix, so that a stream of random numbers is a function of its key alone.
inline uint64_t mix64(uint64_t x) {
    x += 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}

// The generator of every kernel; seeded by (seed, what it is for) and never shared between tasks.
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
