// Grows the trees of FastXmlForest: sides by label rankings, a sparse separator between them, at every node.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/csr.hpp"
#include "base/parallel.hpp"
#include "base/rng.hpp"
#include "base/span.hpp"
#include "forest/binary_grower.hpp"
#include "forest/fastxml/ranked_sides.hpp"
#include "forest/fastxml/separator.hpp"

namespace labelwood::forest::fastxml {

struct Options {
    BinaryOptions tree;
    SeparatorOptions separator;
    int32_t rounds;                   // separators trained per node, each after the sides have converged
    Span<const float> label_weights;  // empty: all are 1
};

class Splitter {
  public:
    Splitter(const Csr& x, const Csr& y, const Options& options, const Monitor& monitor)
        : rounds_(options.rounds), sides_(y, options.label_weights), separator_(x, options.separator, monitor) {}

    void split(Span<const int32_t> rows, uint64_t key, Vector<uint8_t>& side) {
        Rng rng(key);
        side.resize(rows.size());
        for (uint8_t& s : side) s = static_cast<uint8_t>(rng.below(2));
        sides_.load(rows);
        separator_.load(rows);
        for (auto& loss : loss_) loss.clear();
        for (int32_t round = 0; round < rounds_; ++round) {
            before_ = side;
            sides_.assign(loss_, side);
            const auto positive = std::count(side.begin(), side.end(), uint8_t{1});
            if (positive == 0 || positive == side.size() || (round > 0 && side == before_)) break;
            separator_.train(side, rng);
            if (round + 1 < rounds_) separator_.losses(loss_);
        }
        separator_.sides(side);
    }

    float emit(Vector<int32_t>& features, Vector<float>& weights) { return separator_.emit(features, weights); }

  private:
    const int32_t rounds_;
    RankedSides sides_;
    Separator separator_;
    std::array<Vector<double>, 2> loss_;
    Vector<uint8_t> before_;
};

inline FlatForest grow_forest(const Csr& x, const Csr& y, const Options& options, int n_threads, Monitor& monitor) {
    // Leaves divide by the largest weight, so that their values are at most 1.
    Vector<float> relative(options.label_weights.begin(), options.label_weights.end());
    if (!relative.empty()) {
        const float largest = *std::max_element(relative.begin(), relative.end());
        for (float& weight : relative) weight /= largest;
    }
    return grow_binary_forest(x.n_rows, options.tree, n_threads, monitor, [&] {
        return BinaryGrower(x, y, options.tree, MeanLabels(y, options.tree.leaf_size, relative),
                            Splitter(x, y, options, monitor), monitor);
    });
}

}  // namespace labelwood::forest::fastxml
