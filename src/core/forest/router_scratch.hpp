// The flat arrays that routing reads, and the scratch buffers of a worker.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "base/csr.hpp"
#include "base/span.hpp"
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
    bool several;  // go to every child above the threshold, or to the best if there is none; else to the best
    float threshold;
    bool leaf_votes;  // every leaf that a row reaches has one vote; else every tree has one
};

// The forest without its vectors. Ids are breadth-first over the whole forest: the roots are 0 ..
// n_trees and the children of u are child_ptr[u] .. child_ptr[u + 1].
struct Routing : RoutingOptions {
    const int32_t* child_ptr;
    const float* bias;
    const uint32_t* seeds;   // of the projections, per tree or per inner node
    const int32_t* numbers;  // number of a node among the inner nodes, or among the leaves

    bool is_leaf(int32_t node) const { return child_ptr[node] == child_ptr[node + 1]; }
};

struct ReachedLeaf {
    int32_t row;  // within the shard
    int32_t tree;
    int32_t leaf;    // node id
    int32_t number;  // among the leaves
};

// The columns of one row that a node's children use: places of the weights, and the row's values.
struct Matched {
    Vector<int32_t> at;
    Vector<float> values;
    int64_t count = 0;

    void reserve(int64_t most) {
        if (values.size() >= most) return;
        at.resize(most);
        values.resize(most);
    }
};

// Buffers of one worker. They are kept between calls, because a single row must not pay for clearing them.
struct RouterScratch {
    explicit RouterScratch(const Routing& routing)
        : projector(routing.projection, routing.n_features, routing.n_columns), dense(projector.n_columns(), 0.0f) {}

    Projector projector;
    Vector<float> dense;  // rows as dense arrays, end to end; all zero between uses
    Vector<LaidOut> laid{1};
    double mean_width = 0.0;  // mean number of entries of the shard's projected rows
    Vector<int64_t> start;
    Vector<int32_t> columns;  // projected rows of the shard
    Vector<float> values;
    Vector<int32_t> node_columns;  // one row, projected for one node
    Vector<float> node_values;
    BatchBlock block;
    Vector<Matched> matched{1};  // by tree, if trees take turns
    Vector<double> scores;
    Vector<int32_t> rows, group, choices, path;
    Vector<std::pair<int32_t, int64_t>>
        pending;                     // (node, begin of its rows); its rows end where those of the next node begin
    Vector<Vector<int32_t>> paths;   // nodes still to visit, by tree
    Vector<Vector<int32_t>> leaves;  // reached, by tree
    Vector<int32_t> live, next;      // trees with nodes to visit; the next node of each
    Vector<ReachedLeaf> reached;
    Vector<int32_t> place, row_at;  // order in which rows are averaged, and its inverse
    Vector<int64_t> reached_ptr;
    Vector<ReachedLeaf> by_row;
    LabelSums sums;
    Vector<Scored> best;
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
    Vector<std::unique_ptr<RouterScratch>> idle_;
};

}  // namespace labelwood::forest
