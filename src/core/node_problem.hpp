// One inner node's training problem: its own rows on its own features, compacted.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "common.hpp"
#include "simd.hpp"
#include "stamped.hpp"
#include "tree.hpp"

namespace labelwood {

// The rows of a node, ready for the solver. Compacted id 0 is the node's most frequent feature, so that the
// weights touched most lie together in cache; the bias comes last (id n_features) with the same value in
// every row.
struct NodeProblem {
    std::vector<int32_t> features;  // compacted id -> column
    std::vector<int64_t> indptr;
    std::vector<int32_t> indices;
    std::vector<float> values;
    std::vector<float> diagonal;

    int64_t n_rows() const { return static_cast<int64_t>(diagonal.size()); }
    int64_t n_features() const { return static_cast<int64_t>(features.size()); }
    NodeRows rows() const {
        return {indptr.data(), indices.data(), values.data(), diagonal.data(), n_rows()};
    }
};

inline void build_problem(const Csr& x, const int32_t* rows, int64_t n_rows, float bias,
                          StampedCounts& columns, NodeProblem* problem) {
    auto& used = problem->features;
    used.clear();
    columns.clear();
    int64_t nnz = 0;
    for (int64_t i = 0; i < n_rows; ++i) {
        const int64_t end = x.indptr[rows[i] + 1];
        nnz += x.row_nnz(rows[i]);
        for (int64_t j = x.indptr[rows[i]]; j < end; ++j) {
            if (columns.count(x.indices[j])) used.push_back(x.indices[j]);
        }
    }
    // A counting sort by frequency, most frequent first; beyond 1023 the order no longer matters to a cache.
    constexpr int32_t kClasses = 1024;
    auto frequency_class = [&](int32_t column) { return kClasses - std::min(columns[column], kClasses); };
    std::sort(used.begin(), used.end());
    std::vector<int64_t> start(kClasses + 1, 0);
    for (const int32_t column : used) ++start[static_cast<size_t>(frequency_class(column)) + 1];
    for (size_t c = 0; c < kClasses; ++c) start[c + 1] += start[c];
    std::vector<int32_t> ordered(used.size());
    for (const int32_t column : used) {
        ordered[static_cast<size_t>(start[static_cast<size_t>(frequency_class(column))]++)] = column;
    }
    used.swap(ordered);
    for (size_t id = 0; id < used.size(); ++id) columns[used[id]] = static_cast<int32_t>(id);

    const auto bias_id = static_cast<int32_t>(used.size());
    const auto total = static_cast<size_t>(nnz + (bias != 0.0f ? n_rows : 0));
    problem->indptr.resize(static_cast<size_t>(n_rows) + 1);
    problem->indices.resize(total);
    problem->values.resize(total);
    problem->diagonal.resize(static_cast<size_t>(n_rows));
    size_t at = 0;
    problem->indptr[0] = 0;
    for (int64_t i = 0; i < n_rows; ++i) {
        float norm = bias * bias;
        for (int64_t j = x.indptr[rows[i]]; j < x.indptr[rows[i] + 1]; ++j) {
            problem->indices[at] = columns[x.indices[j]];
            problem->values[at++] = x.data[j];
            norm += x.data[j] * x.data[j];
        }
        if (bias != 0.0f) {
            problem->indices[at] = bias_id;
            problem->values[at++] = bias;
        }
        problem->diagonal[static_cast<size_t>(i)] = norm;
        problem->indptr[static_cast<size_t>(i) + 1] = static_cast<int64_t>(at);
    }
}

}  // namespace labelwood
