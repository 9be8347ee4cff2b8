// Terms with their hashes, and the terms that several workers found.
#pragma once

#include <numeric>

#include "base/span.hpp"
#include "text/analyzer.hpp"
#include "text/vocabulary.hpp"

namespace labelwood::text {

// A worker's analyzer, and the terms of its string with their hashes. All hashes are computed and their
// slots prefetched before the first lookup, so that memory latencies overlap.
class Cutter {
  public:
    explicit Cutter(const AnalyzerOptions& options) : analyzer_(options) {}

    template <class Fetch>
    void cut(const Strings& strings, int64_t string, Fetch&& fetch) {
        spans_ = &analyzer_.terms(strings, string);
        hashes_.resize(spans_->size());
        for (int64_t i = 0; i < hashes_.size(); ++i) {
            hashes_[i] = hash_string(analyzer_.bytes() + (*spans_)[i].begin, (*spans_)[i].size);
            fetch(hashes_[i]);
        }
    }

    // Calls take(text, size, hash) for every term, in the order of the text, and fetch(hash) some terms
    // ahead.
    template <class Fetch, class Take>
    void each(Fetch&& fetch, Take&& take) {
        constexpr int64_t kAhead = 8;
        const int64_t n_terms = hashes_.size();
        for (int64_t i = 0; i < std::min(kAhead, n_terms); ++i) fetch(hashes_[i]);
        for (int64_t i = 0; i < n_terms; ++i) {
            if (i + kAhead < n_terms) fetch(hashes_[i + kAhead]);
            take(analyzer_.bytes() + (*spans_)[i].begin, (*spans_)[i].size, hashes_[i]);
        }
    }

  private:
    Analyzer analyzer_;
    const Vector<Stretch>* spans_ = nullptr;
    Vector<uint64_t> hashes_;
};

// Adds the terms of all workers to those of the first; returns, per worker, the merged id of each id.
template <class Item>
Vector<Vector<uint32_t>> merge(Vector<VocabularyOf<Item>>& found) {
    Vector<Vector<uint32_t>> merged(found.size());
    merged[0].resize(found[0].size());
    std::iota(merged[0].begin(), merged[0].end(), 0u);
    for (int64_t w = 1; w < found.size(); ++w) {
        Vector<char> padded;
        for (uint32_t id = 0; id < found[w].size(); ++id) {
            const Item& term = found[w][id];
            padded.assign(found[w].text(term), found[w].text(term) + term.size);
            padded.resize(padded.size() + 8);
            const uint32_t to = found[0].intern(padded.data(), term.size, hash_string(padded.data(), term.size));
            found[0][to].add(term);
            merged[w].push_back(to);
        }
        found[w] = {};
    }
    found[0].release_table();
    return merged;
}

}  // namespace labelwood::text
