// The classifiers of all children of one node as a block: one look-up of a feature serves all of them.
//
// Lane 0 is the auxiliary classifier of the node itself (theta in the paper): it learns the examples of its
// children, all as positive. Lane 1 + c is the classifier of child c. The lanes past the last child train as
// the inverse of lane 0, so adding a leaf (Algorithm 6) only takes the next lane into use.
//
// A new feature gets no row at first: its weights follow from its value and the gradients of its first visit,
// and all features new in a visit share these gradients. The row is written at the second visit. Nothing is
// lost, and rare features, which are most features, take a few bytes.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/span.hpp"
#include "online/row_store.hpp"
#include "simd/online.hpp"

namespace labelwood::online {

// AdaGrad's constants and the value of the constant feature. A step is divided by sqrt(sum + inside) + outside.
struct LearnerOptions {
    float rate;
    float inside;
    float outside;
    float bias;
};

// The features of one example, by number, and their values.
struct Example {
    const uint32_t* features;
    const float* values;
    int64_t count;
};

// Buffers of one worker.
struct BlockScratch {
    Vector<float*> rows;  // the first `count`: an example's rows of the block
    Vector<float> values;
    int64_t count = 0;
    Vector<float> margins, gradients, signs, single;
    Vector<int64_t> fresh;
    Vector<uint32_t> entries;  // per feature of an example: its entry in the block's table

    // Room for `most` rows and for the margins of all lanes.
    void clear(int64_t most, int32_t lanes) {
        count = 0;
        if (rows.size() < most) {
            rows.resize(most);
            values.resize(most);
            entries.resize(most);
        }
        if (margins.size() < lanes) margins.resize(lanes);
        if (gradients.size() < lanes) gradients.resize(lanes);
    }
    void add(float* row, float value) {
        rows[count] = row;
        values[count++] = value;
    }
};

// +0 for a zero of either sign.
inline float inverted(float weight) {
    return 0.0f - weight;
}

class SiblingBlock {
  public:
    SiblingBlock(int32_t n_lanes, const PoolPointer& pool)
        : n_lanes_(n_lanes),
          pool_(pool),
          rows_(2 * capacity_for(n_lanes), pool),
          firsts_(rows_.width() / 2, pool),
          table_(pool) {
        rows_.add();  // row 0 belongs to the constant feature
    }

    int32_t n_lanes() const { return n_lanes_; }
    int32_t capacity() const { return firsts_.width(); }

    // Takes the next lane into use; it is the inverse of lane 0.
    int32_t add_lane() {
        if (n_lanes_ == capacity()) widen(capacity_for(n_lanes_ + n_lanes_ / 8 + 1));
        return n_lanes_++;
    }
    // Takes the next lane into use as a copy of lane 0 (Algorithm 5 for a leaf).
    int32_t add_copy() {
        const int32_t lane = add_lane();
        for (uint32_t r = 0; r < rows_.size(); ++r) {
            float* row = rows_.row(r);
            row[lane] = row[0];
            row[capacity() + lane] = row[capacity()];
        }
        for (uint32_t e = 0; e < firsts_.size(); ++e) firsts_.row(e)[lane] = firsts_.row(e)[0];
        return lane;
    }
    // A new block made of lane 0 only: as lane 0, with_copy also as lane 1, and inverted in all other lanes.
    SiblingBlock from_auxiliary(bool with_copy) const {
        SiblingBlock made(with_copy ? 2 : 1, pool_);
        made.table_.reserve(table_.size());
        const auto spread = [&](const float* from, float* to) {
            for (int32_t c = 0; c < made.capacity(); ++c) to[c] = c < made.n_lanes_ ? from[0] : inverted(from[0]);
        };
        const auto spread_row = [&](uint32_t source, uint32_t target) {
            const float* from = rows_.row(source);
            float* to = made.rows_.row(target);
            spread(from, to);
            std::fill(to + made.capacity(), to + 2 * made.capacity(), from[capacity()]);
        };
        spread_row(0, 0);
        Vector<uint32_t> copied(firsts_.size(), kNoRow);
        table_.each([&](uint32_t feature, uint32_t entry) {
            if (!is_single(entry)) {
                const uint32_t target = made.rows_.add();
                spread_row(entry, target);
                made.table_.set(feature, target);
                return;
            }
            const Single& single = singles_[index_of(entry)];
            if (copied[single.first] == kNoRow) {
                copied[single.first] = made.firsts_.add();
                spread(firsts_.row(single.first), made.firsts_.row(copied[single.first]));
            }
            made.add_single(feature, {copied[single.first], single.value});
        });
        return made;
    }

    // UpdateClassifiers (Algorithm 7) for one example. `positives` are lanes; lane 0 is always positive.
    void learn(const Example& x, const int32_t* positives, int32_t n_positives, const LearnerOptions& options,
               BlockScratch& scratch) {
        gather(x, options, scratch);
        const int32_t lanes = capacity();
        scratch.signs.assign(lanes, -1.0f);
        scratch.signs[0] = 1.0f;
        for (int32_t p = 0; p < n_positives; ++p) scratch.signs[positives[p]] = 1.0f;
        const simd::OnlineKernels& kernels = simd::online();
        kernels.margins(scratch.rows.data(), scratch.values.data(), scratch.count, lanes, scratch.margins.data());
        kernels.gradients(scratch.margins.data(), scratch.signs.data(), lanes, scratch.gradients.data());
        kernels.update(scratch.rows.data(), scratch.values.data(), scratch.count, scratch.gradients.data(), lanes,
                       options.rate, options.inside, options.outside);
        if (scratch.fresh.empty()) return;
        const uint32_t first = firsts_.add();
        std::copy(scratch.gradients.begin(), scratch.gradients.begin() + lanes, firsts_.row(first));
        for (const int64_t j : scratch.fresh) add_single(x.features[j], {first, x.values[j]});
    }

    // Computes the margins of all lanes into scratch.margins; changes nothing.
    void score(const Example& x, const LearnerOptions& options, BlockScratch& scratch) const {
        const int32_t lanes = capacity();
        start(x, options, scratch);
        // Three passes, so that all features are prefetched before the first is used.
        const Span<uint32_t> entries(scratch.entries.data(), x.count);
        int64_t n_singles = 0;
        for (int64_t j = 0; j < x.count; ++j) {
            const uint32_t entry = entries[j] = table_.find(x.features[j]);
            if (entry == kNoRow) continue;
            if (is_single(entry)) {
                ++n_singles;
                __builtin_prefetch(&singles_[index_of(entry)]);
            } else {
                prefetch(rows_.row(entry), lanes);
            }
        }
        for (const uint32_t entry : entries) {
            if (entry != kNoRow && is_single(entry)) prefetch(firsts_.row(singles_[index_of(entry)].first), lanes);
        }
        const int32_t width = 2 * lanes;
        scratch.single.assign(n_singles * width, 0.0f);
        float* next = scratch.single.data();
        for (int64_t j = 0; j < x.count; ++j) {
            const uint32_t entry = entries[j];
            if (entry == kNoRow) continue;
            if (is_single(entry)) {
                replay(singles_[index_of(entry)], options, next);
                scratch.add(next, x.values[j]);
                next += width;
            } else {
                scratch.add(const_cast<float*>(rows_.row(entry)), x.values[j]);
            }
        }
        simd::online().margins(scratch.rows.data(), scratch.values.data(), scratch.count, lanes,
                               scratch.margins.data());
    }

    int64_t bytes() const {
        return rows_.bytes() + firsts_.bytes() + table_.bytes() + singles_.capacity() * int64_t{sizeof(Single)} +
               references_.capacity() * 4;
    }

    friend struct BlockState;

  private:
    static constexpr uint32_t kNoRow = HashMap<uint32_t>::kNone;
    static constexpr uint32_t kSingle = 0x80000000u;

    // A feature seen once: its row in firsts_ (the gradients of that visit) and its value.
    struct Single {
        uint32_t first;
        float value;
    };

    static bool is_single(uint32_t entry) { return (entry & kSingle) != 0 && entry != kNoRow; }
    static uint32_t index_of(uint32_t entry) { return entry & ~kSingle; }

    // Capacities that the kernels support: 4, 8 and multiples of 16.
    static int32_t capacity_for(int32_t lanes) { return lanes <= 4 ? 4 : lanes <= 8 ? 8 : (lanes + 15) / 16 * 16; }

    void widen(int32_t lanes) {
        const int32_t old = capacity();
        rows_.rewrite(2 * lanes, [&](const float* from, float* to) {
            std::copy(from, from + old, to);
            std::fill(to + old, to + lanes, inverted(from[0]));
            std::copy(from + old, from + 2 * old, to + lanes);
            std::fill(to + lanes + old, to + 2 * lanes, from[old]);
        });
        firsts_.rewrite(lanes, [&](const float* from, float* to) {
            std::copy(from, from + old, to);
            std::fill(to + old, to + lanes, inverted(from[0]));
        });
    }

    static void prefetch(const float* row, int32_t count) {
        for (int32_t c = 0; c < count; c += 16) __builtin_prefetch(row + c);
    }

    void start(const Example& x, const LearnerOptions& options, BlockScratch& scratch) const {
        for (int64_t j = 0; j < x.count; ++j) table_.prefetch(x.features[j]);
        scratch.clear(x.count + 1, capacity());
        if (options.bias != 0.0f) scratch.add(const_cast<float*>(rows_.row(0)), options.bias);
    }

    // Collects the rows of the example's features. A feature seen once gets its row; new features go to
    // scratch.fresh.
    void gather(const Example& x, const LearnerOptions& options, BlockScratch& scratch) {
        start(x, options, scratch);
        scratch.fresh.clear();
        for (int64_t j = 0; j < x.count; ++j) {
            uint32_t entry = table_.find(x.features[j]);
            if (entry == kNoRow) {
                scratch.fresh.push_back(j);
                continue;
            }
            if (is_single(entry)) entry = write_row(x.features[j], index_of(entry), options);
            float* row = rows_.row(entry);
            prefetch(row, 2 * capacity());
            scratch.add(row, x.values[j]);
        }
    }

    // Computes the weights and sums of a feature after its first visit.
    void replay(const Single& single, const LearnerOptions& options, float* zeros) const {
        simd::online().update(&zeros, &single.value, 1, firsts_.row(single.first), capacity(), options.rate,
                              options.inside, options.outside);
    }

    uint32_t write_row(uint32_t feature, uint32_t index, const LearnerOptions& options) {
        const Single single = singles_[index];
        const uint32_t target = rows_.add();
        replay(single, options, rows_.row(target));
        table_.set(feature, target);
        free_singles_.push_back(index);
        if (--references_[single.first] == 0) firsts_.release(single.first);
        return target;
    }

    void add_single(uint32_t feature, const Single& single) {
        if (references_.size() < firsts_.size()) references_.resize(firsts_.size(), 0);
        ++references_[single.first];
        uint32_t index = static_cast<uint32_t>(singles_.size());
        if (!free_singles_.empty()) {
            index = free_singles_.back();
            free_singles_.pop_back();
            singles_[index] = single;
        } else {
            singles_.push_back(single);
        }
        table_.set(feature, index | kSingle);
    }

    int32_t n_lanes_;
    PoolPointer pool_;
    RowStore rows_;    // weights, then sums of squared gradients, by lane
    RowStore firsts_;  // gradients of visits with new features, by lane
    HashMap<uint32_t> table_;
    Vector<Single> singles_;
    Vector<uint32_t> free_singles_;
    Vector<uint32_t> references_;  // per row of firsts_
};

}  // namespace labelwood::online
