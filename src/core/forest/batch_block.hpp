// A dense block of a node's child vectors, side by side. Many rows look their columns up in it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "base/span.hpp"
#include "forest/packed_rows.hpp"
#include "simd/forest/router.hpp"
#include "simd/search.hpp"

namespace labelwood::forest {

// Row u is the vector of node u: the parent of u scores u by it.
template <class Index, class Weight>
struct NodeVectors {
    const int64_t* ptr;
    const Index* features;
    const Weight* weights;

    int64_t length(int32_t node) const { return ptr[node + 1] - ptr[node]; }
};

// Scratch buffers. `rows` and `position` are all zero between uses.
struct BatchBlock {
    Vector<float> rows;        // [columns, lanes]
    Vector<int32_t> position;  // row of each column
    Vector<float> widened;     // one vector as floats
    Vector<float> found;       // values of the query's columns that have a row
    Vector<int32_t> found_at;  // rows of those columns
};

// The number of children, rounded up to the width of a block's row.
inline int lanes_of(int32_t count) {
    return count <= 2 ? 2 : count <= 4 ? 4 : (count + 7) / 8 * 8;
}

// Weights from .. from + count as floats. Halves are widened into `scratch`.
template <class Index, class Weight>
const float* plain_weights(const NodeVectors<Index, Weight>& vectors, int64_t from, int64_t count,
                           Vector<float>& scratch) {
    if constexpr (std::is_same_v<Weight, Half>) {
        scratch.resize(count);
        simd::search().widen(vectors.weights + from, count, scratch.data());
        return scratch.data();
    } else {
        return vectors.weights + from;
    }
}

// Calls put(feature, weight) on every entry of the vector of `node`.
template <class Index, class Weight, class Put>
void each_weight(const NodeVectors<Index, Weight>& vectors, int32_t node, BatchBlock& block, Put&& put) {
    const int64_t from = vectors.ptr[node], length = vectors.length(node);
    const float* weights = plain_weights(vectors, from, length, block.widened);
    for (int64_t j = 0; j < length; ++j) {
        put(vectors.features[from + j], weights[j]);
    }
}

// True if the vectors of `first` and `first + 1` have the same columns.
template <class Index, class Weight>
bool same_columns(const NodeVectors<Index, Weight>& vectors, int32_t first) {
    const Index* columns = vectors.features + vectors.ptr[first];
    const int64_t length = vectors.length(first);
    return length == vectors.length(first + 1) && std::equal(columns, columns + length, columns + length);
}

// Lays out two vectors that have the same columns.
template <class Index, class Weight>
void lay_pair(const NodeVectors<Index, Weight>& vectors, int32_t first, BatchBlock& block) {
    const int64_t from = vectors.ptr[first], length = vectors.length(first);
    const float* weights = plain_weights(vectors, from, 2 * length, block.widened);
    float* rows = block.rows.data();
    for (int64_t j = 0; j < length; ++j) {
        const int64_t at = 2 * int64_t{vectors.features[from + j]};
        rows[at] = weights[j];
        rows[at + 1] = weights[length + j];
    }
}

// Few children: one row of the block per column.
template <int64_t Lanes, class Index, class Weight, class Use>
void score_narrow(const NodeVectors<Index, Weight>& vectors, int32_t first, int32_t count, int32_t n_columns,
                  BatchBlock& block, Use&& use) {
    const int64_t size = n_columns * Lanes;
    if (block.rows.size() < size) block.rows.resize(size, 0.0f);
    if (Lanes == 2 && count == 2 && same_columns(vectors, first)) {
        lay_pair(vectors, first, block);
    } else {
        for (int32_t child = 0; child < count; ++child) {
            float* lane = block.rows.data() + child;
            each_weight(vectors, first + child, block,
                        [&](int64_t feature, float weight) { lane[feature * Lanes] = weight; });
        }
    }
    use([&, scores_of = simd::forest().row_scores](const Query& row, double* scores) {
        scores_of(row.columns, row.values, row.count, block.rows.data(), static_cast<int>(Lanes), scores);
    });
    const int64_t n_weights = vectors.ptr[first + count] - vectors.ptr[first];
    if (n_weights * 8 > size) {  // clearing the whole block is cheaper
        std::fill_n(block.rows.data(), size, 0.0f);
        return;
    }
    for (int32_t child = 0; child < count; ++child) {
        float* lane = block.rows.data() + child;
        for (int64_t j = vectors.ptr[first + child]; j < vectors.ptr[first + child + 1]; ++j) {
            lane[vectors.features[j] * Lanes] = 0.0f;
        }
    }
}

// A hyperplane: two children, only the first has a vector. The vector is laid out by itself.
template <class Index, class Weight, class Use>
void score_single(const NodeVectors<Index, Weight>& vectors, int32_t first, int32_t n_columns, BatchBlock& block,
                  Use&& use) {
    if (block.rows.size() < n_columns) block.rows.resize(n_columns, 0.0f);
    float* dense = block.rows.data();
    each_weight(vectors, first, block, [&](int64_t feature, float weight) { dense[feature] = weight; });
    use([dense, dot = simd::forest().i32_f32.gather_dot](const Query& row, double* scores) {
        scores[0] = dot(row.columns, row.values, row.count, dense);
        scores[1] = 0.0;
    });
    for (int64_t j = vectors.ptr[first]; j < vectors.ptr[first + 1]; ++j) dense[vectors.features[j]] = 0.0f;
}

// Many children: the block has a row, counted from 1, for each column that some child uses. Most columns of a
// query have no row and are dropped first.
template <class Index, class Weight, class Use>
void score_wide(const NodeVectors<Index, Weight>& vectors, int32_t first, int32_t count, int32_t n_columns,
                BatchBlock& block, Use&& use) {
    const int lanes = lanes_of(count);
    const int64_t wide = lanes;
    if (block.position.empty()) block.position.resize(n_columns, 0);
    const int64_t begin = vectors.ptr[first], end = vectors.ptr[first + count];
    const int64_t size = (end - begin + 1) * wide;
    if (block.rows.size() < size) block.rows.resize(size, 0.0f);
    int32_t used = 0;
    for (int32_t child = 0; child < count; ++child) {
        float* lane = block.rows.data() + child;
        each_weight(vectors, first + child, block, [&](int64_t feature, float weight) {
            int32_t& at = block.position[feature];
            if (at == 0) at = ++used;
            lane[at * wide] = weight;
        });
    }
    use([&](const Query& row, double* scores) {
        block.found.resize(row.count);
        block.found_at.resize(row.count);
        const int64_t n = simd::forest().find_columns(row.columns, row.values, row.count, block.position.data(),
                                                      block.found_at.data(), block.found.data());
        simd::forest().row_scores(block.found_at.data(), block.found.data(), n, block.rows.data(), lanes, scores);
    });
    for (int64_t j = begin; j < end; ++j) block.position[vectors.features[j]] = 0;
    std::fill_n(block.rows.data(), (used + 1) * wide, 0.0f);
}

// Calls use(score). score(query, scores) writes the dot products of a query with the vectors of nodes
// first .. first + count; `scores` needs room for lanes_of(count).
template <class Index, class Weight, class Use>
void score_together(const NodeVectors<Index, Weight>& vectors, int32_t first, int32_t count, int32_t n_columns,
                    BatchBlock& block, Use&& use) {
    const int lanes = lanes_of(count);
    if (count == 2 && vectors.length(first + 1) == 0) {
        return score_single(vectors, first, n_columns, block, use);
    }
    if (lanes == 2) return score_narrow<2>(vectors, first, count, n_columns, block, use);
    if (lanes == 4) return score_narrow<4>(vectors, first, count, n_columns, block, use);
    score_wide(vectors, first, count, n_columns, block, use);
}

}  // namespace labelwood::forest
