// Grows label trees by clustering label vectors: balanced 2-means (Parabel) and k-means (the paper's section
// 2.2).
//
// A tree is grown as (parent, label) pairs, parents before children, and frozen into flat arrays in Python.
// The nodes of a level are split in parallel; a level of few nodes is split node by node, by all threads
// together. Every sum is taken in an order fixed by the data, so the number of threads does not change the
// result.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

#include "base/csr.hpp"
#include "base/parallel.hpp"
#include "base/rng.hpp"
#include "base/span.hpp"
#include "base/stamped_counts.hpp"
#include "simd/search.hpp"
#include "simd/solver.hpp"

namespace labelwood::label_tree {

struct GrownTree {
    Vector<int32_t> parent;
    Vector<int32_t> label;

    int32_t add(int32_t parent_id, int32_t label_id) {
        parent.push_back(parent_id);
        label.push_back(label_id);
        return static_cast<int32_t>(parent.size()) - 1;
    }
};

struct ClusterOptions {
    bool balanced;
    int32_t arity;
    int32_t max_leaf;   // balanced: a node of at most this many labels becomes the parent of their leaves
    int32_t max_depth;  // k-means: depth of the deepest leaves
    int32_t max_rounds;
    uint64_t seed;
    int n_threads;
};

// Label vectors: sparse ones, and dense columns beside them, [labels, width].
struct ClusteredVectors {
    Csr sparse;
    const float* dense = nullptr;
    int64_t width = 0;
};

// Splits the labels of one node. `ids` belongs to the worker, so that splits can run side by side.
class Splitter {
  public:
    Splitter(const ClusteredVectors& vectors, const ClusterOptions& options, int n_threads, StampedCounts& ids,
             Monitor& monitor)
        : vectors_(vectors.sparse),
          dense_(vectors.dense),
          width_(vectors.width),
          options_(options),
          n_threads_(n_threads),
          ids_(ids),
          monitor_(monitor) {}

    // Balanced: splits into `parts` groups whose sizes differ by at most one, by recursive 2-means.
    void balanced(Vector<int32_t> labels, int32_t parts, Rng& rng, Vector<Vector<int32_t>>* out) {
        if (parts <= 1 || labels.size() <= 1) {
            out->push_back(std::move(labels));
            return;
        }
        const int32_t left_parts = parts / 2;
        const int64_t left_size = labels.size() * left_parts / parts;
        two_means(&labels, left_size, rng);
        Vector<int32_t> left(labels.begin(), labels.begin() + left_size);
        Vector<int32_t> right(labels.begin() + left_size, labels.end());
        balanced(std::move(left), left_parts, rng, out);
        balanced(std::move(right), parts - left_parts, rng, out);
    }

    // k-means on unit vectors in Euclidean distance, starting from `arity` random labels; empty clusters are
    // dropped.
    void kmeans(const Vector<int32_t>& labels, Rng& rng, Vector<Vector<int32_t>>* out) {
        const int64_t n = labels.size();
        const int64_t k = options_.arity;
        compact(labels);
        Vector<int32_t> picks(labels.size());
        std::iota(picks.begin(), picks.end(), 0);
        for (int64_t i = 0; i < k; ++i) {
            std::swap(picks[i], picks[i + rng.below(static_cast<uint32_t>(n - i))]);
        }
        Vector<float> centres(n_local_ * k, 0.0f);
        Vector<float> half_norm(k, 0.5f);
        for (int64_t c = 0; c < k; ++c) add_to(picks[c], 1.0f, centres.data() + c, k);
        Vector<int32_t> assigned(labels.size(), -1), before;
        for (int32_t round = 0; round < options_.max_rounds; ++round) {
            before = assigned;
            assign(centres, half_norm, k, &assigned);
            if (assigned == before) break;
            recentre(assigned, k, &centres, &half_norm);
        }
        Vector<Vector<int32_t>> clusters(k);
        for (int64_t i = 0; i < n; ++i) {
            clusters[assigned[i]].push_back(labels[i]);
        }
        for (auto& cluster : clusters) {
            if (!cluster.empty()) out->push_back(std::move(cluster));
        }
    }

  private:
    static constexpr int64_t kPiece = 64;  // labels per unit of parallel work

    // Copies the node's sparse vectors onto its own columns, so that centres stay small. The dense columns follow.
    void compact(const Vector<int32_t>& labels) {
        labels_ = labels;
        ids_.clear();
        ptr_.assign(1, 0);
        columns_.clear();
        values_.clear();
        int64_t total = 0;
        for (const int32_t label : labels) total += vectors_.row_nnz(label);
        columns_.reserve(total);  // growing arrays would be there twice
        values_.reserve(total);
        int32_t next = 0;
        for (const int32_t label : labels) {
            for (int64_t j = vectors_.indptr[label]; j < vectors_.indptr[label + 1]; ++j) {
                const int32_t id = ids_.value_or(vectors_.indices[j], next);
                next += id == next;
                columns_.push_back(id);
                values_.push_back(vectors_.data[j]);
            }
            ptr_.push_back(columns_.size());
        }
        n_sparse_ = next;
        n_local_ = n_sparse_ + width_;
        all_columns_.resize(width_);
        std::iota(all_columns_.begin(), all_columns_.end(), static_cast<int32_t>(n_sparse_));
    }

    const float* dense_of(int64_t item) const { return dense_ + labels_[item] * width_; }

    void add_to(int64_t item, float factor, float* dense, int64_t stride) const {
        for (int64_t j = ptr_[item]; j < ptr_[item + 1]; ++j) {
            dense[columns_[j] * stride] += factor * values_[j];
        }
        const float* own = dense_of(item);
        float* to = dense + n_sparse_ * stride;
        for (int64_t j = 0; j < width_; ++j) to[j * stride] += factor * own[j];
    }

    float dot(int64_t item, const float* dense) const {
        float sum = 0.0f;
        for (int64_t j = ptr_[item]; j < ptr_[item + 1]; ++j) {
            sum += values_[j] * dense[columns_[j]];
        }
        if (width_ > 0) sum += simd::solver().dot(dense_of(item), dense + n_sparse_, width_);
        return sum;
    }

    // Orders the labels so that the first left_size belong to the first cluster. The centres are unit
    // vectors; only their difference matters. Sums are updated by the labels that changed sides, few after
    // the first rounds.
    void two_means(Vector<int32_t>* labels, int64_t left_size, Rng& rng) {
        const int64_t n = labels->size();
        compact(*labels);
        const auto first = static_cast<int64_t>(rng.below(static_cast<uint32_t>(n)));
        auto second = static_cast<int64_t>(rng.below(static_cast<uint32_t>(n - 1)));
        if (second >= first) ++second;
        Vector<float> left(n_local_, 0.0f), right(n_local_, 0.0f), difference(n_local_, 0.0f);
        add_to(first, 1.0f, difference.data(), 1);
        add_to(second, -1.0f, difference.data(), 1);
        Vector<float> scores(n);
        Vector<int32_t> order(n);
        Vector<uint8_t> on_left(n, 0), was_left;
        for (int32_t round = 0; round < options_.max_rounds; ++round) {
            Monitor quiet;
            parallel_for((n + kPiece - 1) / kPiece, n_threads_, quiet, [&](int64_t piece, int) {
                for (int64_t i = piece * kPiece; i < std::min(n, (piece + 1) * kPiece); ++i) {
                    scores[i] = dot(i, difference.data());
                }
            });
            monitor_.check();
            std::iota(order.begin(), order.end(), 0);
            std::nth_element(order.begin(), order.begin() + left_size, order.end(), [&](int32_t a, int32_t b) {
                const float x = scores[a], y = scores[b];
                return x != y ? x > y : a < b;
            });
            was_left = on_left;
            std::fill(on_left.begin(), on_left.end(), static_cast<uint8_t>(0));
            for (int64_t i = 0; i < left_size; ++i) on_left[order[i]] = 1;
            int64_t moved = 0;
            for (int64_t i = 0; i < n; ++i) moved += on_left[i] != was_left[i];
            if (round > 0 && moved * 1000 <= n) break;
            parallel_for(2, n_threads_, quiet, [&](int64_t side, int) {
                Vector<float>& sum = side == 0 ? left : right;
                for (int64_t i = 0; i < n; ++i) {
                    const bool now = (on_left[i] != 0) == (side == 0);
                    const bool was = round > 0 && (was_left[i] != 0) == (side == 0);
                    if (now != was) add_to(i, now ? 1.0f : -1.0f, sum.data(), 1);
                }
            });
            const float l = inverse_norm(left), r = inverse_norm(right);
            for (int64_t f = 0; f < n_local_; ++f) difference[f] = l * left[f] - r * right[f];
        }
        Vector<int32_t> arranged;
        arranged.reserve(labels->size());
        for (const bool left_side : {true, false}) {
            for (int64_t i = 0; i < n; ++i) {
                if ((on_left[i] != 0) == left_side) arranged.push_back((*labels)[i]);
            }
        }
        labels->swap(arranged);
    }

    static float inverse_norm(const Vector<float>& vector) {
        double square = 0.0;
        for (const float v : vector) square += static_cast<double>(v) * v;
        return square > 0.0 ? static_cast<float>(1.0 / std::sqrt(square)) : 0.0f;
    }

    // |v - c|^2 is smallest where v.c - |c|^2 / 2 is largest.
    void assign(const Vector<float>& centres, const Vector<float>& half_norm, int64_t k, Vector<int32_t>* assigned) {
        const int64_t n = ptr_.size() - 1;
        Monitor quiet;
        parallel_for((n + kPiece - 1) / kPiece, n_threads_, quiet, [&](int64_t piece, int) {
            Vector<float> scores(k);
            for (int64_t i = piece * kPiece; i < std::min(n, (piece + 1) * kPiece); ++i) {
                for (int64_t c = 0; c < scores.size(); ++c) scores[c] = -half_norm[c];
                const int64_t begin = ptr_[i];
                simd::search().accumulate(columns_.data() + begin, values_.data() + begin, ptr_[i + 1] - begin,
                                          centres.data(), k, scores.data());
                simd::search().accumulate(all_columns_.data(), dense_of(i), width_, centres.data(), k, scores.data());
                const auto best = std::max_element(scores.begin(), scores.end());
                (*assigned)[i] = static_cast<int32_t>(best - scores.begin());
            }
        });
        monitor_.check();
    }

    void recentre(const Vector<int32_t>& assigned, int64_t k, Vector<float>* centres, Vector<float>* half_norm) {
        std::fill(centres->begin(), centres->end(), 0.0f);
        Vector<int64_t> size(k, 0);
        for (int64_t i = 0; i < assigned.size(); ++i) {
            ++size[assigned[i]];
            add_to(static_cast<int64_t>(i), 1.0f, centres->data() + assigned[i], k);
        }
        Vector<double> square(k, 0.0);
        for (int64_t f = 0; f < n_local_; ++f) {
            for (int64_t c = 0; c < k; ++c) {
                float& value = (*centres)[f * k + c];
                if (size[c] > 0) value /= static_cast<float>(size[c]);
                square[c] += static_cast<double>(value) * value;
            }
        }
        for (int64_t c = 0; c < k; ++c) {
            // An empty cluster would win every label that no centre attracts: put it out of reach.
            (*half_norm)[c] = size[c] > 0 ? static_cast<float>(0.5 * square[c]) : 1e30f;
        }
    }

    const Csr& vectors_;
    const float* dense_;
    const int64_t width_;
    const ClusterOptions& options_;
    int n_threads_;
    StampedCounts& ids_;
    Monitor& monitor_;
    Vector<int64_t> ptr_;
    Vector<int32_t> columns_;
    Vector<float> values_;
    int64_t n_sparse_ = 0, n_local_ = 0;
    Vector<int32_t> labels_, all_columns_;  // of the node; the local numbers of the dense columns
};

inline GrownTree grow(const ClusteredVectors& vectors, const ClusterOptions& options, Monitor& monitor) {
    struct Pending {
        int32_t node;
        Vector<int32_t> labels;
        Vector<Vector<int32_t>> parts;
    };
    GrownTree tree;
    Vector<Pending> level(1), next;
    Vector<StampedCounts> ids(std::max(options.n_threads, 1), StampedCounts(vectors.sparse.n_cols));
    level[0].node = tree.add(-1, -1);
    level[0].labels.resize(vectors.sparse.n_rows);
    std::iota(level[0].labels.begin(), level[0].labels.end(), 0);

    for (int32_t depth = 0; !level.empty(); ++depth) {
        auto ends = [&](const Pending& p) {
            const int64_t n = p.labels.size();
            return options.balanced ? n <= std::max(options.max_leaf, 2)
                                    : n <= options.arity || depth >= options.max_depth - 1;
        };
        auto split = [&](Pending& p, int n_threads, int worker) {
            if (ends(p)) return;
            Rng rng(options.seed, static_cast<uint64_t>(p.node));
            Splitter splitter(vectors, options, n_threads, ids[worker], monitor);
            if (options.balanced) {
                const int64_t n = p.labels.size();
                const auto parts = std::min<int64_t>(options.arity, (n + options.max_leaf - 1) / options.max_leaf);
                splitter.balanced(p.labels, static_cast<int32_t>(parts), rng, &p.parts);
            } else {
                splitter.kmeans(p.labels, rng, &p.parts);
            }
        };
        // Few nodes are split one by one, by all threads; many nodes in parallel, by one thread each.
        const bool few = level.size() < 4 * options.n_threads;
        parallel_for(level.size(), few ? 1 : options.n_threads, monitor,
                     [&](int64_t i, int worker) { split(level[i], few ? options.n_threads : 1, worker); });
        next.clear();
        for (Pending& p : level) {
            if (p.parts.size() <= 1) {  // small enough, or clustering cannot separate the labels
                for (const int32_t label : p.labels) tree.add(p.node, label);
                continue;
            }
            for (auto& part : p.parts) {
                if (part.size() == 1) {
                    tree.add(p.node, part.front());
                } else {
                    next.push_back({tree.add(p.node, -1), std::move(part), {}});
                }
            }
        }
        level.swap(next);
    }
    return tree;
}

}  // namespace labelwood::label_tree
