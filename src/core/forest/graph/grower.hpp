// Grows the trees of GraphForest: a neighbour graph and a cut at every node, down to small leaves.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/csr.hpp"
#include "base/parallel.hpp"
#include "base/rng.hpp"
#include "base/span.hpp"
#include "forest/binary_grower.hpp"
#include "forest/graph/cut.hpp"
#include "forest/graph/label_graph.hpp"

namespace labelwood::forest::graph {

struct Options {
    BinaryOptions tree;
    LabelGraphOptions graph;
    CutOptions cut;
};

class Splitter {
  public:
    Splitter(const Csr& x, const Csr& y, const Options& options, const Monitor& monitor)
        : options_(options), builder_(y, monitor), cut_(x, monitor) {}

    void split(Span<const int32_t> rows, uint64_t key, Vector<uint8_t>& side) {
        const auto n = static_cast<int32_t>(rows.size());
        builder_.build(rows.data(), n, options_.graph, &graph_);
        cut_.load(rows.data(), n, options_.cut.feature_rows);
        cut_.train(graph_, options_.cut, Rng(key));
        cut_.sides(&side);
        bias_ = 0.0f;
        Rng rng(key, 1);
        if (is_one_sided(side)) cut_.load(rows.data(), n, 1);
        for (int attempt = 0; attempt < kSeparations && is_one_sided(side); ++attempt) {
            const auto a = static_cast<int32_t>(rng.below(static_cast<uint32_t>(n)));
            const auto b = static_cast<int32_t>(rng.below(static_cast<uint32_t>(n)));
            bias_ = cut_.separate(a, b);
            cut_.sides(&side, bias_);
        }
    }

    float emit(Vector<int32_t>& features, Vector<float>& weights) {
        cut_.emit(&features, &weights);
        return bias_;
    }

  private:
    static constexpr int kSeparations = 8;

    static bool is_one_sided(const Vector<uint8_t>& side) {
        return std::all_of(side.begin(), side.end(), [&](uint8_t s) { return s == side[0]; });
    }

    const Options options_;
    LabelGraphBuilder builder_;
    Cut cut_;
    LabelGraph graph_;
    float bias_ = 0.0f;
};

inline FlatForest grow_forest(const Csr& x, const Csr& y, const Options& options, int n_threads, Monitor& monitor) {
    return grow_binary_forest(x.n_rows, options.tree, n_threads, monitor, [&] {
        return BinaryGrower(x, y, options.tree, MeanLabels(y, options.tree.leaf_size), Splitter(x, y, options, monitor),
                            monitor);
    });
}

}  // namespace labelwood::forest::graph
