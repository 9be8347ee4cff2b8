// Algorithm 2, line 4: k-means++ and a few of Lloyd's rounds over projected label vectors.
//
// Sums are in double precision and in row order. Cosines of label vectors tie often, and the reference in the
// tests must break ties the same way.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/rng.hpp"
#include "base/span.hpp"
#include "forest/craft/projected_rows.hpp"

namespace labelwood::forest::craft {

class LabelKmeans {
  public:
    LabelKmeans(int32_t n_columns, int32_t arity, bool cosine)
        : arity_(arity),
          cosine_(cosine),
          one_(n_columns, 0.0),
          centers_(n_columns * arity_, 0.0),
          marked_(n_columns, 0) {}

    // Clusters the given rows. Returns the number of centres and writes each row's cluster to `assigned`.
    int32_t run(const ProjectedRows& y, const Vector<int32_t>& rows, int rounds, Rng& rng, Vector<int32_t>& assigned) {
        choose_centers(y, rows, rng);
        const auto k = static_cast<int32_t>(chosen_.size());
        assigned.assign(rows.size(), 0);
        if (k > 1) {
            set_centers_to_rows(y);
            for (int round = 0; round < rounds; ++round) {
                if (round > 0) move_centers(y, rows, assigned);
                for (int64_t i = 0; i < rows.size(); ++i) assigned[i] = nearest(y, rows[i]);
            }
            wipe_centers();
        }
        return k;
    }

  private:
    // k-means++: draws each further centre with probability proportional to the squared distance to the
    // nearest centre. Under the cosine metric the distance is 1 - cosine, half the squared chord. Ends early
    // when every row equals a centre.
    void choose_centers(const ProjectedRows& y, const Vector<int32_t>& rows, Rng& rng) {
        const auto n = static_cast<uint32_t>(rows.size());
        chosen_.assign(1, rows[rng.below(n)]);
        distance_.assign(rows.size(), 1e300);
        while (chosen_.size() < arity_) {
            const int32_t center = chosen_.back();
            const double scale = y.scale[center];
            for_entries(y, center, [&](int64_t column, float value) { one_[column] = value * scale; });
            double total = 0.0;
            for (int64_t i = 0; i < rows.size(); ++i) {
                const int64_t row = rows[i];
                double dot = 0.0;
                for_entries(y, rows[i], [&](int64_t column, float value) { dot += value * one_[column]; });
                double d = y.square[row] + y.square[center] - 2.0 * (dot * y.scale[row]);
                if (d < kSame) d = 0.0;
                if (cosine_) d *= d;
                distance_[i] = std::min(distance_[i], d);
                total += distance_[i];
            }
            for_entries(y, center, [&](int64_t column, float) { one_[column] = 0.0; });
            if (total <= 0.0) break;
            const double target = rng.uniform() * total;
            double sum = 0.0;
            int64_t pick = rows.size();
            for (int64_t i = 0; i < rows.size() && (pick == rows.size() || sum <= target); ++i) {
                if (distance_[i] > 0.0) pick = i;
                sum += distance_[i];
            }
            chosen_.push_back(rows[pick]);
        }
    }

    void set_centers_to_rows(const ProjectedRows& y) {
        offset_.assign(arity_, 0.0);
        for (int64_t c = 0; c < chosen_.size(); ++c) {
            const double scale = y.scale[chosen_[c]];
            for_entries(y, chosen_[c], [&](int64_t column, float value) { cell(column, c) = value * scale; });
            if (!cosine_) offset_[c] = -0.5 * y.square[chosen_[c]];
        }
    }

    // The mean of a cluster's scaled rows, of unit length under the cosine metric. An empty cluster keeps a
    // centre of zeros.
    void move_centers(const ProjectedRows& y, const Vector<int32_t>& rows, const Vector<int32_t>& assigned) {
        wipe_centers();
        size_.assign(arity_, 0.0);
        for (int64_t i = 0; i < rows.size(); ++i) {
            const int64_t c = assigned[i];
            const double scale = y.scale[rows[i]];
            size_[c] += 1.0;
            for_entries(y, rows[i], [&](int64_t column, float value) { cell(column, c) += value * scale; });
        }
        std::sort(touched_.begin(), touched_.end());
        offset_.assign(arity_, 0.0);
        for (const int32_t column : touched_) {
            for (int64_t c = 0; c < arity_; ++c) {
                const double value = centers_[column * arity_ + c];
                offset_[c] += value * value;
            }
        }
        for (int64_t c = 0; c < arity_; ++c) {
            size_[c] = cosine_ ? (offset_[c] > 0.0 ? 1.0 / std::sqrt(offset_[c]) : 0.0)
                               : (size_[c] > 0.0 ? 1.0 / size_[c] : 0.0);
            offset_[c] = cosine_ ? 0.0 : -0.5 * (offset_[c] * size_[c] * size_[c]);
        }
        for (const int32_t column : touched_) {
            for (int64_t c = 0; c < arity_; ++c) centers_[column * arity_ + c] *= size_[c];
        }
    }

    // The closest centre, the first if several are equally close.
    int32_t nearest(const ProjectedRows& y, int32_t row) {
        score_.assign(arity_, 0.0);
        for_entries(y, row, [&](int64_t column, float value) {
            const double* centers = centers_.data() + column * arity_;
            for (int64_t c = 0; c < arity_; ++c) score_[c] += value * centers[c];
        });
        const double scale = y.scale[row];
        int64_t best = 0;
        for (int64_t c = 0; c < chosen_.size(); ++c) {
            score_[c] = score_[c] * scale + offset_[c];
            if (score_[c] > score_[best] + kSame) best = c;
        }
        return static_cast<int32_t>(best);
    }

    double& cell(int64_t column, int64_t c) {
        if (marked_[column] == 0) {
            marked_[column] = 1;
            touched_.push_back(static_cast<int32_t>(column));
        }
        return centers_[column * arity_ + c];
    }

    void wipe_centers() {
        for (const int32_t column : touched_) {
            const int64_t at = column;
            std::fill_n(centers_.begin() + at * arity_, arity_, 0.0);
            marked_[at] = 0;
        }
        touched_.clear();
    }

    template <class Use>
    static void for_entries(const ProjectedRows& y, int32_t row, Use&& use) {
        const int64_t end = y.ptr[row + 1];
        for (int64_t j = y.ptr[row]; j < end; ++j) {
            use(y.columns[j], y.values[j]);
        }
    }

    static constexpr double kSame = 1e-9;  // scores closer than this are equal: rounding must not decide

    int64_t arity_;
    bool cosine_;
    Vector<double> one_;      // one centre, dense; all zero between uses
    Vector<double> centers_;  // [columns, arity]; all zero between runs
    Vector<uint8_t> marked_;
    Vector<int32_t> touched_, chosen_;
    Vector<double> distance_, offset_, size_, score_;
};

}  // namespace labelwood::forest::craft
