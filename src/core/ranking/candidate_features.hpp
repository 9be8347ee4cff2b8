// What the second stage of a ranker sees of a row's candidates: one feature vector per candidate.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/csr.hpp"
#include "base/span.hpp"
#include "base/stamped_counts.hpp"

namespace labelwood::ranking {

// What is known of the labels. A label may have several names, rows name_ptr[label] to name_ptr[label + 1].
struct LabelTables {
    const float* log_counts;  // log(1 + training rows)
    Csr together;             // row c, column l: share of the training rows with label c that have label l
    const int64_t* name_ptr;
    Csr names;                   // rows of unit length
    const float* log_name_rows;  // of each name: log(1 + training rows that have its rarest column)
};

// The lists that are proposed for a row: n_lists of `width` labels, side by side; short lists end in -1. The
// first n_members lists are those of members; means are over these.
struct Lists {
    const int32_t* labels;
    const float* scores;
    int64_t n_lists, n_members, width;
};

// Features of each list, then those of the candidate as a whole, in this order. The names are in
// labelwood.scoring.second_look.
enum ListFeature : int64_t { kScore, kPlace, kShare, kPerList };
enum SharedFeature : int64_t {
    kMeanScore,
    kMeanShare,
    kMeanReciprocal,
    kPlaceOfMean,
    kLogCount,
    kSupport,
    kSupportShare,
    kNameCosine,
    kNameFound,
    kNameLength,
    kRowLength,
    kNameRows,
    kShared
};

inline int64_t n_features(int64_t n_lists) {
    return n_lists * kPerList + kShared;
}

// Describes one row after another. One per worker.
class CandidateDescriber {
  public:
    CandidateDescriber(const LabelTables& tables, int64_t n_lists, int64_t n_members)
        : tables_(tables),
          n_lists_(n_lists),
          n_members_(n_members),
          n_features_(n_features(n_lists)),
          positions_(tables.together.n_rows) {}

    // The candidates are in the order in which the lists name them first.
    void describe(const Query& row, const Lists& lists) {
        labels_.clear();
        features_.clear();
        positions_.clear();
        for (int64_t list = 0; list < n_lists_; ++list) add_list(lists, list);
        add_means();
        add_supports();
        add_names(row);
    }
    int64_t count() const { return labels_.size(); }
    const int32_t* labels() const { return labels_.data(); }
    const float* features() const { return features_.data(); }

  private:
    float& feature(int64_t candidate, int64_t which) { return features_[candidate * n_features_ + which]; }
    float& shared(int64_t candidate, SharedFeature which) { return feature(candidate, n_lists_ * kPerList + which); }

    void add_list(const Lists& lists, int64_t list) {
        const int32_t* labels = lists.labels + list * lists.width;
        const float* scores = lists.scores + list * lists.width;
        const float best = std::max(scores[0], 1e-9f);
        for (int64_t place = 0; place < lists.width && labels[place] >= 0; ++place) {
            const auto next = static_cast<int32_t>(labels_.size());
            const int64_t candidate = positions_.value_or(labels[place], next);
            if (candidate == next) add_candidate(labels[place], lists.width);
            const int64_t first = list * kPerList;
            feature(candidate, first + kScore) = scores[place];
            feature(candidate, first + kPlace) = static_cast<float>(place + 1);
            feature(candidate, first + kShare) = scores[place] / best;
        }
    }

    // A label that a list does not have has score 0 there and the place after the last.
    void add_candidate(int32_t label, int64_t width) {
        labels_.push_back(label);
        const int64_t start = features_.size();
        features_.resize(start + n_features_, 0.0f);
        for (int64_t list = 0; list < n_lists_; ++list) {
            features_[start + list * kPerList + kPlace] = static_cast<float>(width + 1);
        }
    }

    void add_means() {
        for (int64_t candidate = 0; candidate < count(); ++candidate) {
            double score = 0.0, share = 0.0, reciprocal = 0.0;
            for (int64_t member = 0; member < n_members_; ++member) {
                const float* own = &feature(candidate, member * kPerList);
                score += static_cast<double>(own[kScore]);
                share += static_cast<double>(own[kShare]);
                reciprocal += 1.0 / static_cast<double>(own[kPlace]);
            }
            const auto n = static_cast<double>(n_members_);
            shared(candidate, kMeanScore) = static_cast<float>(score / n);
            shared(candidate, kMeanShare) = static_cast<float>(share / n);
            shared(candidate, kMeanReciprocal) = static_cast<float>(reciprocal / n);
            shared(candidate, kLogCount) = tables_.log_counts[labels_[candidate]];
        }
        order_.resize(count());
        for (int64_t i = 0; i < count(); ++i) order_[i] = static_cast<int32_t>(i);
        std::sort(order_.begin(), order_.end(), [&](int32_t a, int32_t b) {
            const float left = shared(a, kMeanShare), right = shared(b, kMeanShare);
            return left != right ? left > right : labels_[a] < labels_[b];
        });
        for (int64_t i = 0; i < count(); ++i) shared(order_[i], kPlaceOfMean) = static_cast<float>(i + 1);
    }

    // What the other candidates say for a label: the sum of their mean scores times the share of their training
    // rows that have the label.
    void add_supports() {
        supports_.resize(count());
        std::fill(supports_.begin(), supports_.end(), 0.0);
        for (int64_t candidate = 0; candidate < count(); ++candidate) {
            const auto score = static_cast<double>(shared(candidate, kMeanScore));
            const Query others = row_of(tables_.together, labels_[candidate]);
            for (int64_t j = 0; j < others.count; ++j) {
                const int32_t at = positions_.value_or(others.columns[j], -1);
                if (at >= 0) supports_[at] += score * static_cast<double>(others.values[j]);
            }
        }
        double most = 1e-9;
        for (const double support : supports_) most = std::max(most, support);
        for (int64_t candidate = 0; candidate < count(); ++candidate) {
            shared(candidate, kSupport) = static_cast<float>(supports_[candidate]);
            shared(candidate, kSupportShare) = static_cast<float>(supports_[candidate] / most);
        }
    }

    // The best of a label's names: its cosine with the row, the share of its squared length in columns that the
    // row has, its number of columns, and how common its rarest column is.
    void add_names(const Query& row) {
        double square = 0.0;
        for (int64_t j = 0; j < row.count; ++j) {
            square += static_cast<double>(row.values[j]) * static_cast<double>(row.values[j]);
        }
        const auto factor = static_cast<double>(unit_factor(square));
        for (int64_t candidate = 0; candidate < count(); ++candidate) {
            double best_cosine = 0.0, best_found = -1.0, length = 0.0;
            float log_rows = 0.0f;
            const int64_t label = labels_[candidate];
            for (int64_t name = tables_.name_ptr[label]; name < tables_.name_ptr[label + 1]; ++name) {
                const Query words = row_of(tables_.names, name);
                double cosine = 0.0, found = 0.0;
                for (int64_t j = 0; j < words.count; ++j) {
                    const auto weight = static_cast<double>(words.values[j]);
                    const float value = value_of(row, words.columns[j]);
                    cosine += weight * static_cast<double>(value);
                    if (value != 0.0f) found += weight * weight;
                }
                best_cosine = std::max(best_cosine, cosine * factor);
                if (found > best_found) {
                    best_found = found;
                    length = static_cast<double>(words.count);
                    log_rows = tables_.log_name_rows[name];
                }
            }
            shared(candidate, kNameCosine) = static_cast<float>(best_cosine);
            shared(candidate, kNameFound) = static_cast<float>(std::max(best_found, 0.0));
            shared(candidate, kNameLength) = static_cast<float>(length);
            shared(candidate, kRowLength) = static_cast<float>(row.count);
            shared(candidate, kNameRows) = log_rows;
        }
    }

    // Names are short: a search in the row costs less than laying the row out.
    static float value_of(const Query& row, int32_t column) {
        const int32_t* end = row.columns + row.count;
        const int32_t* at = std::lower_bound(row.columns, end, column);
        return at != end && *at == column ? row.values[at - row.columns] : 0.0f;
    }

    LabelTables tables_;
    int64_t n_lists_, n_members_, n_features_;
    StampedCounts positions_;
    Vector<int32_t> labels_, order_;
    Vector<float> features_;
    Vector<double> supports_;
};

}  // namespace labelwood::ranking
