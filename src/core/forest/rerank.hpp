// Reorders a forest's candidates by their scores and by the distance of the row to the labels' mean rows.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/csr.hpp"
#include "base/parallel.hpp"
#include "base/span.hpp"
#include "base/topk.hpp"
#include "forest/packed_rows.hpp"

namespace labelwood::forest {

struct RerankOptions {
    double share;      // weight of the forest's score in the logarithm of the combined score
    double sharpness;  // of the logistic function of the squared distance
    int32_t candidates, k;
};

// `labels` and `scores` have options.candidates columns, and short rows end in -1; the results have k
// columns. Rows have unit length, and so have the directions of the means; `lengths` are those of the means.
inline void rerank(const Csr& x, const Csr& means, const float* lengths, const int32_t* labels, const float* scores,
                   const RerankOptions& options, int n_threads, Monitor& monitor, int32_t* out_labels,
                   float* out_scores) {
    struct Scratch {
        Vector<float> dense;
        LaidOut row;
        Vector<Scored> pool;
    };
    constexpr int64_t kRows = 64;
    Vector<Scratch> scratches(std::max(n_threads, 1));
    const auto wide = static_cast<int64_t>(options.candidates), k = static_cast<int64_t>(options.k);
    auto order_row = [&](int64_t row, Scratch& scratch) {
        scratch.row.lay(row_of(x, row), scratch.dense.data());
        scratch.pool.clear();
        for (int64_t j = row * wide; j < (row + 1) * wide && labels[j] >= 0; ++j) {
            const int64_t from = means.indptr[labels[j]];
            const double cosine = scratch.row.dot(means.indices + from, means.data + from, means.row_nnz(labels[j]));
            const auto length = static_cast<double>(lengths[labels[j]]);
            const double distance = 1.0 + length * length - 2.0 * length * cosine;  // squared
            const double nearness = -std::log1p(std::exp(options.sharpness / 2.0 * distance));
            const double combined =
                options.share * std::log(static_cast<double>(scores[j])) + (1.0 - options.share) * nearness;
            scratch.pool.push_back({static_cast<float>(std::exp(combined)), labels[j]});
        }
        scratch.row.clear();
        const auto kept = std::min<int64_t>(k, scratch.pool.size());
        std::partial_sort(scratch.pool.begin(), scratch.pool.begin() + kept, scratch.pool.end(), better);
        for (int64_t j = 0; j < k; ++j) {
            const bool known = j < kept && scratch.pool[j].score > 0.0f;
            out_labels[row * k + j] = known ? scratch.pool[j].id : -1;
            out_scores[row * k + j] = known ? scratch.pool[j].score : 0.0f;
        }
    };
    parallel_for((x.n_rows + kRows - 1) / kRows, n_threads, monitor, [&](int64_t part, int worker) {
        Scratch& scratch = scratches[worker];
        scratch.dense.resize(x.n_cols, 0.0f);
        const int64_t end = std::min(x.n_rows, (part + 1) * kRows);
        for (int64_t row = part * kRows; row < end; ++row) order_row(row, scratch);
        monitor.add(end - part * kRows);
    });
}

}  // namespace labelwood::forest
