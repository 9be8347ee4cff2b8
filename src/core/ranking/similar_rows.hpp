// The training rows most similar to a row, found through an inverted index, vote for their labels.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/csr.hpp"
#include "base/parallel.hpp"
#include "base/span.hpp"
#include "base/topk.hpp"
#include "ranking/label_votes.hpp"

namespace labelwood::ranking {

// Row c of `postings` has the training rows with column c and their values there. Row r of `labels` has the
// labels of training row r. A row is compared by its n_terms largest entries; n_neighbors training rows vote.
struct RowIndex {
    Csr postings, labels;
    int64_t n_terms, n_neighbors;
};

// Finds the labels of the training rows that are similar to a row. One per thread, for any index.
class Neighborhood {
  public:
    void find(const RowIndex& index, const Query& row, int64_t k, const VotedLists& out) {
        if (dots_.size() < index.labels.n_rows) dots_.resize(index.labels.n_rows, 0.0);
        find_neighbors(index, row);
        votes_.count(index.labels, pool_.data(), pool_.size(), k, out);
    }

  private:
    // The training rows of the largest positive cosine in the largest n_terms entries of the row, best first.
    void find_neighbors(const RowIndex& index, const Query& row) {
        double square = 0.0;
        terms_.clear();
        pool_.clear();
        reached_.clear();
        for (int64_t j = 0; j < row.count; ++j) {
            square += static_cast<double>(row.values[j]) * static_cast<double>(row.values[j]);
            terms_.push_back({std::abs(row.values[j]), static_cast<int32_t>(j)});
        }
        const auto factor = static_cast<double>(unit_factor(square));
        const int64_t used = std::min(index.n_terms, terms_.size());
        std::partial_sort(terms_.begin(), terms_.begin() + used, terms_.end(), better);
        for (int64_t i = 0; i < used; ++i) {
            const int32_t at = terms_[i].id;
            const double value = static_cast<double>(row.values[at]) * factor;
            const Query listed = row_of(index.postings, row.columns[at]);
            for (int64_t j = 0; j < listed.count; ++j) {
                double& dot = dots_[listed.columns[j]];
                if (dot == 0.0) reached_.push_back(listed.columns[j]);
                dot += value * static_cast<double>(listed.values[j]);
            }
        }
        for (const int32_t found : reached_) {
            const auto similarity = static_cast<float>(dots_[found]);
            if (similarity > 0.0f) pool_.push_back({similarity, found});
            dots_[found] = 0.0;  // a row that is reached twice is 0 the second time
        }
        const int64_t kept = std::min(index.n_neighbors, pool_.size());
        std::partial_sort(pool_.begin(), pool_.begin() + kept, pool_.end(), better);
        pool_.resize(kept);
    }

    Vector<double> dots_;  // of training rows; zero between rows
    Vector<Scored> terms_, pool_;
    Vector<int32_t> reached_;
    LabelVotes votes_;
};

// Writes both lists of every row of x, one row after the other.
inline void vote(const Csr& x, const RowIndex& index, int64_t k, int n_threads, Monitor& monitor,
                 const VotedLists& out) {
    constexpr int64_t kRows = 64;
    parallel_for((x.n_rows + kRows - 1) / kRows, n_threads, monitor, [&](int64_t part, int) {
        // A call for a single row runs on the caller's thread and finds the buffers of the call before.
        thread_local Neighborhood neighborhood;
        const int64_t end = std::min(x.n_rows, (part + 1) * kRows);
        for (int64_t row = part * kRows; row < end; ++row) {
            neighborhood.find(index, row_of(x, row), k, out.of_row(row, k));
        }
        monitor.add(end - part * kRows);
    });
}

}  // namespace labelwood::ranking
