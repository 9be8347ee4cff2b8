// Dot products of rows with packed vectors, whose ids and values have narrow types.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/csr.hpp"
#include "base/half.hpp"
#include "simd/forest/router.hpp"

namespace labelwood::forest {

// The kernels for each pair of types.
inline const auto& packed_kernels(const uint16_t*, const Half*) {
    return simd::forest().u16_f16;
}
inline const auto& packed_kernels(const uint16_t*, const float*) {
    return simd::forest().u16_f32;
}
inline const auto& packed_kernels(const int32_t*, const Half*) {
    return simd::forest().i32_f16;
}
inline const auto& packed_kernels(const int32_t*, const float*) {
    return simd::forest().i32_f32;
}
// Rough costs in nanoseconds: gathering an element; searching for a column.
constexpr double kGather = 0.3, kFind = 12.0;

// True if searching a vector for the columns of a row is cheaper than gathering.
inline bool is_searched(int64_t length, int64_t row_count) {
    return kGather * static_cast<double>(length) > kFind * static_cast<double>(row_count);
}

// Dot product by binary search: finds the columns of a row among ascending ids, `length` of them and at least one. The
// ids are in cold memory, so several columns are searched for in step.
template <class Id, class Value>
double find_dot(const Query& row, const Id* ids, const Value* values, int64_t length) {
    constexpr int64_t kAtOnce = 8;
    double sum = 0.0;
    for (int64_t from = 0; from < row.count; from += kAtOnce) {
        const int64_t n = std::min(kAtOnce, row.count - from);
        const int32_t* columns = row.columns + from;
        std::array<int64_t, kAtOnce> at{};  // of the last id that is not above the column, or 0
        for (int64_t rest = length; rest > 1; rest -= rest / 2) {
            const int64_t half = rest / 2;
            for (int64_t i = 0; i < n; ++i) {
                int64_t& place = at[static_cast<size_t>(i)];
                place += static_cast<int32_t>(ids[place + half]) <= columns[i] ? half : 0;
            }
        }
        for (int64_t i = 0; i < n; ++i) {
            const int64_t place = at[static_cast<size_t>(i)];
            if (static_cast<int32_t>(ids[place]) != columns[i]) continue;
            sum += static_cast<double>(row.values[from + i]) * static_cast<double>(widen(values[place]));
        }
    }
    return sum;
}

// A row as a dense array, and a filter that rules out most columns that the row does not have.
struct LaidOut {
    Query row{nullptr, nullptr, 0};
    float* dense = nullptr;
    std::array<uint16_t, simd::kFilterWords> filter{};

    // `zeros` must be all zero; clear() makes it so again.
    void lay(const Query& query, float* zeros) {
        row = query;
        dense = zeros;
        filter.fill(0);
        for (int64_t j = 0; j < row.count; ++j) {
            const auto column = static_cast<uint32_t>(row.columns[j]);
            dense[column] += row.values[j];
            filter[column / 16 % simd::kFilterWords] |= static_cast<uint16_t>(1u << (column % 16));
        }
    }
    void clear() {
        for (int64_t j = 0; j < row.count; ++j) dense[row.columns[j]] = 0.0f;
    }

    // Dot product with ascending ids and their values: gathers or searches, whichever is cheaper.
    template <class Id, class Value>
    double dot(const Id* ids, const Value* values, int64_t length) const {
        if (is_searched(length, row.count)) {
            return find_dot(row, ids, values, length);
        }
        return packed_kernels(ids, values).gather_dot(ids, values, length, dense);
    }

    // Dot products with n adjacent vectors: vector i is ptr[i] .. ptr[i + 1].
    template <class Id, class Value>
    void dots(const Id* ids, const Value* values, const int64_t* ptr, int32_t n, double* dots) const {
        constexpr int64_t kFull = 300;  // entries that set a quarter of the filter's bits
        if (row.count <= kFull && !is_searched(ptr[n] - ptr[0], row.count)) {
            packed_kernels(ids, values).gather_dots(ids, values, ptr, n, dense, filter.data(), dots);
            return;
        }
        for (int32_t i = 0; i < n; ++i) dots[i] = dot(ids + ptr[i], values + ptr[i], ptr[i + 1] - ptr[i]);
    }
};

}  // namespace labelwood::forest
