// CRAFTML (Siblini, Kuntz and Meyer, 2018), Algorithms 1 and 2. Trees grow in parallel.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include "base/csr.hpp"
#include "base/parallel.hpp"
#include "base/rng.hpp"
#include "base/span.hpp"
#include "forest/craft/centroid_classifier.hpp"
#include "forest/craft/label_kmeans.hpp"
#include "forest/craft/projected_rows.hpp"
#include "forest/grown_forest.hpp"
#include "forest/mean_labels.hpp"
#include "forest/projection.hpp"

namespace labelwood::forest::craft {

struct Options {
    int32_t first_tree;  // number of the first tree; random draws depend on a tree's number
    int32_t n_trees;
    int32_t arity;        // k
    int32_t max_leaf;     // n_leaf
    int32_t sample;       // n_s
    int32_t rounds;       // i
    ProjectionKind kind;  // of both projections
    int32_t x_columns;    // d'_x
    int32_t y_columns;    // d'_y
    bool x_per_node;      // Dx, else Sx
    bool y_per_node;      // Dy, else Sy
    bool cosine;          // else Euclidean
    CentroidSize centroid;
    int32_t leaf_size;  // 0: every label
    uint64_t seed;
};

enum class Stream : uint64_t { kFeatures = 1, kLabels = 2, kDraws = 3 };

// The seed of a random stream at a node; node 0 stands for the whole tree.
inline uint64_t node_seed(uint64_t seed, Stream stream, int32_t tree, int32_t node) {
    const uint64_t place = (static_cast<uint64_t>(static_cast<uint32_t>(tree)) << 32) | static_cast<uint32_t>(node);
    return mix64(mix64(seed + static_cast<uint64_t>(stream)) ^ mix64(place));
}

// One number per row, equal for equal rows: a cheap test whether all rows of a node are equal.
inline Vector<uint64_t> fingerprints(const Csr& matrix) {
    Vector<uint64_t> prints(matrix.n_rows, 0);
    for (int64_t row = 0; row < matrix.n_rows; ++row) {
        for (int64_t j = matrix.indptr[row]; j < matrix.indptr[row + 1]; ++j) {
            uint32_t bits = 0;
            if (matrix.data != nullptr) std::memcpy(&bits, matrix.data + j, 4);
            const auto column = static_cast<uint64_t>(static_cast<uint32_t>(matrix.indices[j]));
            prints[row] += mix64((column << 32) | bits);
        }
    }
    return prints;
}

class Grower {
  public:
    Grower(const Csr& x, const Csr& y, const Options& options, Monitor& monitor)
        : x_(x), y_(y), options_(options), monitor_(monitor), x_prints_(fingerprints(x)), y_prints_(fingerprints(y)) {}

    Vector<GrownTree> run(int n_threads) {
        Vector<GrownTree> trees(options_.n_trees);
        Vector<std::unique_ptr<Worker>> workers(std::max(n_threads, 1));
        monitor_.set_total(static_cast<int64_t>(options_.n_trees) * x_.n_rows);
        parallel_for(options_.n_trees, n_threads, monitor_, [&](int64_t tree, int number) {
            auto& worker = workers[number];
            if (!worker) worker = std::make_unique<Worker>(*this);
            trees[tree] = worker->grow(options_.first_tree + static_cast<int32_t>(tree));
        });
        return trees;
    }

  private:
    // Grows trees one after the other with the same buffers.
    class Worker {
      public:
        explicit Worker(Grower& shared)
            : shared_(shared),
              options_(shared.options_),
              project_x_(options_.kind, shared.x_.n_cols, options_.x_columns),
              project_y_(options_.kind, shared.y_.n_cols, options_.y_columns),
              clusters_(project_y_.n_columns(), options_.arity, options_.cosine),
              classifier_(project_x_.n_columns(), options_.centroid, options_.cosine),
              leaves_(shared.y_, options_.leaf_size) {}

        // Algorithm 1 with a queue instead of recursion: nodes in breadth-first order.
        GrownTree grow(int32_t tree_number) {
            number_ = tree_number;
            tree_ = {};
            tree_.nodes.resize(1);
            const auto n_rows = static_cast<int32_t>(shared_.x_.n_rows);
            rows_.resize(n_rows);
            for (int32_t i = 0; i < n_rows; ++i) rows_[i] = i;
            spans_.assign(1, {0, n_rows});
            if (!options_.x_per_node) project(Stream::kFeatures, 0, rows_);
            if (!options_.y_per_node) project(Stream::kLabels, 0, rows_);
            for (int32_t node = 0; node < static_cast<int32_t>(tree_.nodes.size()); ++node) {
                shared_.monitor_.check();
                const auto [begin, end] = spans_[node];
                const bool leaf = stops(begin, end) || !divide(node, begin, end);
                if (leaf) make_leaf(node, begin, end);
            }
            return std::move(tree_);
        }

      private:
        // The conditions (i) few rows, (ii) the same features, (iii) the same labels.
        bool stops(int32_t begin, int32_t end) const {
            if (end - begin <= options_.max_leaf) return true;
            auto alike = [&](const Vector<uint64_t>& prints) {
                const uint64_t first = prints[rows_[begin]];
                return std::all_of(rows_.begin() + begin, rows_.begin() + end,
                                   [&](int32_t row) { return prints[row] == first; });
            };
            return alike(shared_.x_prints_) || alike(shared_.y_prints_);
        }

        // Trains the node's classifier and splits its rows; false if no attempt separates them.
        bool divide(int32_t node, int32_t begin, int32_t end) {
            members_.assign(rows_.begin() + begin, rows_.begin() + end);
            if (options_.x_per_node) project(Stream::kFeatures, node, members_);
            if (options_.y_per_node) project(Stream::kLabels, node, members_);
            tree_.nodes[node].seed = projection_seed(Stream::kFeatures, node);
            for (int32_t attempt = 0; attempt < kAttempts; ++attempt) {
                Rng rng(node_seed(options_.seed, Stream::kDraws, number_, node), static_cast<uint64_t>(attempt));
                draw_sample(rng);
                to_local(sample_, options_.y_per_node);
                const int32_t n_clusters = clusters_.run(y_projected_, local_, options_.rounds, rng, assigned_);
                if (n_clusters < 2) continue;
                to_local(sample_, options_.x_per_node);
                classifier_.learn(x_projected_, local_, assigned_, n_clusters, members_.size());
                if (classifier_.centroids.size() < 2) continue;
                all_.resize(members_.size());
                for (int64_t i = 0; i < all_.size(); ++i) all_[i] = static_cast<int32_t>(i);
                to_local(all_, options_.x_per_node);
                classifier_.split(x_projected_, local_, child_);
                if (add_children(node, begin)) return true;
            }
            return false;
        }

        // Positions within members_, at most `sample` of them, in row order.
        void draw_sample(Rng& rng) {
            sample_.resize(members_.size());
            for (int64_t i = 0; i < sample_.size(); ++i) sample_[i] = static_cast<int32_t>(i);
            if (sample_.size() <= options_.sample) return;
            for (int64_t i = 0; i < options_.sample; ++i) {
                std::swap(sample_[i], sample_[i + rng.below(static_cast<uint32_t>(sample_.size() - i))]);
            }
            sample_.resize(options_.sample);
            std::sort(sample_.begin(), sample_.end());
        }

        // Row numbers in a projected matrix: a node's own matrix is indexed by position, the tree's by
        // training row.
        void to_local(const Vector<int32_t>& positions, bool per_node) {
            local_ = positions;
            if (per_node) return;
            for (int32_t& at : local_) at = members_[at];
        }

        // Adds the children that have rows, in cluster order; false if there would be only one.
        bool add_children(int32_t node, int32_t begin) {
            const int64_t n_clusters = classifier_.centroids.size();
            Vector<int32_t> sizes(n_clusters, 0);
            for (const int32_t c : child_) ++sizes[c];
            if (n_clusters - std::count(sizes.begin(), sizes.end(), 0) < 2) return false;
            tree_.nodes[node].first_child = static_cast<int32_t>(tree_.nodes.size());
            Vector<int32_t> next(n_clusters, 0);
            int32_t at = begin;
            for (int64_t c = 0; c < n_clusters; ++c) {
                next[c] = at;
                at += sizes[c];
                if (sizes[c] > 0) add_child(node, classifier_.centroids[c], next[c], at);
            }
            for (int64_t i = 0; i < members_.size(); ++i) {
                rows_[next[child_[i]]++] = members_[i];
            }
            return true;
        }

        void add_child(int32_t parent, const CentroidClassifier::Centroid& centroid, int32_t begin, int32_t end) {
            GrownNode child;
            child.bias = centroid.bias;
            child.weights_begin = tree_.weights.size();
            tree_.features.insert(tree_.features.end(), centroid.columns.begin(), centroid.columns.end());
            tree_.weights.insert(tree_.weights.end(), centroid.values.begin(), centroid.values.end());
            child.weights_end = tree_.weights.size();
            tree_.nodes.push_back(child);
            ++tree_.nodes[parent].n_children;
            spans_.emplace_back(begin, end);
        }

        // Algorithm 1, line 10: the mean label vector.
        void make_leaf(int32_t node, int32_t begin, int32_t end) {
            leaves_.write({rows_.data() + begin, end - begin}, tree_, node);
            shared_.monitor_.add(end - begin);
        }

        uint32_t projection_seed(Stream scratch, int32_t node) const {
            const bool per_node = scratch == Stream::kFeatures ? options_.x_per_node : options_.y_per_node;
            return static_cast<uint32_t>(node_seed(options_.seed, scratch, number_, per_node ? node : 0) >> 32);
        }

        void project(Stream scratch, int32_t node, const Vector<int32_t>& rows) {
            const bool features = scratch == Stream::kFeatures;
            ProjectedRows& out = features ? x_projected_ : y_projected_;
            const Csr& matrix = features ? shared_.x_ : shared_.y_;
            Projector& projector = features ? project_x_ : project_y_;
            const uint32_t seed = projection_seed(scratch, node);
            out.clear();
            for (const int32_t row : rows) {
                const int64_t count = matrix.row_nnz(row), width = projector.width(count);
                if (!features) ones_.assign(count, 1.0f);
                const Query plain{matrix.indices + matrix.indptr[row],
                                  features ? matrix.data + matrix.indptr[row] : ones_.data(), count};
                const int64_t from = out.columns.size();
                out.columns.resize(from + width);
                out.values.resize(from + width);
                projector.project(plain, seed, out.columns.data() + from, out.values.data() + from);
                if (features) {
                    out.ptr.push_back(out.columns.size());
                } else {
                    merge_row(out, from);
                    out.close_row(options_.cosine);
                }
            }
        }

        // Sums entries of equal columns: the length of a row depends on them. Label rows are short.
        void merge_row(ProjectedRows& out, int64_t from) {
            if (options_.kind != ProjectionKind::kHash) return;
            entries_.clear();
            for (int64_t j = from; j < out.columns.size(); ++j) entries_.emplace_back(out.columns[j], out.values[j]);
            std::sort(entries_.begin(), entries_.end());
            out.columns.resize(from);
            out.values.resize(from);
            for (int64_t i = 0; i < entries_.size();) {
                const int32_t column = entries_[i].first;
                float sum = 0.0f;
                for (; i < entries_.size() && entries_[i].first == column; ++i) sum += entries_[i].second;
                if (sum == 0.0f) continue;
                out.columns.push_back(column);
                out.values.push_back(sum);
            }
        }

        static constexpr int32_t kAttempts = 3;

        Grower& shared_;
        const Options options_;
        Projector project_x_, project_y_;
        LabelKmeans clusters_;
        CentroidClassifier classifier_;
        MeanLabels leaves_;
        int32_t number_ = 0;
        GrownTree tree_;
        ProjectedRows x_projected_, y_projected_;
        Vector<int32_t> rows_;                       // training rows; those of a node are contiguous
        Vector<std::pair<int32_t, int32_t>> spans_;  // per node, into rows_
        Vector<int32_t> members_, sample_, all_, local_, assigned_, child_;
        Vector<float> ones_;
        Vector<std::pair<int32_t, float>> entries_;
    };

    const Csr x_;
    const Csr y_;
    const Options options_;
    Monitor& monitor_;
    Vector<uint64_t> x_prints_, y_prints_;
};

// `seeds` of the result are those of the projections of x: per inner node or per tree.
inline FlatForest grow_forest(const Csr& x, const Csr& y, const Options& options, int n_threads, Monitor& monitor) {
    FlatForest flat = flatten(Grower(x, y, options, monitor).run(n_threads));
    if (options.x_per_node) return flat;
    flat.seeds.clear();
    for (int32_t tree = options.first_tree; tree < options.first_tree + options.n_trees; ++tree) {
        flat.seeds.push_back(static_cast<uint32_t>(node_seed(options.seed, Stream::kFeatures, tree, 0) >> 32));
    }
    return flat;
}

}  // namespace labelwood::forest::craft
