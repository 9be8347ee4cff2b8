// The rows learned most recently, by feature: the nearest of them vote for their labels.
//
// A row counts as soon as it is added. Features weigh idf^2, where idf = log((n + 2) / (df + 1)) over the rows in the
// index. The length of a row is that of the time when it was added, until the number of rows reaches the next power of
// two: then all are measured anew. So the index is a function of the rows in their order.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>

#include "base/csr.hpp"
#include "base/parallel.hpp"
#include "base/span.hpp"
#include "base/topk.hpp"
#include "online/row_store.hpp"
#include "ranking/label_votes.hpp"

namespace labelwood::online {

// n_neighbors rows vote with the fourth power of their cosine. The rarest features of a row are compared, as long as
// they lead to at most max_visits entries of rows.
struct NearestOptions {
    int64_t n_neighbors;
    int64_t max_visits;
};

class NearestRows {
  public:
    explicit NearestRows(const NearestOptions& options)
        : options_(options), numbers_(std::make_shared<memory::SlabPool>()), label_ptr_(1, 0) {}

    int64_t n_rows() const { return lengths_.size(); }

    template <class Column>
    void add(const StreamRows<Column>& x, const Csr& y) {
        for (int64_t row = 0; row < x.n_rows; ++row) add_row(x, y, row);
    }

    // Searches with each row, then adds it.
    template <class Column>
    void search_then_add(const StreamRows<Column>& x, const Csr& y, int64_t k, int32_t* labels, float* shares) {
        Scratch scratch;
        for (int64_t row = 0; row < x.n_rows; ++row) {
            find(x, row, k, labels + row * k, shares + row * k, scratch);
            add_row(x, y, row);
        }
    }

    // The k labels with the largest share of the votes of every row.
    template <class Column>
    void search(const StreamRows<Column>& x, int64_t k, int n_threads, Monitor& monitor, int32_t* labels,
                float* shares) const {
        constexpr int64_t kRows = 64;
        parallel_for((x.n_rows + kRows - 1) / kRows, n_threads, monitor, [&](int64_t part, int) {
            // A call for a single row runs on the caller's thread and finds the buffers of the call before.
            thread_local Scratch scratch;
            const int64_t end = std::min(x.n_rows, (part + 1) * kRows);
            for (int64_t row = part * kRows; row < end; ++row) {
                find(x, row, k, labels + row * k, shares + row * k, scratch);
            }
            monitor.add(end - part * kRows);
        });
    }

  private:
    struct Term {
        int64_t count;  // rows that have the feature
        int64_t at;
        uint32_t feature;
    };
    struct Scratch {
        Vector<double> dots;  // of rows; zero between searches
        Vector<int32_t> reached;
        Vector<Term> terms;
        Vector<Scored> pool;
        Vector<int32_t> nearest;
        Vector<float> similarities;
        ranking::LabelVotes votes;
    };

    double idf(int64_t count) const {
        return std::log(static_cast<double>(n_rows() + 2) / static_cast<double>(count + 1));
    }

    template <class Column>
    void add_row(const StreamRows<Column>& x, const Csr& y, int64_t row) {
        n_labels_ = std::max(n_labels_, y.n_cols);
        const double factor = unit(x, row);
        double square = 0.0;
        const auto number = static_cast<int32_t>(n_rows());
        for (int64_t e = x.indptr[row]; e < x.indptr[row + 1]; ++e) {
            const uint32_t feature = numbers_.intern(static_cast<uint64_t>(x.indices[e]));
            if (feature == postings_.size()) postings_.emplace_back();
            const double value = static_cast<double>(x.data[e]) * factor;
            const double weighted = value * idf(postings_[feature].size());
            square += weighted * weighted;
            postings_[feature].push_back({static_cast<float>(value), number});
        }
        lengths_.push_back(std::sqrt(square));
        for (int64_t e = y.indptr[row]; e < y.indptr[row + 1]; ++e) labels_.push_back(y.indices[e]);
        label_ptr_.push_back(labels_.size());
        if ((n_rows() & (n_rows() - 1)) == 0) measure_all();
    }

    void measure_all() {
        std::fill(lengths_.begin(), lengths_.end(), 0.0);
        for (const Vector<Scored>& entries : postings_) {
            const double weight = idf(entries.size());
            for (const Scored& entry : entries) {
                const double weighted = static_cast<double>(entry.score) * weight;
                lengths_[entry.id] += weighted * weighted;
            }
        }
        for (double& length : lengths_) length = std::sqrt(length);
    }

    template <class Column>
    static double unit(const StreamRows<Column>& x, int64_t row) {
        double square = 0.0;
        for (int64_t e = x.indptr[row]; e < x.indptr[row + 1]; ++e) {
            square += static_cast<double>(x.data[e]) * static_cast<double>(x.data[e]);
        }
        return static_cast<double>(unit_factor(square));
    }

    template <class Column>
    void find(const StreamRows<Column>& x, int64_t row, int64_t k, int32_t* labels, float* shares,
              Scratch& scratch) const {
        if (scratch.dots.size() < n_rows()) scratch.dots.resize(n_rows(), 0.0);
        const double factor = unit(x, row);
        scratch.terms.clear();
        scratch.reached.clear();
        scratch.pool.clear();
        double square = 0.0;
        for (int64_t e = x.indptr[row]; e < x.indptr[row + 1]; ++e) {
            const uint32_t feature = numbers_.find(static_cast<uint64_t>(x.indices[e]));
            const int64_t count = feature == FeatureNumbers::kNone ? 0 : postings_[feature].size();
            const double weighted = static_cast<double>(x.data[e]) * factor * idf(count);
            square += weighted * weighted;
            if (count > 0) scratch.terms.push_back({count, e, feature});
        }
        std::sort(scratch.terms.begin(), scratch.terms.end(), [](const Term& one, const Term& other) {
            return one.count != other.count ? one.count < other.count : one.at < other.at;
        });
        int64_t visits = options_.max_visits;
        for (const Term& term : scratch.terms) {
            if (term.count > visits) break;
            visits -= term.count;
            const double weight = idf(term.count);
            const double value = static_cast<double>(x.data[term.at]) * factor * weight * weight;
            for (const Scored& entry : postings_[term.feature]) {
                double& dot = scratch.dots[entry.id];
                if (dot == 0.0) scratch.reached.push_back(entry.id);
                dot += value * static_cast<double>(entry.score);
            }
        }
        const double length = std::sqrt(square);
        for (const int32_t found : scratch.reached) {
            const double cosine = scratch.dots[found] / (length * lengths_[found]);
            scratch.dots[found] = 0.0;  // a row that is reached twice is 0 the second time
            // Newer rows come first among equals.
            if (cosine > 0.0) scratch.pool.push_back({static_cast<float>(cosine), -found});
        }
        const int64_t kept = std::min(options_.n_neighbors, scratch.pool.size());
        std::partial_sort(scratch.pool.begin(), scratch.pool.begin() + kept, scratch.pool.end(), better);
        scratch.pool.resize(kept);
        for (Scored& one : scratch.pool) one = {one.score * one.score, -one.id};
        scratch.nearest.resize(k);
        scratch.similarities.resize(k);
        const Csr own{label_ptr_.data(), labels_.data(), nullptr, n_rows(), n_labels_};
        scratch.votes.count(own, scratch.pool.data(), kept, k,
                            {labels, shares, scratch.nearest.data(), scratch.similarities.data()});
    }

    NearestOptions options_;
    FeatureNumbers numbers_;
    Deque<Vector<Scored>> postings_;  // of a feature: the rows that have it, and their values there
    Vector<double> lengths_;
    Vector<int64_t> label_ptr_;
    Vector<int32_t> labels_;
    int64_t n_labels_ = 0;
};

}  // namespace labelwood::online
