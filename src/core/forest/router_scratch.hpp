// What routing reads and where it works: the trees' flat arrays and the buffers of a worker.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/csr.hpp"
#include "base/topk.hpp"
#include "forest/batch_block.hpp"
#include "forest/label_sums.hpp"
#include "forest/packed_rows.hpp"
#include "forest/projection.hpp"

namespace labelwood::forest {

struct RoutingOptions {
    int32_t n_trees;
    int64_t n_features;
    int64_t n_labels;
    ProjectionKind projection;
    int32_t n_columns;  // of the projected rows
    bool seed_per_node;
    bool several;  // every child above the threshold, and the best if there is none; else the best
    float threshold;
};

// What routing needs besides the vectors. Ids are breadth-first over the whole forest: the roots are 0 ..
// n_trees and the children of u are child_ptr[u] .. child_ptr[u + 1].
struct Routing : RoutingOptions {
    const int32_t* child_ptr;
    const float* bias;
    const uint32_t* seeds;   // of the projection, per tree or per inner node
    const int32_t* numbers;  // of a node among the inner nodes, or among the leaves

    bool is_leaf(int32_t node) const { return child_ptr[node] == child_ptr[node + 1]; }
};

struct ReachedLeaf {
    int32_t row;  // within the shard
    int32_t tree;
    int32_t leaf;    // node id
    int32_t number;  // among the leaves
};

// Of one row, the columns that a node's children use: where their weights are, and the row's values.
struct Matched {
    std::vector<int32_t> at;
    std::vector<float> values;
    int64_t count = 0;

    void reserve(int64_t most) {
        if (values.size() >= static_cast<size_t>(most)) return;
        at.resize(static_cast<size_t>(most));
        values.resize(static_cast<size_t>(most));
    }
};

// Buffers of one worker, kept between calls: a single row must not pay for clearing them.
struct RouterScratch {
    explicit RouterScratch(const Routing& routing)
        : projector(routing.projection, routing.n_features, routing.n_columns),
          dense(static_cast<size_t>(projector.n_columns()), 0.0f) {}

    Projector projector;
    std::vector<float> dense;  // rows laid out, one after the other; all zero between uses
    std::vector<LaidOut> laid{1};
    double mean_width = 0.0;  // entries of a projected row of the shard
    std::vector<int64_t> start;
    std::vector<int32_t> columns;  // projected rows of the shard
    std::vector<float> values;
    std::vector<int32_t> node_columns;  // one row, projected for one node
    std::vector<float> node_values;
    BatchBlock block;
    std::vector<Matched> matched{1};  // by tree, where several take turns
    std::vector<double> scores;
    std::vector<int32_t> rows, group, choices, path;
    std::vector<std::pair<int32_t, size_t>>
        pending;                               // (node, where its rows begin); later ones end where it begins
    std::vector<std::vector<int32_t>> paths;   // nodes still to visit, by tree
    std::vector<std::vector<int32_t>> leaves;  // reached, by tree
    std::vector<int32_t> live, next;           // trees with such nodes; the next node of each
    std::vector<ReachedLeaf> reached;
    std::vector<int32_t> place, row_at;  // the order in which rows are averaged, and its inverse
    std::vector<int64_t> reached_ptr;
    std::vector<ReachedLeaf> by_row;
    LabelSums sums;
    std::vector<Scored> best;
};

class ScratchPool {
  public:
    explicit ScratchPool(const Routing& routing) : routing_(routing) {}

    std::unique_ptr<RouterScratch> take() {
        const std::lock_guard lock(mutex_);
        if (idle_.empty()) return std::make_unique<RouterScratch>(routing_);
        std::unique_ptr<RouterScratch> scratch = std::move(idle_.back());
        idle_.pop_back();
        return scratch;
    }
    void give(std::unique_ptr<RouterScratch> scratch) {
        const std::lock_guard lock(mutex_);
        idle_.push_back(std::move(scratch));
    }

  private:
    const Routing routing_;
    std::mutex mutex_;
    std::vector<std::unique_ptr<RouterScratch>> idle_;
};

}  // namespace labelwood::forest
