// Dense rows beside sparse ones: the vectors that users bring, such as sentence embeddings.
#pragma once

#include <cstdint>

namespace labelwood {

// How the numbers of dense rows are stored.
enum class VectorType : int { kFloat = 0, kHalf = 1, kBrain = 2, kInt8 = 3 };

constexpr int64_t bytes_of(VectorType type) {
    return type == VectorType::kFloat ? 4 : type == VectorType::kInt8 ? 1 : 2;
}

// Rows end on a multiple of this many floats when they are widened, the rest is zero.
constexpr int64_t kVectorPad = 16;

constexpr int64_t padded(int64_t width) {
    return (width + kVectorPad - 1) / kVectorPad * kVectorPad;
}

// A view of dense rows [rows, width], each multiplied by its scale when it is read.
struct Vectors {
    const char* values = nullptr;
    int64_t width = 0;
    VectorType type = VectorType::kFloat;
    const float* scale = nullptr;  // null: all factors are 1

    const char* row(int64_t number) const { return values + number * width * bytes_of(type); }
    float factor(int64_t number) const { return scale == nullptr ? 1.0f : scale[number]; }
};

}  // namespace labelwood
