// Bindings of the instance forests' router. Each function takes arrays its Python caller has checked.
#include <atomic>
#include <mutex>
#include <tuple>

#include "bind/bind.hpp"
#include "forest/leaf_average.hpp"
#include "forest/rerank.hpp"
#include "forest/router.hpp"
#include "memory/huge_pages.hpp"
#include "sparse/keep_largest.hpp"

namespace labelwood::bind {
namespace {

using nb::arg;
using AnyArray = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class T>
memory::LargeCopy<T> copy_of(const Array<T>& array) {
    return {array.data(), array.shape(0)};
}

// A packed forest, ready to route: holds the arrays and the workers' buffers. A row reads a few bytes of
// what there is for every node, at every node it meets: of that there are copies in large pages, since those
// of a mapped file are small. With them a row alone takes 0.93 of the time.
class ForestRouter {
  public:
    ForestRouter(Array<int32_t> child_ptr, Array<int64_t> weight_ptr, AnyArray weight_features,
                 AnyArray weights, Array<float> bias, Array<int64_t> leaf_ptr, AnyArray leaf_labels,
                 AnyArray leaf_values, Array<uint32_t> seeds, int32_t n_trees, int64_t n_features,
                 int64_t n_labels, int projection, int32_t n_columns, bool seed_per_node, bool several,
                 float threshold)
        : n_nodes_(child_ptr.shape(0) - 1),
          child_ptr_(copy_of(child_ptr)),
          numbers_(number_nodes(child_ptr)),
          weight_ptr_(copy_of(weight_ptr)),
          bias_(copy_of(bias)),
          leaf_ptr_(copy_of(leaf_ptr)),
          features_(weight_features),
          weights_(weights),
          leaf_labels_(leaf_labels),
          leaf_values_(leaf_values),
          seeds_(seeds),
          n_labels_(n_labels),
          routing_{child_ptr_.data(),
                   bias_.data(),
                   seeds.data(),
                   numbers_.data(),
                   n_trees,
                   n_features,
                   static_cast<forest::ProjectionKind>(projection),
                   n_columns,
                   seed_per_node,
                   several,
                   threshold},
          scratches_(routing_) {}

    nb::tuple topk(Array<int64_t> xp, Array<int32_t> xi, Array<float> xd, int32_t k, int n_threads,
                   nb::object progress) {
        const Csr x = view(xp, xi, xd, routing_.n_features);
        const auto rows = static_cast<size_t>(x.n_rows), size = rows * static_cast<size_t>(k);
        std::vector<int32_t> labels(size);
        std::vector<float> scores(size);
        Monitor monitor = monitor_of(progress);
        without_gil([&] {
            over_shards(
                x, n_threads, monitor,
                [&](size_t, int64_t begin, int64_t end, forest::RouterScratch& scratch) {
                    with_leaves([&]<class Label, class Value>(const forest::LeafTable<Label, Value>& leaves) {
                        forest::LeafAverager<Label, Value>(leaves, routing_.n_trees, k)
                            .average(end - begin, n_labels_, scratch, labels.data() + begin * k,
                                     scores.data() + begin * k);
                    });
                });
            return 0;
        });
        return nb::make_tuple(to_numpy(std::move(labels), rows, static_cast<size_t>(k)),
                              to_numpy(std::move(scores), rows, static_cast<size_t>(k)));
    }

    nb::tuple leaves(Array<int64_t> xp, Array<int32_t> xi, Array<float> xd, int n_threads,
                     nb::object progress) {
        const Csr x = view(xp, xi, xd, routing_.n_features);
        const auto n_trees = static_cast<size_t>(routing_.n_trees);
        std::vector<int64_t> ptr(static_cast<size_t>(x.n_rows) * n_trees + 1, 0);
        std::vector<std::vector<int32_t>> parts(forest::shards_of(x, n_threads).size());
        Monitor monitor = monitor_of(progress);
        without_gil([&] {
            over_shards(
                x, n_threads, monitor,
                [&](size_t shard, int64_t begin, int64_t end, forest::RouterScratch& scratch) {
                    forest::place_in_order(end - begin, scratch);
                    forest::sort_by_row(scratch.place, scratch);
                    for (const forest::ReachedLeaf& r : scratch.by_row) {
                        ++ptr[static_cast<size_t>(begin + r.row) * n_trees + static_cast<size_t>(r.tree) + 1];
                        parts[shard].push_back(r.leaf);
                    }
                });
            return 0;
        });
        for (size_t i = 1; i < ptr.size(); ++i) ptr[i] += ptr[i - 1];
        std::vector<int32_t> nodes;
        nodes.reserve(static_cast<size_t>(ptr.back()));
        for (const auto& part : parts) nodes.insert(nodes.end(), part.begin(), part.end());
        return nb::make_tuple(to_numpy(std::move(ptr)), to_numpy(std::move(nodes)));
    }

    int64_t n_blocks() const {
        const auto& [half, full] = blocks_;
        return (half ? half->size() : 0) + (full ? full->size() : 0);
    }

  private:
    static memory::LargeCopy<int32_t> number_nodes(const Array<int32_t>& child_ptr) {
        std::vector<int32_t> numbers(child_ptr.shape(0) - 1);
        int32_t inner = 0, leaf = 0;
        for (size_t u = 0; u < numbers.size(); ++u) {
            numbers[u] = child_ptr.data()[u] == child_ptr.data()[u + 1] ? leaf++ : inner++;
        }
        return {numbers.data(), numbers.size()};
    }

    // Routes the rows and calls use(shard, begin, end, scratch) on each shard's result.
    template <class Use>
    void over_shards(const Csr& x, int n_threads, Monitor& monitor, Use&& use) {
        // A small batch ends before anyone could look: no threads, no polling.
        const bool small = x.nnz() * routing_.n_trees < 65536;
        Monitor unwatched;
        const std::vector<int64_t> bounds = forest::shards_of(x, n_threads);
        const int workers = small ? 1 : std::max(1, n_threads);
        std::vector<std::unique_ptr<forest::RouterScratch>> scratches;
        for (int w = 0; w < workers; ++w) scratches.push_back(scratches_.take());
        with_vectors([&](const auto& vectors) {
            forest::Router router(routing_, vectors, blocks_for(vectors, x.n_rows), x);
            parallel_for(static_cast<int64_t>(bounds.size()) - 1, workers, small ? unwatched : monitor,
                         [&](int64_t shard, int worker) {
                             const auto s = static_cast<size_t>(shard);
                             forest::RouterScratch& scratch = *scratches[static_cast<size_t>(worker)];
                             router.route(bounds[s], bounds[s + 1], scratch);
                             use(s, bounds[s], bounds[s + 1], scratch);
                             monitor.add(x.indptr[bounds[s + 1]] - x.indptr[bounds[s]]);
                         });
        });
        for (auto& scratch : scratches) scratches_.give(std::move(scratch));
    }

    // Blocks cost about as much as the rows before which there are none.
    template <class Index, class Weight>
    const forest::ResidentBlocks<Weight>* blocks_for(const forest::NodeVectors<Index, Weight>& vectors,
                                                     int64_t n_rows) {
        constexpr int64_t kRowsBefore = 100;
        if (routing_.projection == forest::ProjectionKind::kGaussian) return nullptr;
        if (rows_seen_.fetch_add(n_rows) + n_rows < kRowsBefore) return nullptr;
        auto& blocks = std::get<std::unique_ptr<forest::ResidentBlocks<Weight>>>(blocks_);
        std::call_once(blocks_made_, [&] {
            const int64_t n_columns = routing_.projection == forest::ProjectionKind::kNone
                                          ? routing_.n_features
                                          : routing_.n_columns;
            blocks = std::make_unique<forest::ResidentBlocks<Weight>>(
                routing_, vectors, static_cast<int32_t>(n_nodes_), static_cast<int32_t>(n_columns));
        });
        return blocks->size() == 0 ? nullptr : blocks.get();
    }

    template <class Use>
    void with_vectors(Use&& use) const {
        if (features_.dtype() == nb::dtype<uint16_t>()) {
            with_index<uint16_t>(use);
        } else {
            with_index<int32_t>(use);
        }
    }

    template <class Index, class Use>
    void with_index(Use&& use) const {
        const auto* features = static_cast<const Index*>(features_.data());
        if (weights_.dtype() == nb::dtype<float>()) {
            use(forest::NodeVectors<Index, float>{weight_ptr_.data(), features,
                                                  static_cast<const float*>(weights_.data())});
        } else {
            use(forest::NodeVectors<Index, Half>{weight_ptr_.data(), features,
                                                 static_cast<const Half*>(weights_.data())});
        }
    }

    template <class Use>
    void with_leaves(Use&& use) const {
        if (leaf_labels_.dtype() == nb::dtype<uint16_t>()) {
            with_label<uint16_t>(use);
        } else {
            with_label<int32_t>(use);
        }
    }

    template <class Label, class Use>
    void with_label(Use&& use) const {
        const auto* labels = static_cast<const Label*>(leaf_labels_.data());
        if (leaf_values_.dtype() == nb::dtype<float>()) {
            use(forest::LeafTable<Label, float>{leaf_ptr_.data(), labels,
                                                static_cast<const float*>(leaf_values_.data())});
        } else {
            use(forest::LeafTable<Label, Half>{leaf_ptr_.data(), labels,
                                               static_cast<const Half*>(leaf_values_.data())});
        }
    }

    size_t n_nodes_;
    memory::LargeCopy<int32_t> child_ptr_, numbers_;
    memory::LargeCopy<int64_t> weight_ptr_;
    memory::LargeCopy<float> bias_;
    memory::LargeCopy<int64_t> leaf_ptr_;
    AnyArray features_, weights_, leaf_labels_, leaf_values_;
    Array<uint32_t> seeds_;
    int64_t n_labels_;
    forest::Routing routing_;
    forest::ScratchPool scratches_;
    std::atomic<int64_t> rows_seen_{0};
    std::once_flag blocks_made_;
    std::tuple<std::unique_ptr<forest::ResidentBlocks<Half>>, std::unique_ptr<forest::ResidentBlocks<float>>>
        blocks_;
};

nb::tuple rerank_(Array<int64_t> xp, Array<int32_t> xi, Array<float> xd, int64_t n_features,
                  Array<int64_t> mp, Array<int32_t> mi, Array<float> md, Array<int32_t> labels,
                  Array<float> scores, int32_t candidates, int32_t k, double share, double sharpness,
                  int n_threads, nb::object progress) {
    const Csr x = view(xp, xi, xd, n_features), means = view(mp, mi, md, n_features);
    const auto rows = static_cast<size_t>(x.n_rows), wide = static_cast<size_t>(k);
    std::vector<int32_t> best(rows * wide);
    std::vector<float> combined(rows * wide);
    const forest::RerankOptions options{share, sharpness, candidates, k};
    // A few rows end before anyone could look.
    Monitor monitor = x.n_rows > 256 ? monitor_of(progress) : Monitor();
    without_gil([&] {
        forest::rerank(x, means, labels.data(), scores.data(), options, n_threads, monitor, best.data(),
                       combined.data());
        return 0;
    });
    return nb::make_tuple(to_numpy(std::move(best), rows, wide), to_numpy(std::move(combined), rows, wide));
}

}  // namespace

void bind_forest(nb::module_& m) {
    m.def(
        "keep_largest",
        [](Array<int64_t> ptr, Array<float> values, int64_t most) {
            return to_numpy(without_gil([&] {
                return sparse::keep_largest(ptr.data(), static_cast<int64_t>(ptr.shape(0)) - 1, values.data(),
                                            most);
            }));
        },
        arg("ptr"), arg("values"), arg("most"),
        "Positions of the entries largest in size, at most so many a row.");
    m.def(
        "keep_share",
        [](Array<int64_t> ptr, Array<float> values, double share, int64_t least) {
            sparse::KeptEntries kept = without_gil([&] {
                return sparse::keep_share(ptr.data(), static_cast<int64_t>(ptr.shape(0)) - 1, values.data(),
                                          share, least);
            });
            return nb::make_tuple(to_numpy(std::move(kept.ptr)), to_numpy(std::move(kept.positions)));
        },
        arg("ptr"), arg("values"), arg("share"), arg("least"),
        "Pointer and positions of every row's largest entries, up to a share of its squared length.");
    m.def("rerank", &rerank_, arg("x_indptr"), arg("x_indices"), arg("x_data"), arg("n_features"),
          arg("means_indptr"), arg("means_indices"), arg("means_data"), arg("labels"), arg("scores"),
          arg("candidates"), arg("k"), arg("share"), arg("sharpness"), arg("n_threads"),
          arg("progress").none(),
          "Best k of every row's candidates by score and nearness to the labels' means.");
    nb::class_<ForestRouter>(m, "ForestRouter", "A packed instance forest, ready to route rows.")
        .def(nb::init<Array<int32_t>, Array<int64_t>, AnyArray, AnyArray, Array<float>, Array<int64_t>,
                      AnyArray, AnyArray, Array<uint32_t>, int32_t, int64_t, int64_t, int, int32_t, bool,
                      bool, float>(),
             arg("child_ptr"), arg("weight_ptr"), arg("weight_features"), arg("weights"), arg("bias"),
             arg("leaf_ptr"), arg("leaf_labels"), arg("leaf_values"), arg("seeds"), arg("n_trees"),
             arg("n_features"), arg("n_labels"), arg("projection"), arg("n_columns"), arg("seed_per_node"),
             arg("several"), arg("threshold"))
        .def("topk", &ForestRouter::topk, arg("x_indptr"), arg("x_indices"), arg("x_data"), arg("k"),
             arg("n_threads"), arg("progress").none(), "Best k labels of every row, by averaged leaves.")
        .def_prop_ro("n_blocks", &ForestRouter::n_blocks,
                     "Large nodes that are laid out column by column; none before enough rows have come.")
        .def("leaves", &ForestRouter::leaves, arg("x_indptr"), arg("x_indices"), arg("x_data"),
             arg("n_threads"), arg("progress").none(),
             "Leaf nodes reached by every (row, tree), as (ptr, nodes).");
}

}  // namespace labelwood::bind
