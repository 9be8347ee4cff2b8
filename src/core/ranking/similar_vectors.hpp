// The training rows whose vectors are nearest to a row's vector vote for their labels: exact search.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/csr.hpp"
#include "base/parallel.hpp"
#include "base/span.hpp"
#include "base/topk.hpp"
#include "base/vectors.hpp"
#include "memory/allocators.hpp"
#include "ranking/label_votes.hpp"
#include "simd/search.hpp"

namespace labelwood::ranking {

// Vectors of n_rows training rows, of unit length; row r of `labels` has the labels of training row r.
struct VectorIndex {
    Vectors vectors;
    int64_t n_rows;
    Csr labels;
    int64_t n_neighbors;
};

// Finds the neighbors of up to kQueries vectors at a time: every training row is read once for all of them. One
// per thread, for any index.
class VectorNeighborhood {
  public:
    static constexpr int64_t kQueries = 64;

    void find(const VectorIndex& index, const Vectors& x, int64_t first, int64_t count, int64_t k,
              const VotedLists& out) {
        const int64_t width = index.vectors.width, stride = padded(count);
        read_queries(x, first, count);
        const auto capacity = static_cast<int32_t>(std::min(index.n_neighbors, index.n_rows));
        pools_.resize(count * capacity);
        sizes_.assign(count, 0);
        rows_.resize(kTile * padded(width));
        products_.resize(kTile * stride);
        for (int64_t tile = 0; tile < index.n_rows; tile += kTile) {
            const int64_t n_rows = std::min(kTile, index.n_rows - tile);
            const float* rows[kTile];
            for (int64_t r = 0; r < n_rows; ++r) {
                float* row = rows_.data() + r * padded(width);
                simd::search().widen_row(index.vectors.row(tile + r), index.vectors.type, width, 1.0f, row);
                rows[r] = row;
            }
            simd::search().products(rows, n_rows, block_.data(), width, count, products_.data());
            for (int64_t query = 0; query < count; ++query) {
                BestOf best(pools_.data() + query * capacity, &sizes_[query], capacity);
                for (int64_t r = 0; r < n_rows; ++r) {
                    const float similarity = products_[r * stride + query];
                    if (similarity > 0.0f && similarity >= best.bar()) {
                        best.offer({similarity, static_cast<int32_t>(tile + r)});
                    }
                }
            }
        }
        for (int64_t query = 0; query < count; ++query) {
            Scored* pool = pools_.data() + query * capacity;
            BestOf(pool, &sizes_[query], capacity).sort();
            votes_.count(index.labels, pool, sizes_[query], k, out.of_row(first + query, k));
        }
    }

  private:
    static constexpr int64_t kTile = 48;

    // The vectors of the queries, of unit length, column by column.
    void read_queries(const Vectors& x, int64_t first, int64_t count) {
        const int64_t stride = padded(count);
        row_.resize(padded(x.width));
        block_.assign(x.width * stride, 0.0f);
        for (int64_t query = 0; query < count; ++query) {
            simd::search().widen_row(x.row(first + query), x.type, x.width, 1.0f, row_.data());
            double square = 0.0;
            for (int64_t j = 0; j < x.width; ++j) square += static_cast<double>(row_[j]) * static_cast<double>(row_[j]);
            const float factor = unit_factor(square);
            for (int64_t j = 0; j < x.width; ++j) block_[j * stride + query] = row_[j] * factor;
        }
    }

    memory::AlignedVector<float> row_, rows_, block_, products_;
    Vector<Scored> pools_;
    Vector<int32_t> sizes_;
    LabelVotes votes_;
};

// Writes both lists of every row of x.
inline void vote_of_vectors(const Vectors& x, int64_t n_queries, const VectorIndex& index, int64_t k, int n_threads,
                            Monitor& monitor, const VotedLists& out) {
    constexpr int64_t kQueries = VectorNeighborhood::kQueries;
    parallel_for((n_queries + kQueries - 1) / kQueries, n_threads, monitor, [&](int64_t part, int) {
        thread_local VectorNeighborhood neighborhood;
        const int64_t first = part * kQueries, count = std::min(kQueries, n_queries - first);
        neighborhood.find(index, x, first, count, k, out);
        monitor.add(count);
    });
}

}  // namespace labelwood::ranking
