// Reads strings once: numbers the distinct words of each language, and writes every string as numbers of words.
#pragma once

#include "text/cutter.hpp"

namespace labelwood::text {

struct ReadWords {
    Vector<uint8_t> lines;      // the distinct words, each ended by a newline, those of a language together
    Vector<int64_t> languages;  // languages[l] to languages[l + 1] are the numbers of the words of language l
    Vector<int32_t> tokens;     // numbers of words, string after string
    Vector<int64_t> starts;     // tokens of string s: starts[s] to starts[s + 1]
};

// `languages` holds the language of each document. `options` must be those of single words.
inline ReadWords read_words(const Strings& strings, const AnalyzerOptions& options, const uint8_t* languages,
                            int64_t n_languages, int n_threads, Monitor& monitor) {
    struct Part {
        int worker = 0;
        Vector<int32_t> tokens{};  // numbers within worker and language
    };
    const int64_t n_fields = options.n_fields();
    Vector<Vector<WordList>> found(n_languages, Vector<WordList>(n_threads));
    Vector<Cutter> cutters(2 * n_threads, Cutter(options));
    const Vector<Piece> pieces = pieces_of(strings, n_fields);
    Vector<Part> parts(pieces.size());
    ReadWords read;
    read.starts.resize(strings.count + 1);
    parallel_for(pieces.size(), n_threads, monitor, [&](int64_t p, int worker) {
        Vector<int32_t>& tokens = parts[p].tokens;
        parts[p].worker = worker;
        const auto words_of = [&](int64_t string) -> WordList& { return found[languages[string / n_fields]][worker]; };
        // A string is cut while the slots of the string before it are prefetched.
        const auto cut = [&](int64_t string) {
            const WordList& words = words_of(string);
            cutters[2 * worker + string % 2].cut(strings, string, [&](uint64_t hash) { words.fetch_slot(hash); });
        };
        cut(pieces[p].begin);
        for (int64_t string = pieces[p].begin; string < pieces[p].end; ++string) {
            if (string + 1 < pieces[p].end) cut(string + 1);
            WordList& words = words_of(string);
            cutters[2 * worker + string % 2].each([&](uint64_t hash) { words.fetch_term(hash); },
                                                  [&](const char* text, int64_t size, uint64_t hash) {
                                                      const uint32_t id = words.intern(text, size, hash);
                                                      tokens.push_back(static_cast<int32_t>(id));
                                                  });
            read.starts[string + 1] = tokens.size();
        }
    });

    Vector<Vector<Vector<uint32_t>>> merged;  // by language and worker
    read.languages.push_back(0);
    for (Vector<WordList>& of_workers : found) {
        merged.push_back(merge(of_workers));
        const WordList& words = of_workers[0];
        for (uint32_t id = 0; id < words.size(); ++id) {
            const char* const word = words.text(words[id]);
            read.lines.insert(read.lines.end(), word, word + words[id].size);
            read.lines.push_back('\n');
        }
        read.languages.push_back(read.languages.back() + words.size());
    }
    if (read.languages.back() > kMaxTerms) throw std::length_error("too many words");

    int64_t before = 0;
    for (int64_t p = 0; p < pieces.size(); ++p) {
        const int64_t first = before;
        const int32_t* token = parts[p].tokens.data();
        for (int64_t string = pieces[p].begin; string < pieces[p].end; ++string) {
            const int64_t language = languages[string / n_fields];
            const Vector<uint32_t>& numbers = merged[language][parts[p].worker];
            read.starts[string + 1] += first;
            for (; before < read.starts[string + 1]; ++before) {
                read.tokens.push_back(static_cast<int32_t>(read.languages[language] + numbers[*token++]));
            }
        }
        parts[p] = {};
    }
    return read;
}

}  // namespace labelwood::text
