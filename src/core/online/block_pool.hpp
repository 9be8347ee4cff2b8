// All sibling blocks of a growing tree, and the examples that they have not learned yet.
//
// A node's classifiers depend only on the examples that reach the node, in their order. So an example is only
// noted at the blocks it reaches. A block learns its noted examples when it is read, or at the end of the
// call. The result equals learning example by example, but a block learns its examples in one go, while its
// weights are in cache, and blocks learn on different threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/parallel.hpp"
#include "base/span.hpp"
#include "memory/flush_denormals.hpp"
#include "online/sibling_block.hpp"

namespace labelwood::online {

// Examples in the order of learning; features are numbers of FeatureNumbers.
struct Batch {
    Vector<int64_t> ptr{0};
    Vector<uint32_t> features;
    Vector<float> values;

    Example row(int64_t i) const { return {features.data() + ptr[i], values.data() + ptr[i], ptr[i + 1] - ptr[i]}; }
};

class BlockPool {
  public:
    BlockPool(const LearnerOptions& learner, PoolPointer memory) : learner_(learner), memory_(std::move(memory)) {}

    SiblingBlock& operator[](int32_t block) { return blocks_[block].block; }
    const SiblingBlock& operator[](int32_t block) const { return blocks_[block].block; }

    int32_t add(int32_t n_lanes) {
        blocks_.push_back({made(n_lanes), {}, {}});
        return static_cast<int32_t>(blocks_.size()) - 1;
    }
    // A block that has learned nothing.
    SiblingBlock made(int32_t n_lanes) const { return SiblingBlock(n_lanes, memory_); }

    // The examples that noted rows refer to, until learn_noted.
    void begin(Batch&& batch) { batch_ = std::move(batch); }
    const Batch& batch() const { return batch_; }

    // Notes that an example visits a block, and one of its positive lanes, or -1. The notes of a row follow
    // one another.
    void note(int32_t block, int64_t row, int32_t positive) {
        Held& held = blocks_[block];
        if (held.visits.empty()) noted_.push_back(block);
        if (held.visits.empty() || held.visits.back().row != row) held.visits.push_back({row, 0});
        if (positive >= 0) {
            ++held.visits.back().n_positives;
            held.positives.push_back(positive);
        }
    }

    // Learns the examples noted at one block.
    void catch_up(int32_t block) { catch_up(block, scratch_); }

    void learn_noted(int n_threads) {
        std::sort(noted_.begin(), noted_.end());
        noted_.erase(std::unique(noted_.begin(), noted_.end()), noted_.end());
        const auto work = [&](int32_t block) {
            const Held& held = blocks_[block];
            return held.visits.size() * (held.block.capacity() + 16);
        };
        int64_t total = 0;
        for (const int32_t block : noted_) total += work(block);
        // The heaviest first, so that the threads end together. A small batch is not worth a second thread.
        std::stable_sort(noted_.begin(), noted_.end(), [&](int32_t a, int32_t b) { return work(a) > work(b); });
        const int threads = total < 20000 ? 1 : std::max(n_threads, 1);
        Vector<BlockScratch> scratches(threads - 1);
        Monitor monitor;
        parallel_for(noted_.size(), threads, monitor, [&](int64_t i, int worker) {
            const memory::FlushDenormals flush;
            catch_up(noted_[i], worker == 0 ? scratch_ : scratches[worker - 1]);
        });
        noted_.clear();
        batch_ = Batch();
    }

    int64_t bytes() const {
        int64_t total = 0;
        for (const Held& held : blocks_) total += held.block.bytes() + static_cast<int64_t>(sizeof(Held));
        return total;
    }

  private:
    struct Visit {
        int64_t row;
        int32_t n_positives;
    };
    // A block, its noted visits, and the positive lanes of all visits in turn.
    struct Held {
        SiblingBlock block;
        Vector<Visit> visits;
        Vector<int32_t> positives;
    };

    void catch_up(int32_t block, BlockScratch& scratch) {
        Held& held = blocks_[block];
        const int32_t* positives = held.positives.data();
        for (const Visit& visit : held.visits) {
            held.block.learn(batch_.row(visit.row), positives, visit.n_positives, learner_, scratch);
            positives += visit.n_positives;
        }
        held.visits.clear();
        held.positives.clear();
    }

    LearnerOptions learner_;
    PoolPointer memory_;
    Deque<Held> blocks_;
    Batch batch_;
    Vector<int32_t> noted_;  // blocks with visits to learn
    BlockScratch scratch_;
};

}  // namespace labelwood::online
