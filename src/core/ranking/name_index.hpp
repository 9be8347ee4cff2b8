// Labels whose names stand in a row, found through an inverted index of the names.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/csr.hpp"
#include "base/parallel.hpp"
#include "base/span.hpp"
#include "base/topk.hpp"

namespace labelwood::ranking {

// Row c of `postings` has the names with column c and their weights there; names have unit length. label_of
// names the label of each name.
struct NameIndex {
    Csr postings;
    const int32_t* label_of;
    int64_t n_names, n_labels;
};

// Writes the k labels of each row whose best name scores highest: its cosine with the row times the share of
// its squared length in columns that the row has.
inline void match_names(const Csr& x, const NameIndex& index, int64_t k, int n_threads, Monitor& monitor,
                        int32_t* out_labels, float* out_scores) {
    struct Sums {
        double dot = 0.0, found = 0.0;
    };
    struct Scratch {
        Vector<Sums> sums;   // of names; zero between rows
        Vector<float> best;  // of labels; zero between rows
        Vector<int32_t> names, labels;
        Vector<Scored> pool;
    };
    constexpr int64_t kRows = 64;
    auto match_row = [&](int64_t row, Scratch& scratch) {
        const Query query = row_of(x, row);
        double square = 0.0;
        scratch.names.clear();
        scratch.labels.clear();
        scratch.pool.clear();
        for (int64_t j = 0; j < query.count; ++j) {
            const auto value = static_cast<double>(query.values[j]);
            square += value * value;
            if (query.values[j] == 0.0f) continue;
            const Query listed = row_of(index.postings, query.columns[j]);
            for (int64_t i = 0; i < listed.count; ++i) {
                Sums& sums = scratch.sums[listed.columns[i]];
                const auto weight = static_cast<double>(listed.values[i]);
                if (sums.found == 0.0) scratch.names.push_back(listed.columns[i]);
                sums.dot += value * weight;
                sums.found += weight * weight;
            }
        }
        const auto factor = static_cast<double>(unit_factor(square));
        for (const int32_t name : scratch.names) {
            Sums& sums = scratch.sums[name];
            const auto score = static_cast<float>(sums.dot * factor * std::min(sums.found, 1.0));
            float& best = scratch.best[index.label_of[name]];
            if (score > 0.0f && best == 0.0f) scratch.labels.push_back(index.label_of[name]);
            best = std::max(best, score);
            sums = Sums{};
        }
        for (const int32_t label : scratch.labels) {
            scratch.pool.push_back({scratch.best[label], label});
            scratch.best[label] = 0.0f;
        }
        const int64_t kept = std::min(k, scratch.pool.size());
        std::partial_sort(scratch.pool.begin(), scratch.pool.begin() + kept, scratch.pool.end(), better);
        write_topk(scratch.pool.data(), kept, k, out_labels + row * k, out_scores + row * k,
                   [](float score) { return score; });
    };
    parallel_for((x.n_rows + kRows - 1) / kRows, n_threads, monitor, [&](int64_t part, int) {
        // A call for a single row runs on the caller's thread and finds the buffers of the call before.
        thread_local Scratch scratch;
        if (scratch.sums.size() < index.n_names) scratch.sums.resize(index.n_names);
        if (scratch.best.size() < index.n_labels) scratch.best.resize(index.n_labels, 0.0f);
        const int64_t end = std::min(x.n_rows, (part + 1) * kRows);
        for (int64_t row = part * kRows; row < end; ++row) match_row(row, scratch);
        monitor.add(end - part * kRows);
    });
}

}  // namespace labelwood::ranking
