// Some rows of a node at a time, for nodes whose rows do not fit in memory together.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "label_tree/node_problem.hpp"

namespace labelwood::label_tree {

// The rows that come next in a pass, gathered from the training rows in the order of their places there. One
// per worker, kept between nodes.
class RowWindow {
  public:
    // Reads the first rows of `order` that fit, at least one, and returns their number.
    int64_t gather(const NodeProblem& problem, const int32_t* order, int64_t count) {
        const auto& indptr = problem.indptr;
        auto length = [&](int32_t row) {
            return indptr[static_cast<size_t>(row) + 1] - indptr[static_cast<size_t>(row)];
        };
        start_.resize(static_cast<size_t>(problem.n_rows()));
        int64_t n = 0, total = 0;
        while (n < count && (n == 0 || total + length(order[n]) <= problem.most_entries)) {
            start_[static_cast<size_t>(order[n])] = total;
            total += length(order[n++]);
        }
        features_.resize(static_cast<size_t>(total));
        values_.resize(static_cast<size_t>(total));
        sorted_.assign(order, order + n);
        std::sort(sorted_.begin(), sorted_.end());
        for (const int32_t row : sorted_) {
            const auto at = static_cast<size_t>(start_[static_cast<size_t>(row)]);
            copy_row(problem, row, features_.data() + at, values_.data() + at);
        }
        return n;
    }

    simd::NodeRows rows(const NodeProblem& problem) const {
        return {problem.indptr.data(),   features_.data(), values_.data(),
                problem.diagonal.data(), problem.n_rows(), start_.data()};
    }

  private:
    std::vector<int64_t> start_;
    std::vector<int32_t> features_, sorted_;
    std::vector<float> values_;
};

}  // namespace labelwood::label_tree
