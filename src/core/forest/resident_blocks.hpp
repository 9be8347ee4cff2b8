// Blocks of large nodes: the child vectors by column, so that a row looks its columns up.
//
// A large node near a root has thousands of weights, and a row uses few of them. Reading all of them costs
// several times as much as looking up the row's columns. Nearly all nodes are small and have no block; they
// are read as they are packed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "base/span.hpp"
#include "forest/batch_block.hpp"
#include "forest/packed_rows.hpp"
#include "forest/router_scratch.hpp"
#include "memory/huge_pages.hpp"
#include "simd/forest/router.hpp"
#include "simd/solver.hpp"

namespace labelwood::forest {

inline const auto& block_kernels(const Half*) {
    return simd::forest().block_f16;
}
inline const auto& block_kernels(const float*) {
    return simd::forest().block_f32;
}

// A block has a row for each column that some child uses, with one weight per child. Ranks map columns to
// rows. A hyperplane, of which only the first child has a vector, needs no block beside its ranks: its weights
// are read where they are packed.
template <class Weight>
class ResidentBlocks {
  public:
    template <class Index>
    ResidentBlocks(const Routing& routing, const NodeVectors<Index, Weight>& vectors, int32_t n_nodes,
                   int32_t n_columns)
        : packed_(vectors.weights), n_words_(n_columns / 32 + 1) {
        Vector<uint32_t> used(n_words_, 0);
        int64_t n_weights = 0;
        for (int32_t node = 0; node < n_nodes; ++node) {
            const int32_t first = routing.child_ptr[node], last = routing.child_ptr[node + 1];
            const int64_t entries = vectors.ptr[last] - vectors.ptr[first];
            if (entries < kLarge) continue;
            const int64_t columns = count_columns(vectors, first, last, used);
            const int64_t fill = entries < kVeryLarge ? kFill : kVeryLargeFill;
            const int64_t most = std::min(fill * entries, kMostPlaces);
            if (columns * kSparse < n_columns || columns * (last - first) > most) continue;
            blocks_.resize(node + 1);
            blocks_.back().ranks = n_blocks_++ * n_words_;
            blocks_.back().is_packed = entries == vectors.length(first);
            blocks_.back().weights = blocks_.back().is_packed ? vectors.ptr[first] : n_weights;
            if (blocks_.back().is_packed) continue;
            const int64_t end = places_for(last - first)(static_cast<int32_t>(columns));
            n_weights += (end + kLineWeights - 1) / kLineWeights * kLineWeights;
        }
        if (n_blocks_ == 0) return;
        ranks_ = std::make_unique<memory::ZeroArray<simd::Rank>>(n_blocks_ * n_words_);
        weights_ = std::make_unique<memory::ZeroArray<Weight>>(n_weights + simd::kMaxLanes);
        for (int64_t node = 0; node < blocks_.size(); ++node) {
            if (blocks_[node].ranks < 0) continue;
            fill(vectors, blocks_[node], routing.child_ptr[node], routing.child_ptr[node + 1]);
        }
    }

    int64_t size() const { return n_blocks_; }

    bool has(int32_t node) const { return node < blocks_.size() && blocks_[node].ranks >= 0; }

    void prefetch(int32_t node) const {
        const auto* ranks = reinterpret_cast<const char*>(ranks_of(node));
        const auto* end = reinterpret_cast<const char*>(ranks_of(node) + n_words_);
        for (; ranks < end; ranks += kLine) __builtin_prefetch(ranks);
    }

    // Finds the row's columns that the node's children use, and the places of their weights.
    void match(int32_t node, int32_t n_children, const Query& row, Matched& matched) const {
        matched.reserve(row.count);
        const simd::RowPlaces places = blocks_[node].is_packed ? kPacked : places_for(n_children);
        matched.count = simd::forest().find_places(row.columns, row.values, row.count, ranks_of(node), places,
                                                   matched.at.data(), matched.values.data());
    }

    // The memory that scoring a matched node will read.
    auto ahead(int32_t node, const Matched& matched) const {
        return simd::Ahead{matched.at.data(), matched.count, weights_of(node)};
    }

    // The dot products of a row with the children's vectors. Writes up to kMaxLanes beyond them. Prefetches
    // `next`.
    template <class Next>
    void score(int32_t node, int32_t n_children, const Matched& matched, const Next& next, double* scores) const {
        const auto* weights = weights_of(node);
        if (blocks_[node].is_packed) {
            for (int64_t i = 0; i < next.count; ++i) __builtin_prefetch(next.block + next.at[i]);
            std::fill_n(scores, n_children, 0.0);
            for (int64_t i = 0; i < matched.count; ++i) {
                scores[0] +=
                    static_cast<double>(matched.values[i]) * static_cast<double>(widen(weights[matched.at[i]]));
            }
            return;
        }
        for (int32_t lane = 0; lane < n_children; lane += simd::kMaxLanes) {
            block_kernels(weights_of(node))
                .lane_scores(matched.at.data(), matched.values.data(), matched.count, weights + lane,
                             std::min(simd::kMaxLanes, n_children - lane), lane == 0 ? next : Next{}, scores + lane);
        }
    }

  private:
    // Limits for a block: the least number of weights; the most columns per used column; the most places per
    // weight, and more where a row would read many weights.
    static constexpr int64_t kLarge = 1024, kVeryLarge = 8192, kSparse = 32, kFill = 6, kVeryLargeFill = 12;
    static constexpr simd::RowPlaces kPacked{1, 0, 0};        // the places of a packed vector
    static constexpr int64_t kMostPlaces = int64_t{1} << 30;  // places have 32 bits
    static constexpr int64_t kLine = 64;
    static constexpr int32_t kLineWeights = kLine / sizeof(Weight);

    // Rows are aligned so that none crosses a cache line. If that would waste more than a quarter of the
    // memory, rows are adjacent.
    static simd::RowPlaces places_for(int32_t n_children) {
        const int32_t fit = (kLineWeights - simd::lanes_read(n_children)) / n_children + 1;
        if (std::max(n_children, simd::lanes_read(n_children)) > kLineWeights ||
            4 * fit * n_children < 3 * kLineWeights) {
            return {n_children, 0, 0};
        }
        if (fit == 1) return {kLineWeights, 0, 0};
        return {n_children, kLineWeights - fit * n_children,
                ((uint64_t{1} << 32) + static_cast<uint64_t>(fit) - 1) / static_cast<uint64_t>(fit)};
    }

    struct Block {
        int64_t ranks = -1, weights = 0;
        bool is_packed = false;
    };

    const simd::Rank* ranks_of(int32_t node) const { return ranks_->data() + blocks_[node].ranks; }
    const Weight* weights_of(int32_t node) const {
        return (blocks_[node].is_packed ? packed_ : weights_->data()) + blocks_[node].weights;
    }

    // The number of columns that vectors first .. last use. `used` is all zero before and after.
    template <class Index>
    int64_t count_columns(const NodeVectors<Index, Weight>& vectors, int32_t first, int32_t last,
                          Vector<uint32_t>& used) const {
        for (int64_t j = vectors.ptr[first]; j < vectors.ptr[last]; ++j) {
            const auto column = static_cast<uint32_t>(vectors.features[j]);
            used[column / 32] |= 1u << (column % 32);
        }
        int64_t count = 0;
        for (uint32_t& word : used) {
            count += __builtin_popcount(word);
            word = 0;
        }
        return count;
    }

    template <class Index>
    void fill(const NodeVectors<Index, Weight>& vectors, const Block& block, int32_t first, int32_t last) {
        simd::Rank* ranks = ranks_->data() + block.ranks;
        Weight* weights = block.is_packed ? nullptr : weights_->data() + block.weights;
        for (int64_t j = vectors.ptr[first]; j < vectors.ptr[last]; ++j) {
            const auto column = static_cast<uint32_t>(vectors.features[j]);
            ranks[column / 32].bits |= 1u << (column % 32);
        }
        uint32_t before = 0;
        for (int64_t word = 0; word < n_words_; ++word) {
            ranks[word].before = before;
            before += static_cast<uint32_t>(__builtin_popcount(ranks[word].bits));
        }
        if (block.is_packed) return;
        const simd::RowPlaces places = places_for(last - first);
        for (int32_t child = first; child < last; ++child) {
            for (int64_t j = vectors.ptr[child]; j < vectors.ptr[child + 1]; ++j) {
                const auto column = static_cast<uint32_t>(vectors.features[j]);
                const simd::Rank rank = ranks[column / 32];
                const uint32_t below = rank.bits & ((1u << (column % 32)) - 1u);
                const int32_t row = static_cast<int32_t>(rank.before) + __builtin_popcount(below);
                weights[places(row) + (child - first)] = vectors.weights[j];
            }
        }
    }

    const Weight* packed_;
    int64_t n_words_;
    int64_t n_blocks_ = 0;
    Vector<Block> blocks_;  // by node, up to the last node with a block
    std::unique_ptr<memory::ZeroArray<simd::Rank>> ranks_;
    std::unique_ptr<memory::ZeroArray<Weight>> weights_;
};

}  // namespace labelwood::forest
