// Counts per column that are cleared in O(1).
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/span.hpp"

namespace labelwood {

// A number per column. A cell with an old stamp counts as absent, so clear() only raises the stamp. One per
// worker.
class StampedCounts {
  public:
    explicit StampedCounts(int64_t size = 0) : cells_(size) {}

    void clear() {
        if (++stamp_ == 0) {
            std::fill(cells_.begin(), cells_.end(), Cell{});
            stamp_ = 1;
        }
    }
    // Adds one; true if the column was absent before.
    bool count(int32_t column) {
        Cell& cell = cells_[column];
        if (cell.stamp != stamp_) {
            cell = {stamp_, 1};
            return true;
        }
        ++cell.value;
        return false;
    }
    // The number of the column, which is set to `fresh` if it was absent.
    int32_t value_or(int32_t column, int32_t fresh) {
        Cell& cell = cells_[column];
        if (cell.stamp != stamp_) cell = {stamp_, fresh};
        return cell.value;
    }
    int32_t at(int32_t column) const { return cells_[column].value; }
    int32_t& operator[](int32_t column) { return cells_[column].value; }

  private:
    struct Cell {
        uint32_t stamp = 0;
        int32_t value = 0;
    };
    Vector<Cell> cells_;
    uint32_t stamp_ = 0;
};

}  // namespace labelwood
