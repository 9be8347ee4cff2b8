// Sums of leaf values per label, and the best labels by them.
#pragma once

#include <cstdint>
#include <cstring>

#include "base/span.hpp"
#include "base/topk.hpp"
#include "forest/packed_rows.hpp"
#include "simd/forest/router.hpp"

namespace labelwood::forest {

// Sums per label that are cheap to clear: each cache line of sums has a mark, set when the line is touched.
// With few labels there are no marks, because scanning all lines is cheaper.
class LabelSums {
  public:
    void reserve(int64_t n_labels) {
        marked_ = n_labels > kFew;
        const int64_t lines = (n_labels + simd::kMarked - 1) / simd::kMarked;
        // Marks are read eight at a time.
        marks_.resize((lines + 7) / 8 * 8, 0);
        sums_.resize(marks_.size() * simd::kMarked, 0.0f);
    }

    template <class Label, class Value>
    void add(const Label* labels, const Value* values, int64_t count, float share) {
        packed_kernels(labels, values)
            .add_leaf(labels, values, count, share, sums_.data(), marked_ ? marks_.data() : nullptr);
    }

    // Offers sum / divisor of every label with a positive sum, and clears all sums. `allowed` holds 0 for labels
    // not to offer; null: offer all.
    void drain(float divisor, const uint8_t* allowed, BestOf& heap) {
        if (!marked_) {
            for (int64_t line = 0; line < marks_.size(); ++line) drain_line(line, divisor, allowed, heap);
            return;
        }
        for (int64_t first = 0; first < marks_.size(); first += 8) {
            uint64_t any;
            std::memcpy(&any, marks_.data() + first, 8);
            if (any == 0) continue;
            for (int64_t line = first; line < first + 8; ++line) {
                if (marks_[line] != 0) drain_line(line, divisor, allowed, heap);
            }
            std::memset(marks_.data() + first, 0, 8);
        }
    }

  private:
    static constexpr int64_t kFew = 2048;

    void drain_line(int64_t line, float divisor, const uint8_t* allowed, BestOf& heap) {
        float* sums = sums_.data() + line * simd::kMarked;
        const float bar = heap.bar();
        int high = 0;
        float scores[simd::kMarked];
        for (int n = 0; n < simd::kMarked; ++n) {
            scores[n] = sums[n] / divisor;
            high |= scores[n] >= bar ? 1 : 0;
            sums[n] = 0.0f;
        }
        if (high == 0) return;
        for (int n = 0; n < simd::kMarked; ++n) {
            if (scores[n] > 0.0f && scores[n] >= heap.bar()) {
                const int32_t label = static_cast<int32_t>(line * simd::kMarked) + n;
                if (allowed == nullptr || allowed[label] != 0) heap.offer({scores[n], label});
            }
        }
    }

    Vector<float> sums_;     // all zero between rows
    Vector<uint8_t> marks_;  // all zero between rows
    bool marked_ = true;
};

}  // namespace labelwood::forest
