// A window on the rows of a node that do not fit in memory together.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/span.hpp"
#include "label_tree/node_problem.hpp"
#include "simd/solver.hpp"

namespace labelwood::label_tree {

// The next rows of a pass, gathered in the order of the training rows. One per worker, kept between nodes.
class RowWindow {
  public:
    // Reads the first rows of `order` that fit, at least one, and returns their number.
    int64_t gather(const NodeProblem& problem, const int32_t* order, int64_t count) {
        const auto& indptr = problem.indptr;
        auto length = [&](int32_t row) { return indptr[row + 1] - indptr[row]; };
        start_.resize(problem.n_rows());
        int64_t n = 0, total = 0;
        while (n < count && (n == 0 || total + length(order[n]) <= problem.most_entries)) {
            start_[order[n]] = total;
            total += length(order[n++]);
        }
        features_.resize(total);
        values_.resize(total);
        sorted_.assign(order, order + n);
        std::sort(sorted_.begin(), sorted_.end());
        for (const int32_t row : sorted_) {
            const int64_t at = start_[row];
            copy_row(problem, row, features_.data() + at, values_.data() + at);
        }
        return n;
    }

    simd::NodeRows rows(const NodeProblem& problem) const {
        return problem.with_vectors({problem.indptr.data(), features_.data(), values_.data(), problem.diagonal.data(),
                                     problem.n_rows(), start_.data()});
    }

  private:
    Vector<int64_t> start_;
    Vector<int32_t> features_, sorted_;
    Vector<float> values_;
};

}  // namespace labelwood::label_tree
