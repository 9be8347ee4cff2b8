// Trains every inner node of a label tree and packs the weights.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "base/csr.hpp"
#include "base/half.hpp"
#include "base/parallel.hpp"
#include "base/rng.hpp"
#include "base/span.hpp"
#include "base/stamped_counts.hpp"
#include "label_tree/block_solver.hpp"
#include "label_tree/node_problem.hpp"
#include "label_tree/tree.hpp"
#include "memory/allocators.hpp"
#include "simd/solver.hpp"
#include "sparse/training_rows.hpp"

namespace labelwood::label_tree {

// Packed weights of a tree, inner nodes in id order. Node i uses features[feature_ptr[i] .. feature_ptr[i +
// 1]], ascending. Dense: the weights of feature j are the children's, side by side, at j * n_children from
// weight_ptr[i]. Sparse: the entries of feature j are row_start[j] .. row_start[j + 1], relative to
// weight_ptr[i]; the last row of a node ends at weight_ptr[i + 1]. An entry is a child number and a weight.
// bias is per tree node. vector_weights: for each inner node a block [columns of the vectors, children]; the
// children of the inner nodes, in order, are all nodes but the root, so the block of a node with first child c
// begins at (c - 1) * columns.
template <class Children, class Weights>
struct PackedArrays {
    Vector<int64_t> feature_ptr{0};
    Vector<int32_t> features;
    Vector<int64_t> weight_ptr{0};
    Vector<uint32_t> row_start;
    Children child;
    Weights weights;
    Vector<float> bias;
    Vector<float> vector_weights;
    int64_t weight_bytes = 0;  // moved between memory and registers by the solver
};

using PackedWeights = PackedArrays<Vector<int32_t>, Vector<float>>;

// Child numbers and weights in the types in which a model stores them: all weights of a large tree are in memory at
// once. Freed blocks go back to the system, so that joining the nodes takes no second copy.
using Bytes = memory::OwnVector<uint8_t>;
using TrainedWeights = PackedArrays<Bytes, Bytes>;

struct TrainOptions {
    SolverOptions solver;
    float threshold;  // drops weights of at most this size; negative keeps all, in dense blocks
    uint64_t seed;
    int n_threads;
    // A node of more non-zeros is not held, but read again in every pass; 0: no limit.
    int64_t most_entries = 0;
    int child_bytes = 4;        // of a child number in sparse weights: 1, 2 or 4
    bool half_weights = false;  // sparse weights in half precision; dense ones are floats
};

// A part of a label tree as a tree of its own: its leaves are labels, or nodes whose subtrees are trained
// elsewhere. `ids` are the nodes' ids in the whole tree, which key their random numbers; row i of the labels
// is row rows[i] of the features. Null: the same numbers.
struct TreePart {
    Tree tree;
    const int32_t* ids = nullptr;
    const int32_t* rows = nullptr;
};

// One node's share of TrainedWeights, before concatenation.
struct PackedNode {
    Vector<int32_t> features;
    Vector<uint32_t> row_start;
    Bytes child;
    Bytes weights;
};

// The weights kept of a finished sibling, by compacted feature.
struct Column {
    Vector<int32_t> features;
    Vector<float> weights;
};

// The bias of a child that has no training row: its probability is 0 in float under either loss.
constexpr float kNever = -128.0f;

class TreeTrainer {
  public:
    TreeTrainer(const sparse::TrainingRows& x, const Csr& y, const TreePart& part, const TrainOptions& options,
                Monitor& monitor)
        : rows_(x),
          x_(x.x),
          part_(part),
          tree_(part.tree),
          options_(options),
          monitor_(monitor),
          members_(node_members(y, part.tree)),
          inner_(inner_nodes(part.tree)) {
        if (part.rows == nullptr) return;
        for (int32_t& row : members_.rows) row = part.rows[row];
    }

    TrainedWeights run() {
        done_.resize(inner_.size());
        packed_.bias.assign(tree_.n_nodes, 0.0f);
        packed_.vector_weights.assign((tree_.n_nodes - 1) * rows_.vectors.width, 0.0f);
        const int64_t n_workers = std::max(options_.n_threads, 1);
        scratches_.resize(n_workers);
        for (auto& scratch : scratches_) scratch.columns = StampedCounts(x_.n_cols);

        Vector<int64_t> work(inner_.size());
        int64_t most = 0;
        for (int64_t i = 0; i < inner_.size(); ++i) {
            const int64_t entries = entries_of(inner_[i]), of_vectors = rows_.vectors.width * members_.count(inner_[i]);
            work[i] = (entries + of_vectors) * tree_.n_children(inner_[i]);
            if (options_.most_entries == 0 || entries <= options_.most_entries) most = std::max(most, entries);
        }
        // Reserve for the largest node: growing arrays leave holes in memory, and unused room takes none.
        for (auto& scratch : scratches_) {
            scratch.problem.indices.reserve(most);
            scratch.problem.values.reserve(most);
        }
        Vector<int64_t> order(inner_.size());
        std::iota(order.begin(), order.end(), int64_t{0});
        std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return work[a] > work[b]; });
        // A node that would keep one worker busy while the others idle is shared by all workers, group by
        // group.
        const int64_t total = std::accumulate(work.begin(), work.end(), int64_t{0});
        const int64_t large = total / (4 * n_workers) + 1;
        monitor_.set_total(total);
        int64_t n_large = 0;
        if (n_workers > 1) {
            while (n_large < order.size() && work[order[n_large]] >= large) ++n_large;
        }
        for (int64_t i = 0; i < n_large; ++i) train_shared(order[i]);
        parallel_for(order.size() - n_large, options_.n_threads, monitor_,
                     [&](int64_t task, int worker) { train_alone(order[n_large + task], worker); });
        for (const Scratch& scratch : scratches_) packed_.weight_bytes += scratch.solver.weight_bytes;
        concatenate();
        return std::move(packed_);
    }

  private:
    struct Scratch {
        StampedCounts columns;
        NodeProblem problem;
        SolverScratch solver;
    };

    // Non-zeros of a node's rows, bias included.
    int64_t entries_of(int32_t node) const {
        int64_t nnz = 0;
        for (const int32_t row : members_[node]) nnz += x_.row_nnz(row) + 1;
        return nnz;
    }

    bool dense() const { return options_.threshold < 0.0f; }

    int64_t weight_bytes() const { return !dense() && options_.half_weights ? sizeof(Half) : sizeof(float); }

    void build(int32_t node, Scratch& scratch) const {
        build_problem(rows_, members_[node], options_.solver.bias, options_.most_entries, scratch.columns,
                      &scratch.problem);
    }

    void train_alone(int64_t index, int worker) {
        Scratch& scratch = scratches_[worker];
        build(inner_[index], scratch);
        NodeTask task(*this, index, scratch.problem);
        for (int32_t group = 0; group < task.n_groups; ++group) task.solve(group, scratch.solver);
        task.pack();
    }

    void train_shared(int64_t index) {
        Scratch& owner = scratches_.front();
        build(inner_[index], owner);
        NodeTask task(*this, index, owner.problem);
        parallel_for(task.n_groups, options_.n_threads, monitor_, [&](int64_t group, int worker) {
            task.solve(static_cast<int32_t>(group), scratches_[worker].solver);
        });
        task.pack();
    }

    // The siblings of one node from their problem to their packed weights.
    struct NodeTask {
        NodeTask(TreeTrainer& owner, int64_t index, const NodeProblem& problem)
            : trainer(owner), index(index), problem(problem) {
            node = trainer.inner_[index];
            n_children = trainer.tree_.n_children(node);
            rank.resize(problem.features.size());
            by_column.resize(problem.features.size());
            std::iota(by_column.begin(), by_column.end(), 0);
            std::sort(by_column.begin(), by_column.end(),
                      [&](int32_t a, int32_t b) { return problem.features[a] < problem.features[b]; });
            for (int64_t r = 0; r < by_column.size(); ++r) rank[by_column[r]] = static_cast<int32_t>(r);
            find_positives();
            for (int32_t c = 0; c < n_children; ++c) {
                if (positives.count(c) > 0) {
                    trained.push_back(c);
                } else {
                    trainer.packed_.bias[trainer.tree_.child_ptr[node] + c] = kNever;
                }
            }
            // Siblings of a block should settle together: sort by frequency.
            std::stable_sort(trained.begin(), trained.end(),
                             [&](int32_t a, int32_t b) { return positives.count(a) > positives.count(b); });
            n_trained = static_cast<int32_t>(trained.size());
            n_groups = (n_trained + simd::kMaxLanes - 1) / simd::kMaxLanes;
            if (trainer.dense()) {
                out().weights.assign(problem.features.size() * n_children * static_cast<int64_t>(sizeof(float)), 0);
            } else {
                columns.resize(n_children);
            }
        }

        PackedNode& out() { return trainer.done_[index]; }

        // Rows of a child as row numbers within the node: a merge of two ascending lists.
        void find_positives() {
            const auto rows = trainer.members_[node];
            for (int32_t c = 0; c < n_children; ++c) {
                auto at = rows.begin();
                for (const int32_t row : trainer.members_[trainer.tree_.child_ptr[node] + c]) {
                    at = std::lower_bound(at, rows.end(), row);
                    positives.rows.push_back(static_cast<int32_t>(at - rows.begin()));
                }
                positives.close();
            }
        }

        void solve(int32_t group, SolverScratch& scratch) {
            const auto begin = static_cast<int32_t>(int64_t{n_trained} * group / n_groups);
            const auto end = static_cast<int32_t>(int64_t{n_trained} * (group + 1) / n_groups);
            const auto n_features = problem.n_features();
            const SolverOptions& o = trainer.options_.solver;
            float* bias = trainer.packed_.bias.data() + trainer.tree_.child_ptr[node];
            auto sink = [&](const Finished& finished) {
                finished.each([&](int lane, int32_t child) {
                    // Without a bias, the weights end with the features.
                    const int64_t last = n_features * finished.width + lane;
                    bias[child] = o.offset + (o.bias != 0.0f ? finished.weights[last] * o.bias : 0.0f);
                });
                trainer.dense() ? keep_all(finished) : keep_large(finished, scratch);
                keep_vector_weights(finished);
            };
            const int32_t id = trainer.part_.ids == nullptr ? node : trainer.part_.ids[node];
            BlockSolver(problem, positives, o, scratch)
                .run(trained.data() + begin, end - begin, mix64(trainer.options_.seed) ^ static_cast<uint64_t>(id),
                     trainer.monitor_, sink);
        }

        void keep_all(const Finished& finished) {
            auto* all = reinterpret_cast<float*>(out().weights.data());
            for (int64_t f = 0; f < problem.features.size(); ++f) {
                float* to = all + int64_t{rank[f]} * n_children;
                const float* from = finished.weights + f * finished.width;
                finished.each([&](int lane, int32_t child) { to[child] = from[lane]; });
            }
        }

        void keep_vector_weights(const Finished& finished) {
            const int64_t n_columns = trainer.rows_.vectors.width;
            const int64_t block = (trainer.tree_.child_ptr[node] - 1) * n_columns;
            for (int64_t j = 0; j < n_columns; ++j) {
                float* to = trainer.packed_.vector_weights.data() + block + j * n_children;
                const float* from = finished.vector_weights + j * finished.width;
                finished.each([&](int lane, int32_t child) { to[child] = from[lane]; });
            }
        }

        void keep_large(const Finished& finished, SolverScratch& scratch) {
            const int64_t n_features = problem.features.size();
            scratch.large.resize(n_features + 1);
            scratch.large_lanes.resize(n_features + 1);
            const int64_t count = simd::solver().larger_entries(finished.weights, problem.n_features(), finished.width,
                                                                finished.lanes, trainer.options_.threshold,
                                                                scratch.large.data(), scratch.large_lanes.data());
            for (int64_t i = 0; i < count; ++i) {
                const int32_t f = scratch.large[i];
                const float* from = finished.weights + int64_t{f} * finished.width;
                for (unsigned left = scratch.large_lanes[i]; left != 0; left &= left - 1) {
                    const int lane = __builtin_ctz(left);
                    Column& kept = columns[finished.child[lane]];
                    kept.features.push_back(f);
                    kept.weights.push_back(from[lane]);
                }
            }
        }

        void pack() {
            PackedNode& node_out = out();
            if (trainer.dense()) {
                for (const int32_t f : by_column) {
                    node_out.features.push_back(problem.features[f]);
                }
                return;
            }
            // Columns to rows by counting; the children of a row come out ascending.
            Vector<uint32_t> count(problem.features.size() + 1, 0);
            int64_t total = 0;
            for (const Column& column : columns) {
                total += column.features.size();
                for (const int32_t f : column.features) ++count[rank[f]];
            }
            Vector<uint32_t> at(problem.features.size(), 0);
            uint32_t start = 0;
            for (int64_t r = 0; r < by_column.size(); ++r) {
                at[r] = start;
                if (count[r] == 0) continue;
                node_out.features.push_back(problem.features[by_column[r]]);
                node_out.row_start.push_back(start);
                start += count[r];
            }
            node_out.child.resize(total * trainer.options_.child_bytes);
            node_out.weights.resize(total * trainer.weight_bytes());
            switch (trainer.options_.child_bytes) {
                case 1:
                    return fill_rows<uint8_t>(at);
                case 2:
                    return fill_rows<uint16_t>(at);
                default:
                    return fill_rows<int32_t>(at);
            }
        }

        template <class Child>
        void fill_rows(Vector<uint32_t>& at) {
            trainer.options_.half_weights ? fill_rows_of<Child, Half>(at) : fill_rows_of<Child, float>(at);
        }

        // Entry by entry in the order of the children; at[r] is the next free place of row r.
        template <class Child, class Weight>
        void fill_rows_of(Vector<uint32_t>& at) {
            auto* child = reinterpret_cast<Child*>(out().child.data());
            auto* weights = reinterpret_cast<Weight*>(out().weights.data());
            for (int32_t c = 0; c < n_children; ++c) {
                const Column& column = columns[c];
                for (int64_t j = 0; j < column.features.size(); ++j) {
                    const uint32_t slot = at[rank[column.features[j]]]++;
                    child[slot] = static_cast<Child>(c);
                    narrow(column.weights[j], weights[slot]);
                }
            }
        }

        TreeTrainer& trainer;
        int64_t index;
        const NodeProblem& problem;
        int32_t node, n_children, n_trained, n_groups;
        Vector<int32_t> rank, by_column;  // compacted feature <-> position by ascending column
        RowLists positives;               // of each child, as row numbers within the node
        Vector<int32_t> trained;          // children that have a positive row
        Vector<Column> columns;
    };

    void concatenate() {
        int64_t n_features = 0, n_weights = 0;
        for (const PackedNode& node : done_) {
            n_features += node.features.size();
            n_weights += node.weights.size() / weight_bytes();
        }
        packed_.features.reserve(n_features);
        packed_.row_start.reserve(dense() ? 0 : n_features);
        packed_.child.reserve(dense() ? 0 : n_weights * options_.child_bytes);
        packed_.weights.reserve(n_weights * weight_bytes());
        for (PackedNode& node : done_) {
            append(packed_.features, node.features);
            append(packed_.row_start, node.row_start);
            append(packed_.child, node.child);
            append(packed_.weights, node.weights);
            packed_.feature_ptr.push_back(packed_.features.size());
            packed_.weight_ptr.push_back(packed_.weights.size() / weight_bytes());
        }
    }

    template <class Part>
    static void append(Part& all, Part& part) {
        all.insert(all.end(), part.begin(), part.end());
        Part().swap(part);
    }

    const sparse::TrainingRows& rows_;
    const Csr& x_;
    const TreePart& part_;
    const Tree& tree_;
    const TrainOptions& options_;
    Monitor& monitor_;
    RowLists members_;
    Vector<int32_t> inner_;
    Vector<PackedNode> done_;
    Vector<Scratch> scratches_;
    TrainedWeights packed_;
};

}  // namespace labelwood::label_tree
