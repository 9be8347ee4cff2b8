// Cutting sparse rows down to their largest entries.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

namespace labelwood {

// Calls keep(i) in order for the `most` entries of values[0:count] that are largest in size; of equals the
// first.
template <class Keep>
void for_largest(const float* values, int64_t count, int64_t most, std::vector<float>& sizes, Keep&& keep) {
    if (count <= most) {
        for (int64_t i = 0; i < count; ++i) keep(i);
        return;
    }
    sizes.resize(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) sizes[static_cast<size_t>(i)] = std::fabs(values[i]);
    std::nth_element(sizes.begin(), sizes.begin() + (most - 1), sizes.end(), std::greater<float>());
    const float floor = sizes[static_cast<size_t>(most - 1)];
    int64_t ties =
        most - std::count_if(sizes.begin(), sizes.begin() + most, [&](float v) { return v > floor; });
    for (int64_t i = 0; i < count; ++i) {
        const float size = std::fabs(values[i]);
        if (size > floor || (size == floor && ties-- > 0)) keep(i);
    }
}

// Positions of the kept entries of every row, ascending.
inline std::vector<int64_t> keep_largest(const int64_t* ptr, int64_t n_rows, const float* values,
                                         int64_t most) {
    std::vector<int64_t> kept;
    std::vector<float> sizes;
    for (int64_t row = 0; row < n_rows; ++row) {
        for_largest(values + ptr[row], ptr[row + 1] - ptr[row], most, sizes,
                    [&](int64_t i) { kept.push_back(ptr[row] + i); });
    }
    return kept;
}

// Keeps the largest entries of a vector until they make up a share of its squared length. Squares are first
// counted by their leading bits, so that only the entries about the last one kept are sorted.
class LargestShare {
  public:
    // Calls keep(i) in order for the chosen entries of values[0:count], at most `most`; of equals the first.
    template <class Keep>
    void choose(const float* values, size_t count, double share, int64_t most, Keep&& keep) {
        squares_.resize(count);
        for (size_t i = 0; i < count; ++i) squares_[i] = values[i] * values[i];
        double total = 0.0;
        for (const float square : squares_) {
            total += static_cast<double>(square);
            sums_[bucket(square)] += static_cast<double>(square);
            ++counts_[bucket(square)];
        }
        const double wanted =
            share < 1.0 ? share * total * (1.0 - kSlack) : std::numeric_limits<double>::infinity();
        double sum = 0.0;
        int64_t n_kept = 0;
        size_t edge = kBuckets - 1;  // all entries of higher buckets are kept; the lowest holds the zeros
        for (; edge > 0 && sum + sums_[edge] < wanted && n_kept + counts_[edge] <= most; --edge) {
            sum += sums_[edge];
            n_kept += counts_[edge];
        }
        std::fill(sums_.begin(), sums_.end(), 0.0);
        std::fill(counts_.begin(), counts_.end(), 0);
        at_edge_.clear();
        for (size_t i = 0; i < count && edge > 0; ++i) {
            if (bucket(squares_[i]) == edge) at_edge_.emplace_back(-squares_[i], i);
        }
        std::sort(at_edge_.begin(), at_edge_.end());
        for (const auto& [minus_square, i] : at_edge_) {
            if (sum >= wanted || n_kept == most) break;
            sum -= static_cast<double>(minus_square);
            ++n_kept;
            squares_[i] = std::numeric_limits<float>::infinity();
        }
        for (size_t i = 0; i < count; ++i) {
            if (bucket(squares_[i]) > edge) keep(i);
        }
    }

  private:
    static constexpr size_t kBuckets = 2048;  // of the bits of a positive float, without the last 20
    static constexpr double kSlack = 1e-9;    // rounding must not decide where entries of one size end

    static size_t bucket(float square) { return std::bit_cast<uint32_t>(square) >> 20; }

    std::vector<double> sums_ = std::vector<double>(kBuckets, 0.0);    // zero between uses
    std::vector<int64_t> counts_ = std::vector<int64_t>(kBuckets, 0);  // zero between uses
    std::vector<float> squares_;
    std::vector<std::pair<float, size_t>> at_edge_;
};

}  // namespace labelwood
