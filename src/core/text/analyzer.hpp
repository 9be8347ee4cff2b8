// Cuts a text into terms: words and their n-grams, or n-grams of characters. One buffer holds the normalized
// text (lower case, single blanks between words). A term is a stretch of the buffer, so it costs no copy. A
// document has one string per field; fields differ in the length of their n-grams.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/span.hpp"
#include "text/unicode.hpp"
#include "text/vocabulary.hpp"
#include "text/word_forms.hpp"

namespace labelwood::text {

enum class Unit { word, character, character_in_word };

struct Ngrams {
    int64_t shortest, longest;
};

struct AnalyzerOptions {
    Unit unit;
    Vector<Ngrams> fields;  // the n-grams of each field, at least one
    int64_t min_length;     // of a word, in code points
    bool lowercase;
    const WordForms* forms = nullptr;  // for words only; may be null

    int64_t n_fields() const { return fields.size(); }

    // The forms if every form is a term by itself, else null.
    const WordForms* single_forms() const {
        const bool single = std::all_of(fields.begin(), fields.end(), [](const Ngrams& n) { return n.longest == 1; });
        return single ? forms : nullptr;
    }
};

// A stretch of an analyzer's buffer.
struct Stretch {
    int64_t begin, size;
};

class Analyzer {
  public:
    explicit Analyzer(const AnalyzerOptions& options) : options_(options) {}

    // The terms of a string of the documents: of field number % n_fields of document number / n_fields. Their
    // bytes() are valid until the next call; kPad bytes past a term may be read.
    const Vector<Stretch>& terms(const Strings& strings, int64_t number) {
        const char* const text = strings.begin(number);
        const int64_t size = strings.size(number);
        ngrams_ = options_.fields[number % options_.n_fields()];
        reserve(buffer_, lowered_bound(size) + kPad);
        spans_.clear();
        if (options_.forms != nullptr) {
            take_forms(*options_.forms, number);
            join_words();
            return spans_;
        }
        if (options_.lowercase) {
            size_ = lower_text(unicode_, text, size, buffer_.data()) - buffer_.data();
        } else {
            if (size > 0) std::memcpy(buffer_.data(), text, static_cast<size_t>(size));
            size_ = size;
        }
        if (options_.unit == Unit::word) {
            find_words();
            join_words();
        } else {
            options_.unit == Unit::character ? characters() : characters_in_words();
        }
        return spans_;
    }

    const char* bytes() const { return buffer_.data(); }

    static constexpr int64_t kPad = 8;

  private:
    static constexpr int64_t kBlock = 64;  // bytes whose flags fill a machine word

    static void reserve(Vector<char>& buffer, int64_t size) {
        if (buffer.size() < size) buffer.resize(size + size / 2);
    }

    // Writes a flag per byte of the buffer: 1 if the byte is part of a word character. Zeros pad the last
    // block.
    void flag_word_bytes() {
        flags_.resize((size_ / kBlock + 1) * kBlock);
        const char* const text = buffer_.data();
        const int64_t size = size_;
        uint8_t* __restrict flags = flags_.data();
        uint8_t any = 0;
        for (int64_t i = 0; i < size; ++i) {
            const auto byte = static_cast<uint8_t>(text[i]);
            const auto letter = static_cast<uint8_t>(static_cast<uint8_t>((byte | 0x20) - 'a') < 26);
            const auto digit = static_cast<uint8_t>(static_cast<uint8_t>(byte - '0') < 10);
            flags[i] = static_cast<uint8_t>(letter | digit | (byte == '_'));
            any |= byte;
        }
        std::fill(flags_.begin() + size_, flags_.end(), uint8_t{0});
        ascii_ = any < 0x80;
        if (ascii_) return;
        for (const char *at = text, *end = text + size_; at < end;) {
            if (static_cast<uint8_t>(*at) < 0x80) {
                ++at;
                continue;
            }
            const char* const from = at;
            const bool word = unicode_.flags(decode(at)) & kWord;
            std::fill(flags + (from - text), flags + (at - text), word);
        }
    }

    // Finds the words that are long enough, 64 flags at a time. Edges of words are the bits where flags
    // change. There is no branch per byte and none per word.
    void find_words() {
        flag_word_bytes();
        edges_.resize(size_ + 2);
        int64_t* edge = edges_.data();
        uint64_t inside = 0;  // the last flag of the block before
        const int64_t n_flags = flags_.size();
        for (int64_t block = 0; block < n_flags; block += kBlock) {
            const uint64_t bits = packed_flags(flags_.data() + block);
            uint64_t changes = bits ^ (bits << 1 | inside);
            inside = bits >> 63;
            for (; changes != 0; changes &= changes - 1) *edge++ = block + std::countr_zero(changes);
        }
        const int64_t n_words = (edge - edges_.data()) / 2;  // the flags end in a zero, so edges come in pairs
        spans_.resize(n_words + 1);
        Stretch* span = spans_.data();
        for (const int64_t* from = edges_.data(); from < edge; from += 2) {
            *span = {from[0], from[1] - from[0]};
            span += length(*span) >= options_.min_length;
        }
        spans_.resize(span - spans_.data());
    }

    static uint64_t packed_flags(const uint8_t* flags) {
        uint64_t bits = 0;
        for (int byte = 0; byte < 8; ++byte) {
            const uint64_t eight = head_of(reinterpret_cast<const char*>(flags) + 8 * byte, 8);
            // The product collects the lowest bits of the eight bytes in its highest byte.
            bits |= (eight * 0x0102040810204080ULL >> 56) << (8 * byte);
        }
        return bits;
    }

    // Number of code points of a stretch.
    int64_t length(const Stretch& span) const {
        if (ascii_) return span.size;
        int64_t n_codes = 0;
        for (int64_t i = 0; i < span.size; ++i) {
            n_codes += (buffer_[span.begin + i] & 0xC0) != 0x80;
        }
        return n_codes;
    }

    // The words are the forms of a string's words.
    void take_forms(const WordForms& forms, int64_t string) {
        int64_t end = 0;
        for (const int32_t word : forms.words(string)) {
            const int64_t size = forms.size(word);
            if (size == 0) continue;
            reserve(buffer_, end + size + 1 + kPad);
            std::copy_n(forms.form(word), size, buffer_.data() + end);
            spans_.push_back({end, size});
            end += size + 1;  // room for the blank of an n-gram
        }
    }

    // N-grams of the words.
    void join_words() {
        if (ngrams_.longest == 1) return;
        starts_.clear();
        char* const text = buffer_.data();
        int64_t packed = 0;  // words are moved together, one blank apart
        for (const Stretch& word : spans_) {
            starts_.push_back(packed);
            std::memmove(text + packed, text + word.begin, static_cast<size_t>(word.size));
            packed += word.size;
            text[packed++] = ' ';
        }
        starts_.push_back(packed);
        spans_.clear();
        add_windows(0, 1);
    }

    void characters() {
        // Two or more white-space characters become one blank; a single one stays.
        starts_.clear();
        char* const text = buffer_.data();
        char* packed = text;
        for (const char *at = text, *end = text + size_; at < end;) {
            const char* const from = at;
            const bool white = unicode_.flags(decode(at)) & kSpace;
            bool several = false;
            for (const char* after = at; white && after < end && (unicode_.flags(decode(after)) & kSpace); at = after) {
                several = true;
            }
            starts_.push_back(packed - text);
            if (several) {
                *packed++ = ' ';
            } else {
                std::memmove(packed, from, static_cast<size_t>(at - from));
                packed += at - from;
            }
        }
        starts_.push_back(packed - text);
        add_windows(0, 0);
    }

    void characters_in_words() {
        // Every word gets a blank before and a blank after.
        reserve(padded_, 2 * size_ + 2 + kPad);
        char* to = padded_.data();
        starts_.clear();
        const char* at = buffer_.data();
        const char* const end = at + size_;
        while (at < end) {
            const int64_t first = starts_.size();
            for (const char* from = at; at < end && !(unicode_.flags(decode(at)) & kSpace); from = at) {
                if (starts_.size() == first) {
                    starts_.push_back(to - padded_.data());
                    *to++ = ' ';
                }
                starts_.push_back(to - padded_.data());
                std::memcpy(to, from, static_cast<size_t>(at - from));
                to += at - from;
            }
            if (starts_.size() == first) continue;
            starts_.push_back(to - padded_.data());
            *to++ = ' ';
            starts_.push_back(to - padded_.data());
            add_windows(first, 0);
            // A word shorter than all n-grams is one term.
            if (starts_.size() - first - 1 < ngrams_.shortest) {
                const int64_t begin = starts_[first];
                spans_.push_back({begin, starts_.back() - begin});
            }
        }
        buffer_.swap(padded_);
    }

    // The n-grams of the units that begin at starts_[first] and later; the last start is the end. Units are
    // `gap` bytes apart.
    void add_windows(int64_t first, int64_t gap) {
        const int64_t count = starts_.size() - 1 - first;
        const int64_t* const starts = starts_.data() + first;
        for (int64_t n = ngrams_.shortest; n <= std::min(ngrams_.longest, count); ++n) {
            for (int64_t i = 0; i + n <= count; ++i) spans_.push_back({starts[i], starts[i + n] - gap - starts[i]});
        }
    }

    AnalyzerOptions options_;
    Ngrams ngrams_{};  // of the current string
    Unicode unicode_;
    Vector<char> buffer_, padded_;
    Vector<uint8_t> flags_;
    int64_t size_ = 0;
    bool ascii_ = true;
    Vector<int64_t> edges_, starts_;
    Vector<Stretch> spans_;
};

}  // namespace labelwood::text
