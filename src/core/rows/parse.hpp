// Parses text rows into a pair of CSR matrices, in parallel: `l1,l2 f:v f:v`, in the XMC repository's or the
// svmlight dialect.
//
// The text is cut into pieces of fixed size at line starts, pieces are parsed independently and joined in
// order: neither the result nor the reported error depends on the number of threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

#include "base/csr.hpp"
#include "base/parallel.hpp"
#include "base/span.hpp"
#include "rows/decimal.hpp"

namespace labelwood::rows {

// The fault of a token. The numbers are those of the Python enum Problem.
enum class Problem : int32_t {
    none = 0,
    bad_label = 1,
    negative_label = 2,
    huge_label = 3,
    label_past_count = 4,
    bad_feature = 5,
    negative_feature = 6,
    huge_feature = 7,
    feature_past_count = 8,
    feature_below_first = 9,
    bad_value = 10,
    missing_value = 11,
    not_finite = 12,
    huge_value = 13,
    huge_sum = 14,
};

// The format of the rows and the limits of their ids.
struct Dialect {
    bool svmlight;       // skip comments and blank lines; a first token with a colon is a feature; values required
    int64_t first_id;    // id of the first feature in the file; stored ids start from 0
    int64_t n_features;  // stored feature ids are below this
    int64_t n_labels;    // label ids are below this
};

// An array that grows without being zeroed. `push` does not check for room: call reserve_more before.
template <class T>
class Growing {
  public:
    void reserve_more(int64_t count) {
        if (size_ + count <= capacity_) return;
        capacity_ = std::max(size_ + count, capacity_ * 2);
        auto larger = unwritten<T>(capacity_);
        std::copy_n(items_.get(), size_, larger.get());
        items_ = std::move(larger);
    }
    void push(T item) { items_.get()[size_++] = item; }
    void resize_down(int64_t size) { size_ = size; }
    T* begin() { return items_.get(); }
    T* end() { return items_.get() + size_; }
    T& operator[](int64_t i) { return items_.get()[i]; }
    int64_t size() const { return size_; }

  private:
    std::unique_ptr<T[]> items_;
    int64_t size_ = 0;
    int64_t capacity_ = 0;
};

struct BadToken {
    Problem problem = Problem::none;
    int64_t begin = 0;  // offsets into the text
    int64_t end = 0;
};

// The rows of one piece.
struct Piece {
    Vector<int32_t> feature_counts;
    Vector<int32_t> label_counts;
    Growing<int32_t> features;
    Growing<float> values;
    Growing<int32_t> labels;
    int64_t feature_end = 0;  // one past the largest id seen
    int64_t label_end = 0;
    BadToken bad;
};

// Parses lines into a piece. Lines end in '\n', which is in no token, so digit loops need no bounds check.
class LineParser {
  public:
    LineParser(const Dialect& dialect, Piece& piece, const char* text, int64_t size)
        : dialect_(dialect), piece_(piece), text_(text), text_end_(text + size) {}

    // One line [p, end), without its newline; false when a token is bad.
    bool parse(const char* p, const char* end) {
        if (end != p && end[-1] == '\r') --end;
        if (dialect_.svmlight) {
            if (const void* comment = std::memchr(p, '#', static_cast<size_t>(end - p))) {
                end = static_cast<const char*>(comment);
            }
            p = skip_blanks(p, end);
            if (p == end) return true;
        }
        const int64_t most = (end - p) / 2 + 1;
        piece_.features.reserve_more(most);
        piece_.values.reserve_more(most);
        piece_.labels.reserve_more(most);
        line_begin_ = p;
        line_end_ = end;
        return read_labels(p) && (text_end_ - end >= kWide ? read_features<true>(p) : read_features<false>(p));
    }

  private:
    static constexpr uint64_t kLastId = std::numeric_limits<int32_t>::max() - 1;

    static bool is_blank(char c) { return c == ' ' || c == '\t'; }
    static const char* skip_blanks(const char* p, const char* end) {
        while (p != end && is_blank(*p)) ++p;
        return p;
    }
    const char* token_end(const char* p) const {
        while (p != line_end_ && !is_blank(*p)) ++p;
        return p;
    }

    bool fail(Problem problem, const char* begin, const char* end) {
        piece_.bad = {problem, begin - text_, end - text_};
        return false;
    }

    // Reads the digits at p, saturated above the largest id; moves p past them.
    static uint64_t read_id(const char*& p) {
        const char* begin = p;
        uint64_t id = 0;
        while (is_digit(*p)) id = id * 10 + static_cast<uint64_t>(*p++ - '0');
        if (p - begin > 18) {
            id = 0;
            for (const char* digit = begin; digit != p; ++digit) {
                id = std::min(id * 10 + static_cast<uint64_t>(*digit - '0'), kLastId + 1);
            }
        }
        return id;
    }

    static uint64_t read_id_wide(const char*& p) {
        int count = 0;
        const uint64_t id = read_digits(p, count);
        if (count == 8) return read_id(p);
        p += count;
        return id;
    }

    bool read_labels(const char*& p) {
        const int64_t first = piece_.labels.size();
        const char* stop = token_end(p);
        const bool absent = stop == p || (dialect_.svmlight && std::memchr(p, ':', static_cast<size_t>(stop - p)));
        if (!absent) {
            while (true) {
                const char* begin = p;
                const char* end = std::find(p, stop, ',');
                const uint64_t id = read_id(p);
                if (p != end || p == begin) {
                    const bool negative = end - begin > 1 && *begin == '-' && std::all_of(begin + 1, end, is_digit);
                    return fail(negative ? Problem::negative_label : Problem::bad_label, begin, end);
                }
                if (id > kLastId) return fail(Problem::huge_label, begin, end);
                if (static_cast<int64_t>(id) >= dialect_.n_labels) return fail(Problem::label_past_count, begin, end);
                piece_.labels.push(static_cast<int32_t>(id));
                if (end == stop) break;
                ++p;
            }
            int32_t* begin = piece_.labels.begin() + first;
            if (!std::is_sorted(begin, piece_.labels.end())) std::sort(begin, piece_.labels.end());
            piece_.labels.resize_down(std::unique(begin, piece_.labels.end()) - piece_.labels.begin());
            piece_.label_end = std::max<int64_t>(piece_.label_end, piece_.labels.end()[-1] + int64_t{1});
        }
        piece_.label_counts.push_back(static_cast<int32_t>(piece_.labels.size() - first));
        return true;
    }

    // `wide`: at least kWide bytes of text follow the line, so the wide readers stay inside it.
    template <bool wide>
    bool read_features(const char* p) {
        const int64_t first = piece_.features.size();
        int64_t previous = -1;
        bool rising = true;
        while ((p = skip_blanks(p, line_end_)) != line_end_) {
            const char* begin = p;
            const uint64_t written = wide ? read_id_wide(p) : read_id(p);
            const int64_t id = static_cast<int64_t>(written) - dialect_.first_id;
            float value = 1.0F;
            if (p == begin || (*p != ':' && (p != line_end_ && !is_blank(*p)))) return fail_feature(begin);
            if (*p == ':' && p != line_end_) {
                const char* number = ++p;
                const bool read = (wide && read_tiny_decimal(p, value)) || read_plain_decimal(p, line_end_, value);
                if (!read || (p != line_end_ && !is_blank(*p))) {
                    p = token_end(number);
                    if (p == number) return fail(Problem::missing_value, begin, p);
                    const Decimal verdict = read_decimal(number, p, value);
                    if (verdict == Decimal::malformed) return fail(Problem::bad_value, begin, p);
                    if (verdict == Decimal::not_finite) return fail(Problem::not_finite, begin, p);
                    if (verdict == Decimal::huge) return fail(Problem::huge_value, begin, p);
                }
            } else if (dialect_.svmlight) {
                return fail(Problem::missing_value, begin, p);
            }
            if (written > kLastId) return fail(Problem::huge_feature, begin, p);
            if (id < 0) return fail(Problem::feature_below_first, begin, p);
            if (id >= dialect_.n_features) return fail(Problem::feature_past_count, begin, p);
            rising = rising && id > previous;
            previous = id;
            piece_.features.push(static_cast<int32_t>(id));
            piece_.values.push(value);
        }
        if (!rising && !sort_features(first)) return fail(Problem::huge_sum, line_begin_, line_end_);
        const int64_t count = piece_.features.size() - first;
        if (count > 0)
            piece_.feature_end = std::max<int64_t>(piece_.feature_end, piece_.features.end()[-1] + int64_t{1});
        piece_.feature_counts.push_back(static_cast<int32_t>(count));
        return true;
    }

    bool fail_feature(const char* begin) {
        const char* end = token_end(begin);
        const char* id_end = std::find(begin, end, ':');
        const bool negative = id_end - begin > 1 && *begin == '-' && std::all_of(begin + 1, id_end, is_digit);
        return fail(negative ? Problem::negative_feature : Problem::bad_feature, begin, end);
    }

    // Sorts the features of the row and sums duplicates in file order; false if a sum overflows.
    bool sort_features(int64_t first) {
        scratch_.clear();
        for (int64_t i = first; i < piece_.features.size(); ++i) {
            scratch_.emplace_back(piece_.features[i], piece_.values[i]);
        }
        std::stable_sort(scratch_.begin(), scratch_.end(), [](auto& a, auto& b) { return a.first < b.first; });
        int64_t last = first - 1;
        for (const auto& [id, value] : scratch_) {
            if (last >= first && piece_.features[last] == id) {
                piece_.values[last] += value;
                if (!std::isfinite(piece_.values[last])) return false;
            } else {
                ++last;
                piece_.features[last] = id;
                piece_.values[last] = value;
            }
        }
        piece_.features.resize_down(last + 1);
        piece_.values.resize_down(last + 1);
        return true;
    }

    const Dialect& dialect_;
    Piece& piece_;
    const char* text_;
    const char* text_end_;
    const char* line_begin_ = nullptr;
    const char* line_end_ = nullptr;
    Vector<std::pair<int32_t, float>> scratch_;
};

// The joined matrices, or the first bad token of the text; then nothing else is set.
struct ParsedRows {
    BadToken bad;
    int64_t n_rows = 0, n_features_stored = 0, n_labels_stored = 0;
    std::unique_ptr<int64_t[]> feature_ptr, label_ptr;
    std::unique_ptr<int32_t[]> features, labels;
    std::unique_ptr<float[]> values;
    int64_t feature_end = 0, label_end = 0;
};

namespace detail {

// Parses the lines that start in [lo, hi) of the text.
inline void parse_piece(const char* text, int64_t size, int64_t lo, int64_t hi, const Dialect& dialect, Piece& piece) {
    const char* p = text + lo;
    if (lo > 0) {  // a line that began before belongs to an earlier piece
        const void* newline = std::memchr(p - 1, '\n', static_cast<size_t>(hi - lo));
        if (newline == nullptr) return;
        p = static_cast<const char*>(newline) + 1;
    }
    piece.features.reserve_more((hi - lo) / 8);  // `f:v` takes about 8 bytes; untouched memory is free
    piece.values.reserve_more((hi - lo) / 8);
    LineParser parser(dialect, piece, text, size);
    while (p < text + hi) {
        const auto* end = static_cast<const char*>(std::memchr(p, '\n', static_cast<size_t>(text + size - p)));
        if (!parser.parse(p, end)) return;
        p = end + 1;
    }
}

inline ParsedRows join(Vector<Piece>& pieces, int n_threads, Monitor& monitor) {
    struct Offset {
        int64_t row, feature, label;
    };
    ParsedRows rows;
    Vector<Offset> offsets;
    for (const Piece& piece : pieces) {
        offsets.push_back({rows.n_rows, rows.n_features_stored, rows.n_labels_stored});
        rows.n_rows += piece.feature_counts.size();
        rows.n_features_stored += piece.features.size();
        rows.n_labels_stored += piece.labels.size();
        rows.feature_end = std::max(rows.feature_end, piece.feature_end);
        rows.label_end = std::max(rows.label_end, piece.label_end);
    }
    rows.feature_ptr = unwritten<int64_t>(rows.n_rows + 1);
    rows.label_ptr = unwritten<int64_t>(rows.n_rows + 1);
    rows.features = unwritten<int32_t>(rows.n_features_stored);
    rows.values = unwritten<float>(rows.n_features_stored);
    rows.labels = unwritten<int32_t>(rows.n_labels_stored);
    rows.feature_ptr[0] = rows.label_ptr[0] = 0;
    parallel_for(pieces.size(), n_threads, monitor, [&](int64_t i, int) {
        Piece piece = std::move(pieces[i]);  // freed here, so the peak is not twice the data
        auto [row, feature, label] = offsets[i];
        std::copy_n(piece.features.begin(), piece.features.size(), rows.features.get() + feature);
        std::copy_n(piece.values.begin(), piece.values.size(), rows.values.get() + feature);
        std::copy_n(piece.labels.begin(), piece.labels.size(), rows.labels.get() + label);
        for (int64_t r = 0; r < piece.feature_counts.size(); ++r) {
            rows.feature_ptr.get()[++row] = feature += piece.feature_counts[r];
            rows.label_ptr.get()[row] = label += piece.label_counts[r];
        }
    });
    return rows;
}

}  // namespace detail

// Parses `size` bytes of text whose last byte, if any, is '\n'.
inline ParsedRows parse_rows(const char* text, int64_t size, const Dialect& dialect, int64_t piece_size, int n_threads,
                             Monitor& monitor) {
    assert(size == 0 || text[size - 1] == '\n');
    const int64_t n_pieces = (size + piece_size - 1) / piece_size;
    Vector<Piece> pieces(n_pieces);
    std::atomic<int64_t> first_bad{n_pieces};
    parallel_for(n_pieces, n_threads, monitor, [&](int64_t i, int) {
        if (i > first_bad.load(std::memory_order_relaxed))
            return;  // an earlier piece is bad, so this one does not matter
        Piece& piece = pieces[i];
        const int64_t lo = i * piece_size, hi = std::min(size, lo + piece_size);
        detail::parse_piece(text, size, lo, hi, dialect, piece);
        monitor.add(hi - lo);
        if (piece.bad.problem != Problem::none) {
            int64_t known = first_bad.load();
            while (i < known && !first_bad.compare_exchange_weak(known, i)) {
            }
        }
    });
    if (first_bad.load() < n_pieces) {
        ParsedRows rows;
        rows.bad = pieces[first_bad.load()].bad;
        return rows;
    }
    return detail::join(pieces, n_threads, monitor);
}

}  // namespace labelwood::rows
