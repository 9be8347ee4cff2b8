// Rows after a random projection, for clustering and for centroids.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/span.hpp"

namespace labelwood::forest::craft {

// Projected rows of the whole training set or of one node; equal columns are merged.
struct ProjectedRows {
    Vector<int64_t> ptr{0};
    Vector<int32_t> columns;
    Vector<float> values;
    Vector<double> scale;   // per row: 1 / its length under the cosine metric, else 1
    Vector<double> square;  // per row: its squared length after scaling

    void clear() {
        ptr.assign(1, 0);
        columns.clear();
        values.clear();
        scale.clear();
        square.clear();
    }
    // Ends the row whose entries have been appended. Only clustering needs its length.
    void close_row(bool cosine) {
        double sum = 0.0;
        for (int64_t j = ptr.back(); j < values.size(); ++j) {
            sum += static_cast<double>(values[j]) * static_cast<double>(values[j]);
        }
        ptr.push_back(columns.size());
        scale.push_back(cosine && sum > 0.0 ? 1.0 / std::sqrt(sum) : 1.0);
        square.push_back(cosine ? (sum > 0.0 ? 1.0 : 0.0) : sum);
    }
};

}  // namespace labelwood::forest::craft
