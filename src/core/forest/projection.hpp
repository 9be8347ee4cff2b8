// Random projections of sparse rows. No matrix is stored: a coefficient is a function of seed and column.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/csr.hpp"
#include "base/rng.hpp"
#include "base/span.hpp"
#include "simd/forest/router.hpp"

namespace labelwood::forest {

enum class ProjectionKind : int { kNone = 0, kHash = 1, kGaussian = 2 };

// A standard normal number, a function of (seed, row, column).
inline float gaussian(int32_t row, int32_t column, uint32_t seed) {
    const uint64_t cell = (static_cast<uint64_t>(static_cast<uint32_t>(row)) << 32) | static_cast<uint32_t>(column);
    const uint64_t bits = mix64(mix64(seed) ^ mix64(cell));
    const double u = static_cast<double>((bits >> 40) + 1) * 0x1.0p-24;
    const double v = static_cast<double>(bits & 0xffffffu) * 0x1.0p-24;
    return static_cast<float>(standard_normal(u, v));
}

// Projects rows, one seed at a time. Columns of the result are unsorted and may repeat. Dot products and
// scatter-adds do not mind, and sorting or merging costs 5 times as much as hashing.
class Projector {
  public:
    Projector(ProjectionKind kind, int64_t n_input, int32_t n_columns)
        : kind_(kind), n_columns_(kind == ProjectionKind::kNone ? static_cast<int32_t>(n_input) : n_columns) {
        if (kind == ProjectionKind::kGaussian) known_.assign(n_input, 0);
    }

    int32_t n_columns() const { return n_columns_; }
    // Number of entries of a projected row, from its number of entries before.
    int64_t width(int64_t count) const { return kind_ == ProjectionKind::kGaussian ? n_columns_ : count; }

    // Writes width(row.count) entries.
    void project(const Query& row, uint32_t seed, int32_t* columns, float* values) {
        if (kind_ == ProjectionKind::kGaussian) return project_densely(row, seed, columns, values);
        if (kind_ == ProjectionKind::kHash) {
            // The hashing trick: each input column has one coefficient, +1 or -1.
            simd::forest().hash_columns(row.columns, row.values, row.count, seed, static_cast<uint32_t>(n_columns_),
                                        columns, values);
            return;
        }
        std::copy_n(row.columns, row.count, columns);
        std::copy_n(row.values, row.count, values);
    }

  private:
    // Rows of the matrix are generated at first use and kept until the seed changes.
    void project_densely(const Query& row, uint32_t seed, int32_t* columns, float* values) {
        const int64_t width = n_columns_;
        if (matrix_.empty()) matrix_.resize(known_.size() * width);
        if (seed != seed_) known_.assign(known_.size(), 0);
        seed_ = seed;
        for (int32_t c = 0; c < n_columns_; ++c) {
            columns[c] = c;
            values[c] = 0.0f;
        }
        for (int64_t j = 0; j < row.count; ++j) {
            const int64_t column = row.columns[j];
            float* coefficients = matrix_.data() + column * width;
            if (known_[column] == 0) {
                known_[column] = 1;
                for (int32_t c = 0; c < n_columns_; ++c) coefficients[c] = gaussian(row.columns[j], c, seed);
            }
            for (int64_t c = 0; c < width; ++c) values[c] += row.values[j] * coefficients[c];
        }
    }

    ProjectionKind kind_;
    int32_t n_columns_;
    uint32_t seed_ = 0;
    Vector<uint8_t> known_;
    Vector<float> matrix_;
};

}  // namespace labelwood::forest
