// Growing storage of the online tree: rows of floats in segments, and hash maps from features to rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "common.hpp"

namespace labelwood {

// Rows of `width` floats in segments of 16 rows: growing allocates a segment and moves nothing.
class RowStore {
  public:
    explicit RowStore(int32_t width) : width_(width) {}

    int32_t width() const { return width_; }
    uint32_t size() const { return size_; }
    float* row(uint32_t i) { return segments_[i / kRows].get() + static_cast<size_t>(i % kRows) * width_; }
    const float* row(uint32_t i) const {
        return segments_[i / kRows].get() + static_cast<size_t>(i % kRows) * width_;
    }

    // A row of zeros; rows given back are used first.
    uint32_t add() {
        uint32_t i = size_;
        if (!free_.empty()) {
            i = free_.back();
            free_.pop_back();
        } else {
            if (size_ == segments_.size() * kRows) segments_.push_back(allocate(width_));
            ++size_;
        }
        std::fill(row(i), row(i) + width_, 0.0f);
        return i;
    }
    void release(uint32_t i) { free_.push_back(i); }

    // Rewrites every row to another width by fill(old row, new row); an old segment is freed once it is
    // copied.
    template <class Fill>
    void rewrite(int32_t width, Fill&& fill) {
        for (auto& segment : segments_) {
            Segment wider = allocate(width);
            for (size_t r = 0; r < kRows; ++r) fill(segment.get() + r * width_, wider.get() + r * width);
            segment = std::move(wider);
        }
        width_ = width;
    }

    int64_t bytes() const { return static_cast<int64_t>(segments_.size() * kRows) * width_ * 4; }

  private:
    static constexpr size_t kRows = 16;
    struct Free {
        void operator()(float* p) const { ::operator delete[](p, std::align_val_t{64}); }
    };
    using Segment = std::unique_ptr<float[], Free>;

    static Segment allocate(int32_t width) {
        const size_t count = kRows * static_cast<size_t>(width);
        Segment segment(static_cast<float*>(::operator new[](count * sizeof(float), std::align_val_t{64})));
        std::fill(segment.get(), segment.get() + count, 0.0f);
        return segment;
    }

    int32_t width_;
    uint32_t size_ = 0;
    std::vector<Segment> segments_;
    std::vector<uint32_t> free_;
};

// An open-addressing hash map with linear probing; keys below the largest value of their type.
template <class Key>
class HashMap {
  public:
    static constexpr uint32_t kNone = 0xffffffffu;

    // Where a key is, or would go: to prefetch, and to find.
    void prefetch(Key key) const {
        if (!slots_.empty()) __builtin_prefetch(&slots_[home(key)]);
    }
    uint32_t find(Key key) const {
        if (slots_.empty()) return kNone;
        for (size_t i = home(key);; i = (i + 1) & mask()) {
            if (slots_[i].key == key) return slots_[i].value;
            if (slots_[i].key == kEmpty) return kNone;
        }
    }
    // Adds a key or changes its value.
    void set(Key key, uint32_t value) {
        if (4 * (count_ + 1) > 3 * slots_.size()) grow();
        size_t i = home(key);
        while (slots_[i].key != kEmpty && slots_[i].key != key) i = (i + 1) & mask();
        count_ += slots_[i].key == kEmpty;
        slots_[i] = {key, value};
    }
    template <class Use>
    void each(Use&& use) const {
        for (const Slot& slot : slots_) {
            if (slot.key != kEmpty) use(slot.key, slot.value);
        }
    }
    size_t size() const { return count_; }
    int64_t bytes() const { return static_cast<int64_t>(slots_.size() * sizeof(Slot)); }

  private:
    static constexpr Key kEmpty = static_cast<Key>(-1);
    struct Slot {
        Key key;
        uint32_t value;
    };

    size_t mask() const { return slots_.size() - 1; }
    size_t home(Key key) const { return static_cast<size_t>((key * 0x9e3779b97f4a7c15ULL) >> shift_); }
    void grow() {
        std::vector<Slot> old(slots_.empty() ? 8 : 2 * slots_.size(), Slot{kEmpty, kNone});
        old.swap(slots_);
        shift_ = 64;
        for (size_t n = slots_.size(); n > 1; n /= 2) --shift_;
        count_ = 0;
        for (const Slot& slot : old) {
            if (slot.key != kEmpty) set(slot.key, slot.value);
        }
    }

    std::vector<Slot> slots_;
    size_t count_ = 0;
    int shift_ = 63;
};

// Feature ids of up to 63 bits to consecutive numbers in order of first sight, so that every block keys by 4
// bytes.
class FeatureNumbers {
  public:
    static constexpr uint32_t kNone = HashMap<uint64_t>::kNone;

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
    size_t size() const { return ids_.size(); }
    int64_t bytes() const {
        return numbers_.bytes() + static_cast<int64_t>(ids_.capacity() * sizeof(uint64_t));
    }

  private:
    HashMap<uint64_t> numbers_;
    std::vector<uint64_t> ids_;
};

}  // namespace labelwood
