// Describes the candidates that members propose and orders them by boosted trees, row by row.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>

#include "base/csr.hpp"
#include "base/parallel.hpp"
#include "base/span.hpp"
#include "base/topk.hpp"
#include "ranking/boosted_trees.hpp"
#include "ranking/candidate_features.hpp"

namespace labelwood::ranking {

// The candidates of several rows: those of row i are ptr[i] to ptr[i + 1].
struct Described {
    Vector<int64_t> ptr{0};
    Vector<int32_t> labels;
    Vector<float> features;
};

// Calls visit(row, describer) for each row of a batch; `lists` are those of the first row.
template <class Visit>
void describe_rows(const Csr& x, const LabelTables& tables, const Lists& lists, int n_threads, Monitor& monitor,
                   Visit&& visit) {
    constexpr int64_t kRows = 64;
    Vector<std::unique_ptr<CandidateDescriber>> describers(std::max(n_threads, 1));
    parallel_for((x.n_rows + kRows - 1) / kRows, n_threads, monitor, [&](int64_t part, int worker) {
        auto& describer = describers[worker];
        if (!describer) describer = std::make_unique<CandidateDescriber>(tables, lists.n_lists, lists.n_members);
        const int64_t end = std::min(x.n_rows, (part + 1) * kRows), stride = lists.n_lists * lists.width;
        for (int64_t row = part * kRows; row < end; ++row) {
            const Lists own{lists.labels + row * stride, lists.scores + row * stride, lists.n_lists, lists.n_members,
                            lists.width};
            describer->describe(row_of(x, row), own);
            visit(row, *describer);
        }
        monitor.add(end - part * kRows);
    });
}

inline Described describe_candidates(const Csr& x, const LabelTables& tables, const Lists& lists, int n_threads,
                                     Monitor& monitor) {
    Vector<Vector<int32_t>> labels(x.n_rows);
    Vector<Vector<float>> features(x.n_rows);
    describe_rows(x, tables, lists, n_threads, monitor, [&](int64_t row, const CandidateDescriber& found) {
        const int64_t n = found.count();
        labels[row].assign(found.labels(), found.labels() + n);
        features[row].assign(found.features(), found.features() + n * n_features(lists.n_lists));
    });
    Described all;
    for (int64_t row = 0; row < x.n_rows; ++row) {
        all.labels.insert(all.labels.end(), labels[row].begin(), labels[row].end());
        all.features.insert(all.features.end(), features[row].begin(), features[row].end());
        all.ptr.push_back(all.labels.size());
    }
    return all;
}

// The best k candidates of every row; a score is the logistic function of the trees' sum.
inline void rank_candidates(const Csr& x, const LabelTables& tables, const Lists& lists, const BoostedTrees& trees,
                            int64_t k, int n_threads, Monitor& monitor, int32_t* out_labels, float* out_scores) {
    struct Scratch {
        Vector<double> sums;
        Vector<Scored> pool;
    };
    describe_rows(x, tables, lists, n_threads, monitor, [&](int64_t row, const CandidateDescriber& found) {
        thread_local Scratch scratch;
        const int64_t n = found.count();
        scratch.sums.resize(n);
        sum_leaves(trees, found.features(), n_features(lists.n_lists), n, scratch.sums.data());
        scratch.pool.clear();
        for (int64_t i = 0; i < n; ++i) {
            scratch.pool.push_back({static_cast<float>(1.0 / (1.0 + std::exp(-scratch.sums[i]))), found.labels()[i]});
        }
        const int64_t kept = std::min(k, n);
        std::partial_sort(scratch.pool.begin(), scratch.pool.begin() + kept, scratch.pool.end(), better);
        write_topk(scratch.pool.data(), kept, k, out_labels + row * k, out_scores + row * k,
                   [](float score) { return score; });
    });
}

}  // namespace labelwood::ranking
