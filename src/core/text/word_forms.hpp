// The form of each word: its stem or its lemma. Terms are made of the forms.
#pragma once

#include <algorithm>
#include <stdexcept>

#include "base/span.hpp"
#include "text/count_rows.hpp"
#include "text/vocabulary.hpp"

namespace labelwood::text {

// The words of every language and their forms. Words [starts[l], starts[l + 1]) are those of language l. A word
// with an empty form is dropped; a word that is not here is its own form.
class WordForms {
  public:
    // `languages` holds the language of each document.
    WordForms(const Strings& words, const Strings& forms, const int64_t* starts, int64_t n_languages,
              const uint8_t* languages, int64_t n_documents)
        : words_(words), forms_(forms), starts_(starts), languages_(languages), slots_(table_size(words.count)) {
        const bool fits = words.count == forms.count && words.count <= kMaxTerms && starts[n_languages] == words.count;
        if (!fits || std::any_of(languages, languages + n_documents, [&](int64_t l) { return l >= n_languages; })) {
            throw std::invalid_argument("words, forms and languages do not fit together");
        }
        Vector<char> padded;  // hashing reads past the end of a string
        for (int64_t language = 0; language < n_languages; ++language) {
            for (int64_t id = starts[language]; id < starts[language + 1]; ++id) {
                padded.assign(words.begin(id), words.begin(id) + words.size(id));
                padded.resize(padded.size() + 8);
                const uint64_t hash = hash_of(padded.data(), words.size(id), language);
                slots_[find_slot(slots_.data(), mask(), hash, [](uint32_t) { return false; })] =
                    slot_of(hash, static_cast<uint32_t>(id));
            }
        }
    }

    int64_t language_of(int64_t document) const { return languages_[document]; }

    // The number of the form of a word; -1 if the word is its own form. Eight bytes past the word are read.
    int64_t find(const char* text, int64_t size, int64_t language) const {
        const uint64_t hash = hash_of(text, size, language);
        const int64_t at = find_slot(slots_.data(), mask(), hash, [&](uint32_t id) {
            return id >= starts_[language] && id < starts_[language + 1] && words_.size(id) == size &&
                   std::memcmp(words_.begin(id), text, static_cast<size_t>(size)) == 0;
        });
        return static_cast<int64_t>(static_cast<uint32_t>(slots_[at])) - 1;
    }

    const Strings& forms() const { return forms_; }

  private:
    static uint64_t hash_of(const char* text, int64_t size, int64_t language) {
        const uint64_t hash = hash_string(text, size) + static_cast<uint64_t>(language) * 0x9e3779b97f4a7c15ULL;
        return hash ^ hash >> 31;
    }

    uint64_t mask() const { return static_cast<uint64_t>(slots_.size() - 1); }

    Strings words_, forms_;
    const int64_t* starts_;
    const uint8_t* languages_;
    Vector<uint64_t> slots_;
};

}  // namespace labelwood::text
