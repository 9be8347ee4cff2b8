// The training problem of one inner node: its rows on its own, compacted features.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/csr.hpp"
#include "base/span.hpp"
#include "base/stamped_counts.hpp"
#include "label_tree/tree.hpp"
#include "memory/allocators.hpp"
#include "simd/search.hpp"
#include "simd/solver.hpp"
#include "sparse/training_rows.hpp"

namespace labelwood::label_tree {

// A node's vectors are copied side by side if they take at most this many bytes.
constexpr int64_t kMostWide = int64_t{1} << 25;

// The rows of a node, ready for the solver. Compacted id 0 is the node's most frequent feature, so that the
// weights used most lie together in cache. The bias comes last (id n_features), with the same value in every
// row. A node of more than `most_entries` entries does not hold them: a RowWindow reads them again from
// `source`, which must stay as it is, like `columns`.
struct NodeProblem {
    Vector<int32_t> features;  // compacted id -> column
    Vector<int64_t> indptr;
    Vector<int32_t> indices;
    Vector<float> values;
    Vector<float> diagonal;
    float bias = 0.0f;
    int64_t most_entries = 0;
    const sparse::TrainingRows* source = nullptr;
    Span<const int32_t> members;             // the row of the source, for each row
    const StampedCounts* columns = nullptr;  // column -> compacted id
    memory::AlignedVector<float> wide;       // the vectors, scaled, padded; empty if they take more than kMostWide

    int64_t n_rows() const { return diagonal.size(); }
    int64_t n_features() const { return features.size(); }
    bool is_held() const { return indptr.back() == indices.size(); }
    simd::NodeRows rows() const {
        return with_vectors({indptr.data(), indices.data(), values.data(), diagonal.data(), n_rows(), indptr.data()});
    }
    simd::NodeRows with_vectors(simd::NodeRows rows) const {
        rows.vectors = source->vectors;
        rows.members = members.data();
        rows.wide = wide.empty() ? nullptr : wide.data();
        rows.bias = rows.vectors.width > 0 && features.empty() ? &bias : nullptr;
        return rows;
    }
};

// Writes the entries of a row on compacted features, bias last.
inline void copy_row(const NodeProblem& problem, int64_t row, int32_t* features, float* values) {
    const Csr& x = problem.source->x;
    const int32_t member = problem.members[row];
    const float scale = problem.source->open(member);
    for (int64_t j = x.indptr[member]; j < x.indptr[member + 1]; ++j) {
        *features++ = problem.columns->at(x.indices[j]);
        *values++ = x.data[j] * scale;
    }
    if (problem.bias != 0.0f) {
        *features = static_cast<int32_t>(problem.n_features());
        *values = problem.bias;
    }
}

// The squared length of a row's vector.
inline float square_of_vector(const Vectors& vectors, int64_t row) {
    if (vectors.width == 0) return 0.0f;
    const float factor = vectors.factor(row);
    return factor * factor * simd::solver().square(vectors.row(row), vectors.type, vectors.width);
}

// `most_entries` 0 holds all entries.
inline void build_problem(const sparse::TrainingRows& rows, Span<const int32_t> members, float bias,
                          int64_t most_entries, StampedCounts& columns, NodeProblem* problem) {
    const Csr& x = rows.x;
    const int64_t n_rows = members.size();
    problem->bias = bias;
    problem->most_entries = most_entries;
    problem->source = &rows;
    problem->members = members;
    problem->columns = &columns;
    problem->indptr.resize(n_rows + 1);
    problem->indptr[0] = 0;
    problem->diagonal.resize(n_rows);
    auto& used = problem->features;
    used.clear();
    columns.clear();
    for (int64_t i = 0; i < n_rows; ++i) {
        const float scale = rows.open(members[i]);
        float norm = bias * bias;
        for (int64_t j = x.indptr[members[i]]; j < x.indptr[members[i] + 1]; ++j) {
            if (columns.count(x.indices[j])) used.push_back(x.indices[j]);
            const float value = x.data[j] * scale;
            norm += value * value;
        }
        problem->diagonal[i] = norm + square_of_vector(rows.vectors, members[i]);
        problem->indptr[i + 1] = problem->indptr[i] + x.row_nnz(members[i]) + (bias != 0.0f ? 1 : 0);
    }
    // A counting sort by frequency, most frequent first; above 1023 the order does not matter to a cache.
    constexpr int32_t kClasses = 1024;
    auto frequency_class = [&](int32_t column) { return kClasses - std::min(columns[column], kClasses); };
    std::sort(used.begin(), used.end());
    Vector<int64_t> start(kClasses + 1, 0);
    for (const int32_t column : used) ++start[frequency_class(column) + 1];
    for (int64_t c = 0; c < kClasses; ++c) start[c + 1] += start[c];
    Vector<int32_t> ordered(used.size());
    for (const int32_t column : used) {
        ordered[start[frequency_class(column)]++] = column;
    }
    used.swap(ordered);
    for (int64_t id = 0; id < used.size(); ++id) columns[used[id]] = static_cast<int32_t>(id);

    const Vectors& vectors = rows.vectors;
    const int64_t stride = padded(vectors.width);
    problem->wide.resize(n_rows * stride * 4 <= kMostWide ? n_rows * stride : 0);
    for (int64_t i = 0; i < n_rows && !problem->wide.empty(); ++i) {
        simd::search().widen_row(vectors.row(members[i]), vectors.type, vectors.width, vectors.factor(members[i]),
                                 problem->wide.data() + i * stride);
    }
    const int64_t total = problem->indptr.back();
    const bool held = most_entries == 0 || total <= most_entries;
    problem->indices.resize(held ? total : 0);
    problem->values.resize(held ? total : 0);
    for (int64_t i = 0; held && i < n_rows; ++i) {
        const int64_t at = problem->indptr[i];
        copy_row(*problem, i, problem->indices.data() + at, problem->values.data() + at);
    }
}

}  // namespace labelwood::label_tree
