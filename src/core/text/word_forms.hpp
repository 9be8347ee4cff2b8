// Strings as the numbers of their words, and the form of each word: its stem or its lemma. Terms are made of
// forms, so that a text is read once.
#pragma once

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "base/span.hpp"

namespace labelwood::text {

class WordForms {
  public:
    // `lines` holds the form of every word, each ended by a newline; an empty form drops its word. The words of
    // string s are tokens[starts[s]] to tokens[starts[s + 1]].
    WordForms(Span<const uint8_t> lines, Span<const int32_t> tokens, Span<const int64_t> starts)
        : text_(lines.begin(), lines.end()), tokens_(tokens), starts_(starts) {
        begins_.push_back(0);
        const char* const end = text_.data() + text_.size();
        for (const char* at = text_.data(); at < end; ++at) {
            at = static_cast<const char*>(std::memchr(at, '\n', static_cast<size_t>(end - at)));
            if (at == nullptr) throw std::invalid_argument("a form lacks its newline");
            begins_.push_back(at + 1 - text_.data());
        }
        text_.resize(text_.size() + kPad);
        const bool ends = !starts.empty() && starts[0] == 0 && starts.back() == tokens.size();
        const auto is_known = [this](int32_t word) { return word >= 0 && word < n_words(); };
        if (!ends || !std::is_sorted(starts.begin(), starts.end()) ||
            !std::all_of(tokens.begin(), tokens.end(), is_known)) {
            throw std::invalid_argument("words and forms do not fit together");
        }
    }

    int64_t n_words() const { return begins_.size() - 1; }
    int64_t n_strings() const { return starts_.size() - 1; }
    Span<const int32_t> words(int64_t string) const {
        return {tokens_.data() + starts_[string], starts_[string + 1] - starts_[string]};
    }

    // The form of a word. Eight bytes past it may be read.
    const char* form(int64_t word) const { return text_.data() + begins_[word]; }
    int64_t size(int64_t word) const { return begins_[word + 1] - begins_[word] - 1; }

  private:
    static constexpr int64_t kPad = 8;

    Vector<char> text_;
    Vector<int64_t> begins_;  // in text_, one more than words
    Span<const int32_t> tokens_;
    Span<const int64_t> starts_;
};

}  // namespace labelwood::text
