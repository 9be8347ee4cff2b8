// The weights of a packed tree for the vectors of rows: a dense block per inner node.
#pragma once

#include <cstdint>

#include "base/span.hpp"
#include "base/vectors.hpp"
#include "label_tree/tree.hpp"
#include "memory/allocators.hpp"
#include "simd/search.hpp"

namespace labelwood::label_tree {

// Block [columns, children] of each inner node, as tree_trainer.hpp lays them out; int8 weights are multiples of
// a number per inner node.
struct VectorWeights {
    const char* weights = nullptr;
    int64_t n_columns = 0;  // 0: rows have no vectors
    VectorType type = VectorType::kFloat;
    const float* scale = nullptr;  // per inner node, null unless the weights are int8

    simd::StoredBlock block(const Tree& tree, int32_t node, int64_t inner) const {
        const int64_t start = (tree.child_ptr[node] - int64_t{1}) * n_columns;
        return {weights + start * bytes_of(type), type, scale == nullptr ? 1.0f : scale[inner], n_columns,
                tree.n_children(node)};
    }
};

// The vectors of some rows as floats, padded with zeros; kept between shards.
class WideVectors {
  public:
    void read(const Vectors& vectors, int64_t begin, int64_t end) {
        stride_ = padded(vectors.width);
        rows_.resize((end - begin) * stride_);
        for (int64_t row = begin; row < end; ++row) {
            simd::search().widen_row(vectors.row(row), vectors.type, vectors.width, vectors.factor(row),
                                     rows_.data() + (row - begin) * stride_);
        }
    }
    const float* operator[](int64_t row) const { return rows_.data() + row * stride_; }

  private:
    memory::AlignedVector<float> rows_;
    int64_t stride_ = 0;
};

}  // namespace labelwood::label_tree
