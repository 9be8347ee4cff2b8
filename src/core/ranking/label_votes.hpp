// The labels of the training rows nearest to a row: by their share of the votes, and by the nearest row.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/csr.hpp"
#include "base/span.hpp"
#include "base/topk.hpp"

namespace labelwood::ranking {

// Two lists of k labels per row: by their share of the votes, and by the similarity of the nearest training row
// that has them.
struct VotedLists {
    int32_t* voted;
    float* votes;
    int32_t* nearest;
    float* similarities;

    VotedLists of_row(int64_t row, int64_t k) const {
        return {voted + row * k, votes + row * k, nearest + row * k, similarities + row * k};
    }
};

// Counts the votes of neighbors. One per thread, for any label matrix.
class LabelVotes {
  public:
    // `neighbors` are training rows and their similarities, best first; a vote is a squared similarity. Row r of
    // `labels` has the labels of training row r.
    void count(const Csr& labels, const Scored* neighbors, int64_t n_neighbors, int64_t k, const VotedLists& out) {
        if (votes_.size() < labels.n_cols) {
            votes_.resize(labels.n_cols, 0.0);
            nearest_.resize(labels.n_cols, 0.0f);
        }
        labels_.clear();
        double total = 0.0;
        for (int64_t i = 0; i < n_neighbors; ++i) {
            const Scored& neighbor = neighbors[i];
            const auto vote = static_cast<double>(neighbor.score) * static_cast<double>(neighbor.score);
            total += vote;
            for (int64_t j = labels.indptr[neighbor.id]; j < labels.indptr[neighbor.id + 1]; ++j) {
                const int32_t label = labels.indices[j];
                if (nearest_[label] == 0.0f) {
                    labels_.push_back(label);
                    nearest_[label] = neighbor.score;
                }
                votes_[label] += vote;
            }
        }
        write(k, out.voted, out.votes, [&](int32_t label) { return static_cast<float>(votes_[label] / total); });
        write(k, out.nearest, out.similarities, [&](int32_t label) { return nearest_[label]; });
        for (const int32_t label : labels_) {
            votes_[label] = 0.0;
            nearest_[label] = 0.0f;
        }
    }

  private:
    template <class Score>
    void write(int64_t k, int32_t* labels, float* scores, Score&& score) {
        ranked_.clear();
        for (const int32_t label : labels_) ranked_.push_back({score(label), label});
        const int64_t kept = std::min(k, ranked_.size());
        std::partial_sort(ranked_.begin(), ranked_.begin() + kept, ranked_.end(), better);
        write_topk(ranked_.data(), kept, k, labels, scores, [](float given) { return given; });
    }

    Vector<double> votes_;   // of labels; zero between rows
    Vector<float> nearest_;  // likewise
    Vector<Scored> ranked_;
    Vector<int32_t> labels_;
};

}  // namespace labelwood::ranking
