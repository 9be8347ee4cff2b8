// Weights from counts: optional logarithm, scale per column, sum over the fields of a document, normalization.
#pragma once

#include <cmath>

#include "base/csr.hpp"
#include "base/parallel.hpp"
#include "base/span.hpp"

namespace labelwood::text {

enum class Norm { none, l1, l2 };

struct Weighing {
    bool sublinear;       // 1 + log(count) instead of count
    bool binary;          // 1 instead of count
    const double* scale;  // of each column; may be null
    Norm norm;
};

// The weight of a count, before the scale of its column.
class CountWeight {
  public:
    explicit CountWeight(const Weighing& how) : how_(how), dampened_(kKnownLogs) {
        for (int32_t count = 1; count < kKnownLogs; ++count) dampened_[count] = 1 + std::log(count);
    }

    double operator()(int32_t count) const {
        if (how_.binary) return count == 0 ? 0 : 1;
        if (!how_.sublinear) return count;
        return count < kKnownLogs ? dampened_[count] : 1 + std::log(count);
    }

  private:
    static constexpr int32_t kKnownLogs = 256;
    const Weighing& how_;
    Vector<double> dampened_;
};

// Scales a row by column and normalizes it.
inline void finish_row(Span<double> row, const int32_t* columns, const Weighing& how, float* to) {
    double length = 0;
    for (int64_t i = 0; i < row.size(); ++i) {
        row[i] *= how.scale == nullptr ? 1.0 : how.scale[columns[i]];
        length += how.norm == Norm::l2 ? row[i] * row[i] : std::abs(row[i]);
    }
    if (how.norm == Norm::l2) length = std::sqrt(length);
    const double divisor = how.norm == Norm::none || length == 0 ? 1.0 : length;
    for (int64_t i = 0; i < row.size(); ++i) to[i] = static_cast<float>(row[i] / divisor);
}

inline constexpr int64_t kWeighedRows = 256;  // rows of a task

inline Vector<float> weigh(const int64_t* indptr, const int32_t* indices, const int32_t* counts, int64_t n_rows,
                           const Weighing& how, int n_threads, Monitor& monitor) {
    const CountWeight weight(how);
    Vector<float> data(indptr[n_rows]);
    parallel_for((n_rows + kWeighedRows - 1) / kWeighedRows, n_threads, monitor, [&](int64_t block, int) {
        Vector<double> row;
        for (int64_t r = block * kWeighedRows; r < std::min(n_rows, (block + 1) * kWeighedRows); ++r) {
            row.clear();
            for (int64_t i = indptr[r]; i < indptr[r + 1]; ++i) row.push_back(weight(counts[i]));
            finish_row(row, indices + indptr[r], how, data.data() + indptr[r]);
        }
    });
    return data;
}

struct WeighedRows {
    Vector<int64_t> indptr{0};
    Vector<int32_t> indices;
    Vector<float> data;
};

// Rows of documents from the rows of their fields: a document has weights.size() rows of counts, one after the
// other, and the weight of a column is the sum over the fields of field weight times weight of the count.
inline WeighedRows weigh_fields(const int64_t* indptr, const int32_t* indices, const int32_t* counts, int64_t n_rows,
                                Span<const double> weights, const Weighing& how, int n_threads, Monitor& monitor) {
    const CountWeight weight(how);
    const int64_t n_fields = weights.size(), n_documents = n_rows / n_fields;
    Vector<WeighedRows> blocks((n_documents + kWeighedRows - 1) / kWeighedRows);
    parallel_for(blocks.size(), n_threads, monitor, [&](int64_t block, int) {
        WeighedRows& out = blocks[block];
        Vector<int32_t> columns, merged_columns;
        Vector<double> row, merged_row;
        const int64_t end = std::min(n_documents, (block + 1) * kWeighedRows);
        for (int64_t document = block * kWeighedRows; document < end; ++document) {
            columns.clear();
            row.clear();
            for (int64_t field = 0; field < n_fields; ++field) {
                int64_t i = indptr[document * n_fields + field];
                const int64_t field_end = indptr[document * n_fields + field + 1];
                merged_columns.clear();
                merged_row.clear();
                for (int64_t at = 0; i < field_end || at < columns.size();) {
                    const int64_t own = at < columns.size() ? columns[at] : INT32_MAX;
                    const int64_t next = i < field_end ? indices[i] : INT32_MAX;
                    double value = own <= next ? row[at] : 0.0;
                    if (next <= own) value += weights[field] * weight(counts[i]);
                    merged_columns.push_back(static_cast<int32_t>(std::min(own, next)));
                    merged_row.push_back(value);
                    at += own <= next;
                    i += next <= own;
                }
                columns.swap(merged_columns);
                row.swap(merged_row);
            }
            const int64_t before = out.data.size();
            out.indices.insert(out.indices.end(), columns.begin(), columns.end());
            out.data.resize(before + row.size());
            finish_row(row, columns.data(), how, out.data.data() + before);
            out.indptr.push_back(out.data.size());
        }
    });
    WeighedRows all;
    all.indptr.reserve(n_documents + 1);
    for (WeighedRows& block : blocks) {
        const int64_t before = all.indptr.back();
        for (int64_t i = 1; i < block.indptr.size(); ++i) all.indptr.push_back(before + block.indptr[i]);
        all.indices.insert(all.indices.end(), block.indices.begin(), block.indices.end());
        all.data.insert(all.data.end(), block.data.begin(), block.data.end());
        block = {};
    }
    return all;
}

}  // namespace labelwood::text
