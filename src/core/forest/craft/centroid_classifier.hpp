// Centroids of the clusters' projected rows, and the split by the closest centroid (Algorithm 2, lines 5-7,
// and Algorithm 1, line 5).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/span.hpp"
#include "forest/craft/projected_rows.hpp"
#include "simd/forest/router.hpp"
#include "sparse/keep_largest.hpp"

namespace labelwood::forest::craft {

// Entries kept of a centroid: the largest, until they make up `share` of its squared length and are at least
// `least`. A node with n rows keeps at most `most` entries for every `rows` rows, and at least `most`; 0
// keeps all. Most nodes have few rows, from which only a few entries can be told from noise.
struct CentroidSize {
    double share;
    int32_t least;
    int32_t most;
    int32_t rows;

    int64_t limit(int64_t n_rows) const {
        if (most == 0) return std::numeric_limits<int64_t>::max();
        return std::max<int64_t>(most, most * static_cast<int64_t>(n_rows) / rows);
    }
};

// The classifier of a node: one sparse vector and a bias per child.
class CentroidClassifier {
  public:
    CentroidClassifier(int32_t n_columns, const CentroidSize& size, bool cosine)
        : size_(size), cosine_(cosine), sums_(n_columns, 0.0f), position_(n_columns, 0) {}

    struct Centroid {
        Vector<int32_t> columns;
        Vector<float> values;
        float bias = 0.0f;
    };

    // Makes the centroid of each cluster's sampled rows; an empty cluster gets none. The mean of the siblings
    // is subtracted: this changes no comparison of scores, and makes the largest entries those that decide.
    // `n_rows` is the number of all rows of the node.
    void learn(const ProjectedRows& x, const Vector<int32_t>& rows, const Vector<int32_t>& assigned, int32_t n_clusters,
               int64_t n_rows) {
        members_.resize(n_clusters);
        for (auto& members : members_) members.clear();
        for (int64_t i = 0; i < rows.size(); ++i) members_[assigned[i]].push_back(rows[i]);
        centroids.clear();
        for (const auto& members : members_) {
            if (!members.empty()) centroids.push_back(mean_row(x, members));
        }
        number_columns();
        for (Centroid& centroid : centroids) center(centroid, size_.limit(n_rows));
        for (const int32_t column : common_columns_) position_[column] = 0;
    }

    // Assigns each row to the closest centroid, the first if several are equally close.
    void split(const ProjectedRows& x, const Vector<int32_t>& rows, Vector<int32_t>& child) {
        const auto lanes = static_cast<int>((centroids.size() + 7) / 8 * 8);
        lay_out(lanes);
        Vector<double> start(lanes, -1e300), score;
        for (int64_t c = 0; c < centroids.size(); ++c) start[c] = static_cast<double>(centroids[c].bias);
        child.resize(rows.size());
        for (int64_t i = 0; i < rows.size(); ++i) {
            score = start;
            const int64_t from = x.ptr[rows[i]], to = x.ptr[rows[i] + 1];
            simd::forest().block_scores(x.columns.data() + from, x.values.data() + from, to - from, position_.data(),
                                        block_.data(), lanes, score.data());
            child[i] = static_cast<int32_t>(std::max_element(score.begin(), score.end()) - score.begin());
        }
        for (const Centroid& centroid : centroids) {
            for (const int32_t column : centroid.columns) position_[column] = 0;
        }
    }

    Vector<Centroid> centroids;

  private:
    // The mean row, of unit length under the cosine metric. Columns are in order of first occurrence.
    Centroid mean_row(const ProjectedRows& x, const Vector<int32_t>& members) {
        touched_.clear();
        for (const int32_t row : members) {
            const int64_t end = x.ptr[row + 1];
            for (int64_t j = x.ptr[row]; j < end; ++j) {
                float& sum = sums_[x.columns[j]];
                if (sum == 0.0f) touched_.push_back(x.columns[j]);
                sum += x.values[j];
            }
        }
        Centroid centroid;
        double square = 0.0;
        // A column whose sum passed through zero is listed twice; the second time its sum is zero.
        for (const int32_t column : touched_) {
            float& sum = sums_[column];
            if (sum == 0.0f) continue;
            square += static_cast<double>(sum) * static_cast<double>(sum);
            centroid.columns.push_back(column);
            centroid.values.push_back(sum);
            sum = 0.0f;
        }
        const auto n_members = static_cast<double>(members.size());
        const double length = cosine_ ? std::sqrt(square) : n_members;
        const auto factor = static_cast<float>(length > 0.0 ? 1.0 / length : 0.0);
        for (float& value : centroid.values) value *= factor;
        if (!cosine_) centroid.bias = static_cast<float>(-0.5 * square / (n_members * n_members));
        return centroid;
    }

    // Numbers the siblings' columns from 1, ascending, and computes the siblings' mean.
    void number_columns() {
        common_columns_.clear();
        for (const Centroid& centroid : centroids) {
            for (const int32_t column : centroid.columns) {
                int32_t& position = position_[column];
                if (position == 0) common_columns_.push_back(column);
                position = 1;
            }
        }
        std::sort(common_columns_.begin(), common_columns_.end());
        for (int64_t i = 0; i < common_columns_.size(); ++i) {
            position_[common_columns_[i]] = static_cast<int32_t>(i) + 1;
        }
        common_.assign(common_columns_.size(), 0.0f);
        const float share = 1.0f / static_cast<float>(centroids.size());
        for (const Centroid& centroid : centroids) {
            for (int64_t j = 0; j < centroid.columns.size(); ++j) {
                common_[place(centroid.columns[j])] += centroid.values[j] * share;
            }
        }
    }

    int64_t place(int32_t column) const { return position_[column] - 1; }

    // Subtracts the siblings' mean and keeps the largest entries, by ascending column.
    void center(Centroid& centroid, int64_t most) {
        rest_.resize(common_.size());
        for (int64_t i = 0; i < common_.size(); ++i) rest_[i] = -common_[i];
        for (int64_t j = 0; j < centroid.columns.size(); ++j) {
            rest_[place(centroid.columns[j])] += centroid.values[j];
        }
        centroid.columns.clear();
        centroid.values.clear();
        largest_.choose(rest_.data(), rest_.size(), size_.share, size_.least, most, [&](int64_t i) {
            centroid.columns.push_back(common_columns_[i]);
            centroid.values.push_back(rest_[i]);
        });
    }

    // Lays the centroids side by side: row position[column] of the block holds the column's values; row 0 is
    // all zero.
    void lay_out(int lanes) {
        block_.assign(lanes, 0.0f);
        int32_t used = 0;
        for (int64_t c = 0; c < centroids.size(); ++c) {
            for (int64_t j = 0; j < centroids[c].columns.size(); ++j) {
                int32_t& position = position_[centroids[c].columns[j]];
                if (position == 0) {
                    position = ++used;
                    block_.resize(block_.size() + lanes, 0.0f);
                }
                block_[int64_t{position} * lanes + c] = centroids[c].values[j];
            }
        }
    }

    const CentroidSize size_;
    bool cosine_;
    Vector<float> sums_;        // all zero between uses
    Vector<float> common_;      // mean of the siblings, on common_columns_
    Vector<float> rest_;        // a centroid without the mean
    Vector<int32_t> position_;  // all zero between uses
    Vector<float> block_;
    Vector<int32_t> touched_, common_columns_;
    sparse::LargestShare largest_;
    Vector<Vector<int32_t>> members_;
};

}  // namespace labelwood::forest::craft
