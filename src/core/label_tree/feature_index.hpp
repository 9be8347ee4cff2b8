// Finds columns among the ascending features of an inner node.
#pragma once

#include <cstdint>

#include "base/span.hpp"
#include "simd/search.hpp"

namespace labelwood::label_tree {

// Finds columns in one of two ways, chosen per node by size. A node that uses at least one column in kSparse
// has ranks: a bit per column and the number of features before each word, small enough to stay in cache. A
// sparser node has buckets: columns with the same high bits share a bucket of about two features, and the
// starts of the buckets are kept. Either takes at most about twice the bytes of the features, and is built
// when a model is loaded.
class FeatureIndex {
  public:
    FeatureIndex(const int64_t* feature_ptr, const int32_t* features, int64_t n_inner, int64_t n_cols)
        : feature_ptr_(feature_ptr), features_(features), n_words_(n_cols / 32 + 1) {
        for (int64_t node = 0; node < n_inner; ++node) {
            const bool ranked = n_features(node) * kSparse >= n_cols;
            nodes_.push_back({ranked, 0, static_cast<int64_t>(ranked ? ranks_.size() : starts_.size())});
            if (ranked) {
                ranks_.resize(ranks_.size() + n_words_);
                set_ranks(node, ranks_.data() + nodes_.back().at);
            } else {
                add_buckets(node, n_cols);
            }
        }
    }

    int64_t n_features(int64_t node) const { return feature_ptr_[node + 1] - feature_ptr_[node]; }

    // The node's ranks, or null if it has buckets.
    const simd::Rank* ranks(int64_t node) const {
        const Node& entry = nodes_[node];
        return entry.ranked ? ranks_.data() + entry.at : nullptr;
    }

    // Ranks for a node that has buckets, while a batch needs them. They are written into `scratch`, which is
    // all zero before and after. Worth it once the look-ups outnumber the node's features.
    const simd::Rank* lend_ranks(int64_t node, Vector<simd::Rank>& scratch) const {
        if (scratch.empty()) scratch.resize(n_words_);
        set_ranks(node, scratch.data());
        return scratch.data();
    }
    void take_back(int64_t node, Vector<simd::Rank>& scratch) const {
        for (int64_t j = feature_ptr_[node]; j < feature_ptr_[node + 1]; ++j) {
            scratch[features_[j] >> 5] = simd::Rank{};
        }
    }

    // Finds a query's columns in the node's buckets: their positions among the features, and the values.
    // Returns how many. Prefetches look-ups, since a single query meets cold memory.
    int64_t match_buckets(int64_t node, const int32_t* columns, const float* values, int64_t count, int32_t* rows,
                          float* matched) const {
        const Node& entry = nodes_[node];
        const uint32_t* starts = starts_.data() + entry.at;
        const int32_t* base = features_ + feature_ptr_[node];
        int64_t n = 0;
        for (int64_t i = 0; i < count; ++i) {
            if (i + 2 * simd::kAhead < count) {
                __builtin_prefetch(starts + (columns[i + 2 * simd::kAhead] >> entry.shift));
                __builtin_prefetch(base + starts[columns[i + simd::kAhead] >> entry.shift]);
            }
            const uint32_t* start = starts + (columns[i] >> entry.shift);
            for (uint32_t j = start[0]; j < start[1]; ++j) {
                if (base[j] != columns[i]) continue;
                rows[n] = static_cast<int32_t>(j);
                matched[n++] = values[i];
            }
        }
        return n;
    }

  private:
    static constexpr int64_t kSparse = 32;  // ranks take 8 bytes per 32 columns: at this density, 8 bytes per feature

    struct Node {
        bool ranked;
        uint8_t shift;  // buckets: column >> shift is the bucket
        int64_t at;     // into ranks_ or starts_
    };

    // Writes only the words that have a feature.
    void set_ranks(int64_t node, simd::Rank* ranks) const {
        const int32_t* base = features_ + feature_ptr_[node];
        for (int64_t j = 0; j < n_features(node); ++j) {
            simd::Rank& word = ranks[base[j] >> 5];
            if (word.bits == 0) word.before = static_cast<uint32_t>(j);
            word.bits |= 1u << (base[j] & 31);
        }
    }

    void add_buckets(int64_t node, int64_t n_cols) {
        const int64_t count = n_features(node);
        uint8_t shift = 0;
        while ((n_cols >> shift) > count / 2 + 1) ++shift;
        nodes_.back().shift = shift;
        const int32_t* base = features_ + feature_ptr_[node];
        int64_t at = 0;
        for (int64_t bucket = 0; bucket <= n_cols >> shift; ++bucket) {
            starts_.push_back(static_cast<uint32_t>(at));
            while (at < count && (base[at] >> shift) == bucket) ++at;
        }
        starts_.push_back(static_cast<uint32_t>(count));
    }

    const int64_t* feature_ptr_;
    const int32_t* features_;
    int64_t n_words_;
    Vector<Node> nodes_;
    Vector<simd::Rank> ranks_;
    Vector<uint32_t> starts_;
};

}  // namespace labelwood::label_tree
