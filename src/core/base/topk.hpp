// Top-k selection. Ties are broken by id, so that the result does not depend on the order of the items.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>

#include "base/span.hpp"

namespace labelwood {

struct Scored {
    float score;
    int32_t id;
};

// Orders best first: higher score, then smaller id.
inline bool better(const Scored& a, const Scored& b) {
    return a.score != b.score ? a.score > b.score : a.id < b.id;
}

// A bounded heap in the caller's memory. Its root is the worst item kept.
class BestOf {
  public:
    BestOf(Scored* items, int32_t* size, int32_t capacity) : items_(items), size_(size), capacity_(capacity) {}

    bool full() const { return *size_ == capacity_; }
    // No item of a lower score can enter.
    float bar() const { return full() ? items_[0].score : -3e38f; }
    void offer(Scored item) {
        if (!full()) {
            items_[(*size_)++] = item;
            std::push_heap(items_, items_ + *size_, better);
        } else if (better(item, items_[0])) {
            std::pop_heap(items_, items_ + *size_, better);
            items_[*size_ - 1] = item;
            std::push_heap(items_, items_ + *size_, better);
        }
    }
    // Sorts the items best first and ends the heap.
    void sort() { std::sort_heap(items_, items_ + *size_, better); }

  private:
    Scored* items_;
    int32_t* size_;
    int32_t capacity_;
};

// Writes `k` labels and score(item) of each, padded with -1 and 0; the items are sorted.
template <class Score>
void write_topk(const Scored* items, int64_t count, int64_t k, int32_t* labels, float* scores, Score&& score) {
    for (int64_t j = 0; j < k; ++j) {
        labels[j] = j < count ? items[j].id : -1;
        scores[j] = j < count ? score(items[j].score) : 0.0f;
    }
}

// Averages the top-k lists of several members, row by row; a label missing from a list counts as 0 there.
// labels, scores: [members, n_rows, width]; out: [n_rows, k].
inline void average_topk(const int32_t* labels, const float* scores, int64_t n_members, int64_t n_rows, int64_t width,
                         int64_t k, int32_t* out_labels, float* out_scores) {
    Vector<Scored> pool;
    const float share = 1.0f / static_cast<float>(n_members);
    for (int64_t row = 0; row < n_rows; ++row) {
        pool.clear();
        for (int64_t m = 0; m < n_members; ++m) {
            const int64_t start = (m * n_rows + row) * width;
            for (int64_t j = 0; j < width; ++j) {
                if (labels[start + j] >= 0) pool.push_back({scores[start + j], labels[start + j]});
            }
        }
        std::stable_sort(pool.begin(), pool.end(), [](const Scored& a, const Scored& b) { return a.id < b.id; });
        int64_t kept = 0;
        for (int64_t i = 0; i < pool.size();) {
            Scored sum{0.0f, pool[i].id};
            for (; i < pool.size() && pool[i].id == sum.id; ++i) sum.score += pool[i].score;
            pool[kept++] = {sum.score * share, sum.id};
        }
        const int64_t best = std::min(kept, k);
        std::partial_sort(pool.begin(), pool.begin() + best, pool.begin() + kept, better);
        write_topk(pool.data(), best, k, out_labels + row * k, out_scores + row * k, std::identity());
    }
}

}  // namespace labelwood
