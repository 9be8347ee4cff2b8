// The approximate k-nearest-neighbour graph of rows on their labels, by counting over the postings of a node.
//
// "tail" (as in the paper): counts the labels that fewer than `threshold` rows of the node have, and compares
// rows by shared / (|y_i| |y_j|), where |y| is the number of all labels of a row.
// "idf": weights every label by the square of log(n / n_l), and compares rows by cosine. The graph is
// approximate: a label of `threshold` rows or more joins a row only to the threshold - 1 rows after it,
// cyclically.
//
// With `fill`, a row of the tail graph that has too few neighbours gets further ones, by the labels that the
// threshold leaves out; such a label joins a row to the threshold - 1 rows after it, cyclically.
//
// Ties go to the row that comes first after row i, cyclically, so that no row is everyone's neighbour.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

#include "base/csr.hpp"
#include "base/parallel.hpp"
#include "base/span.hpp"

namespace labelwood::forest::graph {

enum class LabelGraphKind : int { tail = 0, idf = 1 };

struct LabelGraphOptions {
    LabelGraphKind kind;
    int32_t n_neighbors;
    int32_t threshold;
    bool fill;
};

// Positions within the node: the neighbours of i are neighbors[ptr[i]:ptr[i + 1]], most alike first.
struct LabelGraph {
    Vector<int64_t> ptr;
    Vector<int32_t> neighbors;
    Vector<float> alike;  // y_i . y_j / (|y_i| |y_j|), over the labels that were used
};

// Builds the graphs of one worker. Buffers have an entry per label and per row.
class LabelGraphBuilder {
  public:
    LabelGraphBuilder(const Csr& y, const Monitor& monitor)
        : y_(y), monitor_(monitor), size_(y.n_cols, 0), begin_(y.n_cols, 0), weight_(y.n_cols, 0.0f) {}

    // If all labels are too frequent for any row to have a neighbour, the threshold doubles until one has.
    void build(const int32_t* rows, int32_t n, const LabelGraphOptions& options, LabelGraph* graph) {
        index(rows, n, options);
        int32_t largest = 0;
        for (const int32_t label : labels_) largest = std::max(largest, size_[label]);
        int64_t threshold = options.threshold;
        connect(rows, n, options, threshold, graph);
        while (graph->neighbors.empty() && threshold <= largest && n > 1) {
            threshold *= 2;
            connect(rows, n, options, threshold, graph);
        }
        for (const int32_t label : labels_) size_[label] = 0;
    }

  private:
    struct Candidate {
        float alike;
        int32_t distance;  // from row i, cyclic
        int32_t position;
        bool before(const Candidate& other) const {
            return alike > other.alike || (alike == other.alike && distance < other.distance);
        }
    };

    // Postings of the node's labels, and the weights of labels and rows.
    void index(const int32_t* rows, int32_t n, const LabelGraphOptions& options) {
        labels_.clear();
        int64_t total = 0;
        for (int32_t i = 0; i < n; ++i) {
            for (int64_t j = y_.indptr[rows[i]]; j < y_.indptr[rows[i] + 1]; ++j, ++total) {
                if (size_[y_.indices[j]]++ == 0) labels_.push_back(y_.indices[j]);
            }
        }
        int64_t start = 0;
        for (const int32_t label : labels_) {
            begin_[label] = start;
            start += size_[label];
            size_[label] = 0;
        }
        postings_.resize(total);
        place_.resize(total);
        int64_t entry = 0;
        for (int32_t i = 0; i < n; ++i) {
            for (int64_t j = y_.indptr[rows[i]]; j < y_.indptr[rows[i] + 1]; ++j) {
                const int32_t label = y_.indices[j];
                place_[entry++] = size_[label];
                postings_[begin_[label] + size_[label]++] = i;
            }
        }
        for (const int32_t label : labels_) {
            const float idf = std::log(static_cast<float>(n) / static_cast<float>(size_[label]));
            weight_[label] = options.kind == LabelGraphKind::tail ? 1.0f : idf * idf;
        }
        norm_.resize(n);
        for (int32_t i = 0; i < n; ++i) {
            if (options.kind == LabelGraphKind::tail) {
                norm_[i] = static_cast<float>(y_.row_nnz(rows[i]));
                continue;
            }
            float square = 0.0f;
            for (int64_t j = y_.indptr[rows[i]]; j < y_.indptr[rows[i] + 1]; ++j) {
                square += weight_[y_.indices[j]];
            }
            norm_[i] = std::sqrt(square);
        }
        shared_.resize(n, 0.0f);
    }

    void connect(const int32_t* rows, int32_t n, const LabelGraphOptions& options, int64_t threshold,
                 LabelGraph* graph) {
        graph->ptr.assign(1, 0);
        graph->neighbors.clear();
        graph->alike.clear();
        int64_t entry = 0;
        for (int32_t i = 0; i < n; ++i) {
            monitor_.check();
            const bool tail = options.kind == LabelGraphKind::tail;
            count_shared(rows[i], entry, threshold, [&](int32_t size) { return !tail || size < threshold; });
            choose(i, n, options.n_neighbors, graph);
            const auto missing = options.n_neighbors - static_cast<int32_t>(best_.size());
            if (tail && options.fill && missing > 0) {
                taken_.assign(best_.begin(), best_.end());
                count_shared(rows[i], entry, threshold, [&](int32_t size) { return size >= threshold; });
                for (const Candidate& chosen : taken_) forget(chosen.position);
                choose(i, n, missing, graph);
            }
            graph->ptr.push_back(graph->neighbors.size());
            entry += y_.row_nnz(rows[i]);
        }
    }

    // Adds up, for the other rows of the node, the weights of the labels of `row` that are wanted by their size.
    // `entry` is the row's first place among the postings.
    template <class Wanted>
    void count_shared(int32_t row, int64_t entry, int64_t threshold, const Wanted& wanted) {
        for (int64_t j = y_.indptr[row]; j < y_.indptr[row + 1]; ++j, ++entry) {
            const int32_t label = y_.indices[j], size = size_[label];
            const float gain = weight_[label];
            if (gain <= 0.0f || !wanted(size)) continue;
            const int32_t* posting = postings_.data() + begin_[label];
            const auto steps = static_cast<int32_t>(std::min<int64_t>(size, threshold) - 1);
            int32_t next = place_[entry];
            for (int32_t step = 0; step < steps; ++step) {
                if (++next == size) next = 0;
                float& sum = shared_[posting[next]];
                if (sum == 0.0f) touched_.push_back(posting[next]);
                sum += gain;
            }
        }
    }

    void forget(int32_t position) {
        if (shared_[position] == 0.0f) return;
        shared_[position] = 0.0f;
        touched_.erase(std::find(touched_.begin(), touched_.end(), position));
    }

    // Keeps the best candidates in a short sorted list, which is faster than a heap at these sizes.
    void choose(int32_t i, int32_t n, int32_t most, LabelGraph* graph) {
        best_.clear();
        for (const int32_t j : touched_) {
            const Candidate candidate{shared_[j] / norm_[j], j > i ? j - i : j - i + n, j};
            shared_[j] = 0.0f;
            if (static_cast<int32_t>(best_.size()) == most) {
                if (!candidate.before(best_.back())) continue;
                best_.pop_back();
            }
            int64_t slot = best_.size();
            best_.push_back(candidate);
            for (; slot > 0 && candidate.before(best_[slot - 1]); --slot) best_[slot] = best_[slot - 1];
            best_[slot] = candidate;
        }
        touched_.clear();
        for (const Candidate& chosen : best_) {
            graph->neighbors.push_back(chosen.position);
            graph->alike.push_back(chosen.alike / norm_[i]);
        }
    }

    const Csr y_;
    const Monitor& monitor_;
    Vector<int32_t> size_;  // rows of a label in the node; zero between uses
    Vector<int64_t> begin_;
    Vector<float> weight_;  // of a shared label
    Vector<int32_t> labels_, postings_, place_, touched_;
    Vector<float> norm_, shared_;
    Vector<Candidate> best_, taken_;
};

// The graph of all rows.
inline LabelGraph label_graph(const Csr& y, const LabelGraphOptions& options) {
    Vector<int32_t> rows(y.n_rows);
    std::iota(rows.begin(), rows.end(), 0);
    LabelGraph graph;
    const Monitor monitor;
    LabelGraphBuilder(y, monitor).build(rows.data(), static_cast<int32_t>(y.n_rows), options, &graph);
    return graph;
}

}  // namespace labelwood::forest::graph
