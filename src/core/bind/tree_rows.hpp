// What the bindings of label trees share.
#pragma once

#include <memory>

#include "bind/bind.hpp"
#include "label_tree/tree.hpp"
#include "sparse/training_rows.hpp"

namespace labelwood::bind {

inline label_tree::Tree tree_view(const Array<int32_t>& child_ptr, const Array<int32_t>& label) {
    return {child_ptr.data(), label.data(), static_cast<int32_t>(label.shape(0))};
}

// Features as a caller gives them: `scale` a factor per row or None; `resident` how many bytes of X's pages
// may be in memory if it is a mapped file, 0 if it is no file.
class GivenRows {
  public:
    GivenRows(const Csr& x, const std::optional<Array<float>>& scale, int64_t resident)
        : rows_{x, scale ? scale->data() : nullptr, nullptr} {
        if (resident == 0) return;
        residency_ = std::make_unique<sparse::Residency>(resident, x.nnz() * int64_t{sizeof(float)});
        residency_->watch(x.indices, x.nnz() * int64_t{sizeof(int32_t)});
        residency_->watch(x.data, x.nnz() * int64_t{sizeof(float)});
        rows_.residency = residency_.get();
    }
    ~GivenRows() {
        if (residency_) residency_->let_go();
    }
    const sparse::TrainingRows& rows() const { return rows_; }

  private:
    std::unique_ptr<sparse::Residency> residency_;
    sparse::TrainingRows rows_;
};

template <class T>
const T* data_or_null(const std::optional<Array<T>>& array) {
    return array ? array->data() : nullptr;
}

}  // namespace labelwood::bind
