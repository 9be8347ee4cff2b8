// Rows of counts from the numbers of words, where the form of a word is a term by itself.
#pragma once

#include <cstdlib>
#include <memory>
#include <new>

#include "base/span.hpp"
#include "text/count_rows.hpp"
#include "text/vocabulary.hpp"
#include "text/word_forms.hpp"

namespace labelwood::text {

inline constexpr uint32_t kNoColumn = UINT32_MAX;

// What was seen of each column. The memory starts as zero pages and is touched only where a column occurs, so
// a short text is cheap whatever the size of the vocabulary.
class LastSeen {
  public:
    explicit LastSeen(int64_t n_columns)
        : seen_(static_cast<Seen*>(std::calloc(static_cast<size_t>(n_columns), sizeof(Seen))), &std::free) {
        if (!seen_) throw std::bad_alloc();
    }

    Seen& operator[](uint32_t column) { return seen_.get()[column]; }

  private:
    std::unique_ptr<Seen, decltype(&std::free)> seen_;
};

// Counts documents and occurrences of terms; of_word holds the term of each word, or kNoColumn.
inline void count_documents(const WordForms& forms, const Vector<uint32_t>& of_word, int64_t n_fields,
                            Vocabulary& terms, int n_threads, Monitor& monitor) {
    struct Tally {
        uint32_t last = 0;  // document, counted from 1
        int32_t n_documents = 0;
        int64_t total = 0;
    };
    Vector<Vector<Tally>> tallies(n_threads);
    constexpr int64_t kDocuments = 1 << 12;  // of a task
    const int64_t n_documents = forms.n_strings() / n_fields;
    parallel_for((n_documents + kDocuments - 1) / kDocuments, n_threads, monitor, [&](int64_t task, int worker) {
        Vector<Tally>& tally = tallies[worker];
        tally.resize(terms.size());
        const int64_t end = std::min(n_documents, (task + 1) * kDocuments) * n_fields;
        for (int64_t string = task * kDocuments * n_fields; string < end; ++string) {
            const auto document = static_cast<uint32_t>(string / n_fields) + 1;
            for (const int32_t word : forms.words(string)) {
                if (of_word[word] == kNoColumn) continue;
                Tally& term = tally[of_word[word]];
                term.n_documents += term.last != document;
                term.last = document;
                ++term.total;
            }
        }
    });
    for (const Vector<Tally>& tally : tallies) {
        for (int64_t id = 0; id < tally.size(); ++id) {
            terms[static_cast<uint32_t>(id)].n_documents += tally[id].n_documents;
            terms[static_cast<uint32_t>(id)].total += tally[id].total;
        }
    }
}

// Rows of counts; of_word holds the column of each word, or kNoColumn.
inline CountRows count_forms(const Strings& strings, const WordForms& forms, const Vector<uint32_t>& of_word,
                             int64_t n_fields, int64_t n_columns, int n_threads, Monitor& monitor) {
    Vector<Vector<uint64_t>> workspaces(n_threads);
    Vector<LastSeen> last_seen;
    for (int worker = 0; worker < n_threads; ++worker) last_seen.emplace_back(n_columns);
    Vector<Piece> pieces =
        build_rows(strings, n_fields, n_threads, monitor, [&](int64_t string, Vector<uint64_t>& entries, int worker) {
            const int64_t before = entries.size();
            for (const int32_t word : forms.words(string)) {
                const uint32_t column = of_word[word];
                if (column != kNoColumn) last_seen[worker][column].count(column, string, entries, before);
            }
            sort_entries(entries.data() + before, entries.data() + entries.size(), workspaces[worker], n_columns);
        });
    return join_rows(pieces, n_threads, monitor);
}

}  // namespace labelwood::text
