// Cutting sparse rows down to their largest entries.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <utility>

#include "base/span.hpp"

namespace labelwood::sparse {

// Separates the `most` entries largest in size from the others: it admits entries above `floor`, and the
// first `ties` of those that equal it.
struct Cutoff {
    float floor = -1.0f;
    int64_t ties = 0;

    // To be called once per entry, in order.
    bool admits(float size) { return size > floor || (size == floor && ties-- > 0); }
};

// The cutoff of the `most` largest sizes, fewer than all; reorders the sizes.
inline Cutoff cutoff_of(Vector<float>& sizes, int64_t most) {
    std::nth_element(sizes.begin(), sizes.begin() + (most - 1), sizes.end(), std::greater<float>());
    const float floor = sizes[most - 1];
    const auto above = std::count_if(sizes.begin(), sizes.begin() + most, [&](float size) { return size > floor; });
    return {floor, most - above};
}

// Calls keep(i) in order for the `most` entries of values[0:count] that are largest in size; of equal entries
// the first are kept.
template <class Keep>
void for_largest(const float* values, int64_t count, int64_t most, Vector<float>& sizes, Keep&& keep) {
    Cutoff cutoff;
    if (count > most) {
        sizes.resize(count);
        for (int64_t i = 0; i < count; ++i) sizes[i] = std::fabs(values[i]);
        cutoff = cutoff_of(sizes, most);
    }
    for (int64_t i = 0; i < count; ++i) {
        if (cutoff.admits(std::fabs(values[i]))) keep(i);
    }
}

// Positions of the `most` largest entries of every row, ascending.
inline Vector<int64_t> keep_largest(const int64_t* ptr, int64_t n_rows, const float* values, int64_t most) {
    Vector<int64_t> kept;
    Vector<float> sizes;
    for (int64_t row = 0; row < n_rows; ++row) {
        for_largest(values + ptr[row], ptr[row + 1] - ptr[row], most, sizes,
                    [&](int64_t i) { kept.push_back(ptr[row] + i); });
    }
    return kept;
}

// Keeps the largest entries of a vector until they make up a share of its squared length. Counts squares by
// their leading bits first, so that only the entries near the cut are sorted.
class LargestShare {
  public:
    // Calls keep(i) in order for the chosen entries of values[0:count], at least `least` and at most `most`;
    // of equal entries the first are chosen.
    template <class Keep>
    void choose(const float* values, int64_t count, double share, int64_t least, int64_t most, Keep&& keep) {
        squares_.resize(count);
        for (int64_t i = 0; i < count; ++i) squares_[i] = values[i] * values[i];
        double total = 0.0;
        int64_t lowest = kBuckets, edge = 0;
        for (const float square : squares_) {
            const int64_t own = bucket(square);
            total += static_cast<double>(square);
            sums_[own] += static_cast<double>(square);
            ++counts_[own];
            lowest = std::min(lowest, own);
            edge = std::max(edge, own);
        }
        const int64_t used = std::min(lowest, edge), end = edge + 1;
        const double wanted = share < 1.0 ? share * total * (1.0 - kSlack) : std::numeric_limits<double>::infinity();
        double sum = 0.0;
        int64_t n_kept = 0;
        // All entries of buckets above the edge are kept; bucket 0 holds the zeros.
        auto enough = [&](double sum_kept, int64_t kept) { return sum_kept >= wanted && kept >= least; };
        for (; edge > 0 && edge >= lowest; --edge) {
            const int64_t with_these = n_kept + counts_[edge];
            if (enough(sum + sums_[edge], with_these) || with_these > most) break;
            sum += sums_[edge];
            n_kept += counts_[edge];
        }
        std::fill(sums_.begin() + used, sums_.begin() + end, 0.0);
        std::fill(counts_.begin() + used, counts_.begin() + end, 0);
        at_edge_.clear();
        for (int64_t i = 0; i < count && edge > 0; ++i) {
            if (bucket(squares_[i]) == edge) at_edge_.emplace_back(-squares_[i], i);
        }
        std::sort(at_edge_.begin(), at_edge_.end());
        for (const auto& [minus_square, i] : at_edge_) {
            if (enough(sum, n_kept) || n_kept == most) break;
            sum -= static_cast<double>(minus_square);
            ++n_kept;
            squares_[i] = std::numeric_limits<float>::infinity();
        }
        for (int64_t i = 0; i < count; ++i) {
            if (bucket(squares_[i]) > edge) keep(i);
        }
    }

  private:
    static constexpr int64_t kBuckets = 2048;  // one per value of a positive float's leading 11 bits
    static constexpr double kSlack = 1e-9;     // so that rounding does not separate equal entries

    static int64_t bucket(float square) { return std::bit_cast<uint32_t>(square) >> 20; }

    Vector<double> sums_ = Vector<double>(kBuckets, 0.0);    // zero between uses
    Vector<int64_t> counts_ = Vector<int64_t>(kBuckets, 0);  // zero between uses
    Vector<float> squares_;
    Vector<std::pair<float, int64_t>> at_edge_;
};

struct KeptEntries {
    Vector<int64_t> ptr, positions;
};

// The largest entries of every row, at least `least` of them, until they make up a share below 1 of its
// squared length; ascending positions. Values are divided by the row's largest, so that their squares stay in
// range.
inline KeptEntries keep_share(const int64_t* ptr, int64_t n_rows, const float* values, double share, int64_t least) {
    KeptEntries kept;
    kept.ptr.assign(1, 0);
    kept.ptr.reserve(n_rows + 1);
    kept.positions.reserve(ptr[n_rows] - ptr[0]);
    LargestShare largest;
    Vector<float> relative;
    auto keep = [&](int64_t row, int64_t i) { kept.positions.push_back(ptr[row] + i); };
    for (int64_t row = 0; row < n_rows; ++row) {
        relative.assign(values + ptr[row], values + ptr[row + 1]);
        if (relative.size() <= least) {
            for (int64_t i = 0; i < relative.size(); ++i) keep(row, i);
        } else {
            float top = 0.0f;
            for (const float value : relative) top = std::max(top, std::fabs(value));
            if (top > 0.0f) {
                for (float& value : relative) value /= top;
            }
            largest.choose(relative.data(), relative.size(), share, least, std::numeric_limits<int64_t>::max(),
                           [&](int64_t i) { keep(row, i); });
        }
        kept.ptr.push_back(kept.positions.size());
    }
    return kept;
}

}  // namespace labelwood::sparse
