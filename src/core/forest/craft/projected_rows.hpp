// Rows after a random projection, as the clusters and the centroids of a tree read them.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/span.hpp"

namespace labelwood::forest::craft {

// Projected rows, merged; the rows of the whole training set or those of one node.
struct ProjectedRows {
    Vector<int64_t> ptr{0};
    Vector<int32_t> columns;
    Vector<float> values;
    Vector<double> scale;   // of a row: 1 / its length under the cosine metric, else 1
    Vector<double> square;  // of a row's length after scaling

    void clear() {
        ptr.assign(1, 0);
        columns.clear();
        values.clear();
        scale.clear();
        square.clear();
    }
    // Closes a row whose entries have been appended; needs its length only where rows are clustered.
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
