// A text cut into terms: words and their n-grams, or n-grams of characters. Every term is a stretch of one buffer that
// holds the text made uniform (lower case, single blanks between words), so a term costs no copy.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "unicode.hpp"

namespace labelwood::text {

enum class Unit { word, character, character_in_word };

struct AnalyzerOptions {
    Unit unit;
    int64_t shortest;  // of the n-grams
    int64_t longest;
    int64_t min_length;  // of a word, in code points
    bool lowercase;
};

class Analyzer {
  public:
    explicit Analyzer(const AnalyzerOptions& options) : options_(options) {}

    // Calls emit(first byte, number of bytes) for every term, in the order of the text. Up to kPad bytes past a term
    // may be read.
    template <class Emit>
    void terms(const char* text, int64_t size, Emit&& emit) {
        const int64_t need = lowered_bound(size) + kPad;
        if (static_cast<int64_t>(buffer_.size()) < need) buffer_.resize(static_cast<size_t>(need + need / 2));
        char* const begin = buffer_.data();
        char* end = begin + size;
        if (options_.lowercase) {
            end = lower_text(unicode_, text, size, begin);
        } else {
            std::memcpy(begin, text, static_cast<size_t>(size));
        }
        if (options_.unit == Unit::word) {
            word_terms(begin, end, emit);
        } else if (options_.unit == Unit::character) {
            character_terms(begin, end, emit);
        } else {
            in_word_terms(begin, end, emit);
        }
    }

    static constexpr int64_t kPad = 8;

  private:
    // Calls found(begin, end, code points) for every longest stretch of characters that have (or lack) a flag.
    template <class Found>
    void stretches(const char* at, const char* end, uint8_t flag, bool wanted, Found&& found) {
        while (at < end) {
            const char* const begin = at;
            int64_t n_codes = 0;
            while (at < end) {
                const auto byte = static_cast<uint8_t>(*at);
                if (byte < 0x80) {
                    if (((unicode_.ascii_flags[byte] & flag) != 0) != wanted) break;
                    ++at;
                } else {
                    const char* after = at;
                    if (((unicode_.flags(decode(after)) & flag) != 0) != wanted) break;
                    at = after;
                }
                ++n_codes;
            }
            if (n_codes > 0) {
                found(begin, at, n_codes);
            } else {
                decode(at);
            }
        }
    }

    template <class Emit>
    void word_terms(char* begin, char* end, Emit& emit) {
        const int64_t longest = options_.longest;
        if (longest == 1) {
            stretches(begin, end, kWord, true, [&](const char* from, const char* to, int64_t n_codes) {
                if (n_codes >= options_.min_length) emit(from, to - from);
            });
            return;
        }
        starts_.clear();
        char* packed = begin;  // words are moved down to stand one blank apart
        stretches(begin, end, kWord, true, [&](const char* from, const char* to, int64_t n_codes) {
            if (n_codes < options_.min_length) return;
            starts_.push_back(packed - begin);
            std::memmove(packed, from, static_cast<size_t>(to - from));
            packed += to - from;
            *packed++ = ' ';
        });
        starts_.push_back(packed - begin);
        emit_windows(begin, 1, emit);
    }

    template <class Emit>
    void character_terms(char* begin, char* end, Emit& emit) {
        // Two or more white characters become one blank; a single one stays what it is.
        char* packed = begin;
        starts_.clear();
        for (const char* at = begin; at < end;) {
            const char* const from = at;
            const bool white = unicode_.flags(decode(at)) & kSpace;
            bool several = false;
            for (const char* after = at; white && after < end && (unicode_.flags(decode(after)) & kSpace);
                 at = after) {
                several = true;
            }
            starts_.push_back(packed - begin);
            if (several) {
                *packed++ = ' ';
            } else {
                std::memmove(packed, from, static_cast<size_t>(at - from));
                packed += at - from;
            }
        }
        starts_.push_back(packed - begin);
        emit_windows(begin, 0, emit);
    }

    template <class Emit>
    void in_word_terms(char* begin, char* end, Emit& emit) {
        stretches(begin, end, kSpace, false, [&](const char* from, const char* to, int64_t) {
            padded_.assign(1, ' ');
            padded_.insert(padded_.end(), from, to);
            padded_.push_back(' ');
            starts_.clear();
            const char* const last = padded_.data() + padded_.size();
            for (const char* at = padded_.data(); at < last; decode(at)) starts_.push_back(at - padded_.data());
            starts_.push_back(static_cast<int64_t>(padded_.size()));
            padded_.resize(padded_.size() + kPad);
            emit_windows(padded_.data(), 0, emit);
            // A word too short for every length asked for counts once, whole.
            if (static_cast<int64_t>(starts_.size()) - 1 < options_.shortest) emit(padded_.data(), starts_.back());
        });
    }

    // The n-grams of what begins at starts_; the last start is the end. `gap` bytes part one from the next.
    template <class Emit>
    void emit_windows(const char* begin, int64_t gap, Emit& emit) {
        const auto count = static_cast<int64_t>(starts_.size()) - 1;
        for (int64_t n = options_.shortest; n <= std::min(options_.longest, count); ++n) {
            for (int64_t i = 0; i + n <= count; ++i) {
                emit(begin + starts_[static_cast<size_t>(i)],
                     starts_[static_cast<size_t>(i + n)] - gap - starts_[static_cast<size_t>(i)]);
            }
        }
    }

    AnalyzerOptions options_;
    Unicode unicode_;
    std::vector<char> buffer_, padded_;
    std::vector<int64_t> starts_;
};

}  // namespace labelwood::text
