// Growing storage of the online tree: rows of floats in segments, and hash maps from features to rows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/span.hpp"
#include "memory/slab_pool.hpp"

namespace labelwood::online {

using PoolPointer = std::shared_ptr<memory::SlabPool>;

// Rows of `width` floats in segments of 16 rows. Growing adds a segment and moves nothing.
class RowStore {
  public:
    RowStore(int32_t width, PoolPointer pool) : width_(width), pool_(std::move(pool)) {}
    ~RowStore() {
        for (float* segment : segments_) give(segment, width_);
    }
    RowStore(RowStore&&) = default;
    RowStore& operator=(RowStore&& other) noexcept {
        std::swap(width_, other.width_);
        std::swap(size_, other.size_);
        pool_.swap(other.pool_);
        segments_.swap(other.segments_);
        free_.swap(other.free_);
        return *this;
    }

    int32_t width() const { return width_; }
    uint32_t size() const { return size_; }
    float* row(uint32_t i) { return segments_[i / kRows] + int64_t{i % kRows} * width_; }
    const float* row(uint32_t i) const { return segments_[i / kRows] + int64_t{i % kRows} * width_; }

    // Adds a row of zeros; released rows are reused first.
    uint32_t add() {
        uint32_t i = size_;
        if (!free_.empty()) {
            i = free_.back();
            free_.pop_back();
        } else {
            if (size_ == segments_.size() * kRows) segments_.push_back(take(width_));
            ++size_;
        }
        std::fill(row(i), row(i) + width_, 0.0f);
        return i;
    }
    void release(uint32_t i) { free_.push_back(i); }

    // Rewrites every row to another width by fill(old row, new row), and frees each old segment once it is
    // copied.
    template <class Fill>
    void rewrite(int32_t width, Fill&& fill) {
        for (uint32_t first = 0; first < size_; first += kRows) {
            float*& segment = segments_[first / kRows];
            float* wider = take(width);
            for (uint32_t r = 0; r < std::min(kRows, size_ - first); ++r) {
                fill(segment + int64_t{r} * width_, wider + int64_t{r} * width);
            }
            give(std::exchange(segment, wider), width_);
        }
        width_ = width;
    }

    int64_t bytes() const { return segments_.size() * kRows * width_ * 4; }

  private:
    static constexpr uint32_t kRows = 16;

    static size_t bytes_of(int32_t width) { return kRows * static_cast<size_t>(width) * sizeof(float); }
    float* take(int32_t width) { return static_cast<float*>(pool_->take(bytes_of(width))); }
    void give(float* segment, int32_t width) { pool_->give(segment, bytes_of(width)); }

    int32_t width_;
    uint32_t size_ = 0;
    PoolPointer pool_;
    Vector<float*> segments_;
    Vector<uint32_t> free_;
};

// An open-addressing hash map with linear probing; keys below the largest value of their type.
template <class Key>
class HashMap {
  public:
    static constexpr uint32_t kNone = 0xffffffffu;

    explicit HashMap(PoolPointer pool) : pool_(std::move(pool)) {}
    ~HashMap() { give(slots_, n_slots_); }
    HashMap(HashMap&& other) noexcept : pool_(other.pool_) { swap(other); }
    HashMap& operator=(HashMap&& other) noexcept {
        swap(other);
        return *this;
    }

    // Prefetches the place of a key.
    void prefetch(Key key) const {
        if (n_slots_ > 0) __builtin_prefetch(&slots_[home(key)]);
    }
    uint32_t find(Key key) const {
        if (n_slots_ == 0) return kNone;
        for (size_t i = home(key);; i = (i + 1) & mask()) {
            if (slots_[i].key == key) return slots_[i].value;
            if (slots_[i].key == kEmpty) return kNone;
        }
    }
    // Adds a key or changes its value.
    void set(Key key, uint32_t value) {
        if (!fits(count_ + 1)) resize(n_slots_ == 0 ? 8 : 2 * n_slots_);
        size_t i = home(key);
        while (slots_[i].key != kEmpty && slots_[i].key != key) i = (i + 1) & mask();
        count_ += slots_[i].key == kEmpty;
        slots_[i] = {key, value};
    }
    // Makes room for this many keys. Necessary before a map is copied: keys come in the order of their homes,
    // and would crowd at the front of a table that is too small.
    void reserve(int64_t count) {
        size_t n_slots = std::max<size_t>(n_slots_, 8);
        while (4 * static_cast<size_t>(count) > 3 * n_slots) n_slots *= 2;
        if (n_slots > n_slots_) resize(n_slots);
    }
    template <class Use>
    void each(Use&& use) const {
        for (size_t i = 0; i < n_slots_; ++i) {
            if (slots_[i].key != kEmpty) use(slots_[i].key, slots_[i].value);
        }
    }
    int64_t size() const { return static_cast<int64_t>(count_); }
    int64_t bytes() const { return static_cast<int64_t>(n_slots_ * sizeof(Slot)); }

  private:
    static constexpr Key kEmpty = static_cast<Key>(-1);
    struct Slot {
        Key key;
        uint32_t value;
    };

    size_t mask() const { return n_slots_ - 1; }
    size_t home(Key key) const { return (key * 0x9e3779b97f4a7c15ULL) >> shift_; }
    bool fits(size_t count) const { return 4 * count <= 3 * n_slots_; }

    void resize(size_t n_slots) {
        Slot* old = slots_;
        const size_t n_old = n_slots_;
        slots_ = static_cast<Slot*>(pool_->take(n_slots * sizeof(Slot)));
        std::uninitialized_fill_n(slots_, n_slots, Slot{kEmpty, kNone});
        n_slots_ = n_slots;
        shift_ = 64;
        for (size_t n = n_slots; n > 1; n /= 2) --shift_;
        count_ = 0;
        for (size_t i = 0; i < n_old; ++i) {
            if (old[i].key != kEmpty) set(old[i].key, old[i].value);
        }
        give(old, n_old);
    }
    void give(Slot* slots, size_t n_slots) {
        if (n_slots > 0) pool_->give(slots, n_slots * sizeof(Slot));
    }
    void swap(HashMap& other) {
        pool_.swap(other.pool_);
        std::swap(slots_, other.slots_);
        std::swap(n_slots_, other.n_slots_);
        std::swap(count_, other.count_);
        std::swap(shift_, other.shift_);
    }

    PoolPointer pool_;
    Slot* slots_ = nullptr;
    size_t n_slots_ = 0;
    size_t count_ = 0;
    int shift_ = 63;
};

// Numbers feature ids of up to 63 bits in the order of their first appearance, so that blocks use keys of 4
// bytes.
class FeatureNumbers {
  public:
    static constexpr uint32_t kNone = HashMap<uint64_t>::kNone;

    explicit FeatureNumbers(PoolPointer pool) : numbers_(std::move(pool)) {}

    uint32_t find(uint64_t id) const { return numbers_.find(id); }
    uint32_t intern(uint64_t id) {
        uint32_t number = numbers_.find(id);
        if (number == kNone) {
            number = static_cast<uint32_t>(ids_.size());
            ids_.push_back(id);
            numbers_.set(id, number);
        }
        return number;
    }
    uint64_t id(uint32_t number) const { return ids_[number]; }
    int64_t size() const { return ids_.size(); }
    int64_t bytes() const { return numbers_.bytes() + ids_.capacity() * int64_t{sizeof(uint64_t)}; }

  private:
    HashMap<uint64_t> numbers_;
    Vector<uint64_t> ids_;
};

}  // namespace labelwood::online
