// A packed forest, ready to route: its arrays, the router's scratch buffers and the resident blocks.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <numeric>
#include <tuple>
#include <variant>

#include "base/csr.hpp"
#include "base/parallel.hpp"
#include "base/span.hpp"
#include "forest/leaf_average.hpp"
#include "forest/resident_blocks.hpp"
#include "forest/router.hpp"
#include "forest/router_scratch.hpp"
#include "memory/huge_pages.hpp"

namespace labelwood::forest {

// The arrays of a forest, owned by the caller. Ids and numbers are stored as narrow as they fit.
struct ForestView {
    using Ids = std::variant<const uint16_t*, const int32_t*>;
    using Numbers = std::variant<const float*, const Half*>;

    Span<const int32_t> child_ptr;
    Span<const int64_t> weight_ptr;
    Ids weight_features;
    Numbers weights;
    Span<const float> bias;
    Span<const int64_t> leaf_ptr;
    Ids leaf_labels;
    Numbers leaf_values;
    const uint32_t* seeds;

    int64_t n_nodes() const { return child_ptr.size() - 1; }
};

// Leaves of (row r, tree t): nodes[ptr[r * n_trees + t]] onwards.
struct LeavesByRow {
    Vector<int64_t> ptr;
    Vector<int32_t> nodes;
};

// Every row reads a few bytes of the per-node arrays at each node on its way. Those arrays are copied into
// huge pages, because the pages of a mapped file are small: a single row takes 7 % less time.
class PackedForest {
  public:
    PackedForest(const ForestView& view, const RoutingOptions& options)
        : view_(view),
          child_ptr_(view.child_ptr),
          numbers_(number_nodes(view)),
          weight_ptr_(view.weight_ptr),
          bias_(view.bias),
          leaf_ptr_(view.leaf_ptr),
          routing_{options, child_ptr_.data(), bias_.data(), view.seeds, numbers_.data()},
          scratches_(routing_) {}

    // The k best labels of every row by averaged leaves; labels and scores have k columns. `allowed` holds 0 for
    // labels to leave out; null: none.
    void topk(const Csr& x, int32_t k, const uint8_t* allowed, int n_threads, Monitor& monitor, int32_t* labels,
              float* scores) {
        over_shards(x, n_threads, monitor, [&](int64_t, int64_t begin, int64_t end, RouterScratch& scratch) {
            std::visit(
                [&]<class Label, class Value>(const Label* leaf_labels, const Value* leaf_values) {
                    const LeafTable<Label, Value> leaves{leaf_ptr_.data(), leaf_labels, leaf_values};
                    LeafAverager<Label, Value>(leaves, routing_, k, allowed)
                        .average(end - begin, routing_.n_labels, scratch, labels + begin * k, scores + begin * k);
                },
                view_.leaf_labels, view_.leaf_values);
        });
    }

    LeavesByRow leaves(const Csr& x, int n_threads, Monitor& monitor) {
        const int64_t n_trees = routing_.n_trees;
        LeavesByRow found{Vector<int64_t>(x.n_rows * n_trees + 1, 0), {}};
        Vector<Vector<int32_t>> parts(shards_of(x, n_threads).size());
        over_shards(x, n_threads, monitor, [&](int64_t shard, int64_t begin, int64_t end, RouterScratch& scratch) {
            scratch.place.resize(end - begin);
            std::iota(scratch.place.begin(), scratch.place.end(), 0);
            sort_by_row(scratch.place, scratch);
            for (const ReachedLeaf& r : scratch.by_row) {
                ++found.ptr[(begin + r.row) * n_trees + r.tree + 1];
                parts[shard].push_back(r.leaf);
            }
        });
        for (int64_t i = 1; i < found.ptr.size(); ++i) found.ptr[i] += found.ptr[i - 1];
        found.nodes.reserve(found.ptr.back());
        for (const auto& part : parts) found.nodes.insert(found.nodes.end(), part.begin(), part.end());
        return found;
    }

    // Nodes with a resident block.
    int64_t n_blocks() const {
        const auto& [half, full] = blocks_;
        return (half ? half->size() : 0) + (full ? full->size() : 0);
    }

  private:
    static memory::LargeCopy<int32_t> number_nodes(const ForestView& view) {
        Vector<int32_t> numbers(view.n_nodes());
        int32_t inner = 0, leaf = 0;
        for (int64_t u = 0; u < numbers.size(); ++u) {
            numbers[u] = view.child_ptr[u] == view.child_ptr[u + 1] ? leaf++ : inner++;
        }
        return memory::LargeCopy<int32_t>(numbers);
    }

    // Routes the rows and calls use(shard, begin, end, scratch) on each shard's result.
    template <class Use>
    void over_shards(const Csr& x, int n_threads, Monitor& monitor, Use&& use) {
        // A small batch ends before anyone could interrupt it: one thread, no polling.
        const bool small = x.nnz() * routing_.n_trees < 65536;
        Monitor unwatched;
        const Vector<int64_t> bounds = shards_of(x, n_threads);
        const int workers = small ? 1 : std::max(1, n_threads);
        Vector<std::unique_ptr<RouterScratch>> scratches;
        for (int w = 0; w < workers; ++w) scratches.push_back(scratches_.take());
        std::visit(
            [&]<class Index, class Weight>(const Index* features, const Weight* weights) {
                const NodeVectors<Index, Weight> vectors{weight_ptr_.data(), features, weights};
                const Router router(routing_, vectors, blocks_for(vectors, x.n_rows), x);
                parallel_for(bounds.size() - 1, workers, small ? unwatched : monitor, [&](int64_t shard, int worker) {
                    const int64_t begin = bounds[shard], end = bounds[shard + 1];
                    RouterScratch& scratch = *scratches[worker];
                    router.route(begin, end, scratch);
                    use(shard, begin, end, scratch);
                    monitor.add(x.indptr[end] - x.indptr[begin]);
                });
            },
            view_.weight_features, view_.weights);
        for (auto& scratch : scratches) scratches_.give(std::move(scratch));
    }

    // Building blocks costs about as much as routing 100 rows, so wait for 100 rows.
    template <class Index, class Weight>
    const ResidentBlocks<Weight>* blocks_for(const NodeVectors<Index, Weight>& vectors, int64_t n_rows) {
        constexpr int64_t kRowsBefore = 100;
        if (routing_.projection == ProjectionKind::kGaussian) return nullptr;
        if (rows_seen_.fetch_add(n_rows) + n_rows < kRowsBefore) return nullptr;
        auto& blocks = std::get<std::unique_ptr<ResidentBlocks<Weight>>>(blocks_);
        std::call_once(blocks_made_, [&] {
            const int64_t n_columns =
                routing_.projection == ProjectionKind::kNone ? routing_.n_features : routing_.n_columns;
            blocks = std::make_unique<ResidentBlocks<Weight>>(routing_, vectors, static_cast<int32_t>(view_.n_nodes()),
                                                              static_cast<int32_t>(n_columns));
        });
        return blocks->size() == 0 ? nullptr : blocks.get();
    }

    const ForestView view_;
    memory::LargeCopy<int32_t> child_ptr_, numbers_;
    memory::LargeCopy<int64_t> weight_ptr_;
    memory::LargeCopy<float> bias_;
    memory::LargeCopy<int64_t> leaf_ptr_;
    const Routing routing_;
    ScratchPool scratches_;
    std::atomic<int64_t> rows_seen_{0};
    std::once_flag blocks_made_;
    std::tuple<std::unique_ptr<ResidentBlocks<Half>>, std::unique_ptr<ResidentBlocks<float>>> blocks_;
};

}  // namespace labelwood::forest
