// Weights from counts: optional logarithm, scale per column, normalization per row.
#pragma once

#include <cmath>

#include "base/csr.hpp"
#include "base/parallel.hpp"
#include "base/span.hpp"

namespace labelwood::text {

enum class Norm { none, l1, l2 };

struct Weighing {
    bool sublinear;       // 1 + log(count) instead of count
    bool binary;          // 1 instead of count
    const double* scale;  // of each column; may be null
    Norm norm;
};

inline Vector<float> weigh(const int64_t* indptr, const int32_t* indices, const int32_t* counts, int64_t n_rows,
                           const Weighing& how, int n_threads, Monitor& monitor) {
    constexpr int64_t kRows = 256;
    constexpr int32_t kKnownLogs = 256;
    Vector<double> dampened(kKnownLogs);
    for (int32_t count = 1; count < kKnownLogs; ++count) dampened[count] = 1 + std::log(count);
    const auto weight = [&](int32_t count) -> double {
        if (how.binary) return count == 0 ? 0 : 1;
        if (!how.sublinear) return count;
        return count < kKnownLogs ? dampened[count] : 1 + std::log(count);
    };
    Vector<float> data(indptr[n_rows]);
    parallel_for((n_rows + kRows - 1) / kRows, n_threads, monitor, [&](int64_t block, int) {
        Vector<double> row;
        for (int64_t r = block * kRows; r < std::min(n_rows, (block + 1) * kRows); ++r) {
            row.clear();
            double length = 0;
            for (int64_t i = indptr[r]; i < indptr[r + 1]; ++i) {
                const double value = weight(counts[i]) * (how.scale == nullptr ? 1.0 : how.scale[indices[i]]);
                length += how.norm == Norm::l2 ? value * value : std::abs(value);
                row.push_back(value);
            }
            if (how.norm == Norm::l2) length = std::sqrt(length);
            const double divisor = how.norm == Norm::none || length == 0 ? 1.0 : length;
            float* const to = data.data() + indptr[r];
            for (int64_t i = 0; i < row.size(); ++i) to[i] = static_cast<float>(row[i] / divisor);
        }
    });
    return data;
}

}  // namespace labelwood::text
