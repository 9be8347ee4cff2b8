// Trains every inner node of a label tree and packs the weights.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "base/csr.hpp"
#include "base/parallel.hpp"
#include "base/rng.hpp"
#include "base/span.hpp"
#include "base/stamped_counts.hpp"
#include "label_tree/block_solver.hpp"
#include "label_tree/node_problem.hpp"
#include "label_tree/packed_nodes.hpp"
#include "label_tree/tree.hpp"
#include "simd/solver.hpp"
#include "sparse/training_rows.hpp"

namespace labelwood::label_tree {

struct TrainOptions {
    SolverOptions solver;
    float threshold;  // drops weights of at most this size; negative keeps all, in dense blocks
    uint64_t seed;
    int n_threads;
    // A node of more non-zeros is not held, but read again in every pass; 0: no limit.
    int64_t most_entries = 0;
    int child_bytes = 4;   // of a child number in sparse weights: 1, 2 or 4
    int weight_bytes = 4;  // of a sparse weight: 1 (int8), 2 (half) or 4; dense ones are floats
    // Of every node, only the groups of siblings of this piece are trained. The pieces of a node hold its weights
    // together; what a piece does not train is 0.
    int32_t piece = 0, n_pieces = 1;

    Stored stored() const {
        const bool dense = threshold < 0.0f;
        return {dense, child_bytes, dense ? 4 : weight_bytes};
    }
};

// A part of a label tree as a tree of its own: its leaves are labels, or nodes whose subtrees are trained
// elsewhere. `ids` are the nodes' ids in the whole tree, which key their random numbers; row i of the labels
// is row rows[i] of the features. Null: the same numbers. `only` are the inner nodes to train; empty: all.
struct TreePart {
    Tree tree;
    const int32_t* ids = nullptr;
    const int32_t* rows = nullptr;
    Span<const int32_t> only{};
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
          inner_(part.only.empty() ? inner_nodes(part.tree) : Vector<int32_t>(part.only.begin(), part.only.end())),
          done_(inner_.size(), options.stored()) {
        if (part.rows == nullptr) return;
        for (int32_t& row : members_.rows) row = part.rows[row];
    }

    TrainedWeights run() {
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
        scratches_.clear();
        done_.join(packed_);
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

    void build(int32_t node, Scratch& scratch) const {
        build_problem(rows_, members_[node], options_.solver.bias, options_.most_entries, scratch.columns,
                      &scratch.problem);
    }

    void train_alone(int64_t index, int worker) {
        Scratch& scratch = scratches_[worker];
        build(inner_[index], scratch);
        NodeTask task(*this, index, scratch.problem);
        for (int32_t group = task.first_group; group < task.end_group; ++group) task.solve(group, scratch.solver);
        task.pack();
    }

    void train_shared(int64_t index) {
        Scratch& owner = scratches_.front();
        build(inner_[index], owner);
        NodeTask task(*this, index, owner.problem);
        parallel_for(task.end_group - task.first_group, options_.n_threads, monitor_, [&](int64_t group, int worker) {
            task.solve(task.first_group + static_cast<int32_t>(group), scratches_[worker].solver);
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
            const int64_t piece = trainer.options_.piece, n_pieces = trainer.options_.n_pieces;
            first_group = static_cast<int32_t>(n_groups * piece / n_pieces);
            end_group = static_cast<int32_t>(n_groups * (piece + 1) / n_pieces);
            if (trainer.dense()) {
                const PackedNode& block = trainer.done_.add_dense(index, problem.features.size(), n_children);
                weights = reinterpret_cast<float*>(block.weights(trainer.options_.stored()));
                for (int64_t r = 0; r < by_column.size(); ++r) block.features()[r] = problem.features[by_column[r]];
            } else {
                columns.resize(n_children);
            }
        }

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
            for (int64_t f = 0; f < problem.features.size(); ++f) {
                float* to = weights + int64_t{rank[f]} * n_children;
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
            if (!trainer.dense()) trainer.done_.add_sparse(index, columns, problem.features, by_column, rank);
        }

        TreeTrainer& trainer;
        int64_t index;
        const NodeProblem& problem;
        int32_t node, n_children, n_trained, n_groups, first_group, end_group;
        Vector<int32_t> rank, by_column;  // compacted feature <-> position by ascending column
        RowLists positives;               // of each child, as row numbers within the node
        Vector<int32_t> trained;          // children that have a positive row
        Vector<Column> columns;           // sparse weights
        float* weights = nullptr;         // dense weights, by ascending column
    };

    const sparse::TrainingRows& rows_;
    const Csr& x_;
    const TreePart& part_;
    const Tree& tree_;
    const TrainOptions& options_;
    Monitor& monitor_;
    RowLists members_;
    Vector<int32_t> inner_;
    PackedNodes done_;
    Vector<Scratch> scratches_;
    TrainedWeights packed_;
};

}  // namespace labelwood::label_tree
