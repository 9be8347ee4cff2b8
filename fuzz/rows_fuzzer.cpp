// Coverage-guided fuzzing of the row parser (rows/parse.hpp) and of the text analyzer (text/hash_terms.hpp).
//
//     make fuzz-guided MINUTES=5
//
// The first byte of an input selects the function and its options; the rest is the text. A result that is not
// a valid Csr aborts, as a sanitizer does.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "rows/parse.hpp"
#include "text/hash_terms.hpp"

using namespace labelwood;

namespace {

template <class Ptr, class Ids>
void check_rows(const Ptr& ptr, const Ids& ids, int64_t n_rows, int64_t end) {
    if (ptr[0] != 0) abort();
    for (int64_t r = 0; r < n_rows; ++r) {
        if (ptr[r] > ptr[r + 1]) abort();
        for (int64_t i = ptr[r]; i < ptr[r + 1]; ++i) {
            if (ids[i] < 0 || ids[i] >= end || (i > ptr[r] && ids[i] <= ids[i - 1])) abort();
        }
    }
}

void parse(uint8_t choice, const std::string& text) {
    Monitor monitor;
    const rows::Dialect dialect{(choice & 2) != 0, (choice & 4) != 0 ? 1 : 0, 1 << 20, 1 << 20};
    const int64_t piece = (choice & 8) != 0 ? 7 : 1 << 20;
    const rows::ParsedRows rows =
        rows::parse_rows(text.data(), static_cast<int64_t>(text.size()), dialect, piece, 1, monitor);
    if (rows.bad.problem != rows::Problem::none) {
        if (rows.bad.begin > rows.bad.end || rows.bad.end > static_cast<int64_t>(text.size())) abort();
        return;
    }
    check_rows(rows.feature_ptr, rows.features, rows.n_rows, rows.feature_end);
    check_rows(rows.label_ptr, rows.labels, rows.n_rows, rows.label_end);
}

// Encodes two bytes of input as one character, so that the text is UTF-8 as Python's "surrogatepass" writes
// it: lone surrogates are included.
std::string characters(const uint8_t* data, size_t size) {
    std::string out;
    for (size_t i = 0; i + 1 < size; i += 2) {
        const auto c = static_cast<uint32_t>(data[i] | data[i + 1] << 8);
        if (c < 0x80) {
            out += static_cast<char>(c);
        } else if (c < 0x800) {
            out += {static_cast<char>(0xc0 | c >> 6), static_cast<char>(0x80 | (c & 0x3f))};
        } else {
            out += {static_cast<char>(0xe0 | c >> 12), static_cast<char>(0x80 | (c >> 6 & 0x3f)),
                    static_cast<char>(0x80 | (c & 0x3f))};
        }
    }
    return out;
}

void cut(uint8_t choice, const std::string& text) {
    Monitor monitor;
    const int64_t offsets[] = {0, static_cast<int64_t>(text.size())};
    const int longest = 1 + (choice >> 4 & 3);
    const text::AnalyzerOptions analyzer{
        static_cast<text::Unit>((choice >> 1) % 3), {{1, longest}}, 1 + (choice >> 6), (choice & 8) != 0};
    const auto rows = text::hash_terms({text.data(), offsets, 1}, {analyzer, 1 << 10, true}, 1, monitor);
    check_rows(rows.indptr, rows.indices, 1, 1 << 10);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size == 0) return 0;
    if ((data[0] & 1) == 0) {
        parse(data[0], std::string(reinterpret_cast<const char*>(data + 1), size - 1) + "\n");
    } else {
        cut(data[0], characters(data + 1, size - 1));
    }
    return 0;
}
