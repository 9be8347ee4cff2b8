// Cutting sparse rows down to their largest entries.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
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

}  // namespace labelwood
