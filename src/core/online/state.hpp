// Saves the growing tree as flat arrays and restores it. The order of the arrays depends on the model only,
// so that equal models give equal files.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/span.hpp"
#include "memory/allocators.hpp"
#include "online/tree.hpp"

namespace labelwood::online {

// How the arrays of a tree are held: owned while they are made, viewed while they are read. Large arrays that are made
// have pages of their own: they live for a moment, and the process would keep their memory.
struct Made {
    template <class T>
    using Small = Vector<T>;
    template <class T>
    using Large = memory::OwnVector<T>;
};
struct Viewed {
    template <class T>
    using Small = Span<const T>;
    template <class T>
    using Large = Span<const T>;
};

// Blocks in turn; within a block features by ascending id. Lanes are saved from `first_lane` (0 with an
// auxiliary classifier, else 1) to the last in use.
template <class Held>
struct BlockArrays {
    typename Held::template Small<int64_t> feature_ptr;
    typename Held::template Large<int64_t> features;     // ids
    typename Held::template Large<int32_t> first;        // its first visit, a row of gradients; -1: it has a row
    typename Held::template Large<float> value;          // its value at its first visit; 0: it has a row
    typename Held::template Small<int64_t> row_ptr;      // per block, into weights and sums
    typename Held::template Large<float> weights, sums;  // the row of the constant feature, then of features with rows
    typename Held::template Small<int64_t> gradient_ptr;
    typename Held::template Large<float> gradients;  // per first visit
};

struct BlockState {
    using Entry = std::pair<uint64_t, uint32_t>;

    static Vector<Entry> sorted(const SiblingBlock& block, const FeatureNumbers& numbers) {
        Vector<Entry> entries;
        entries.reserve(block.table_.size());
        block.table_.each([&](uint32_t feature, uint32_t entry) { entries.push_back({numbers.id(feature), entry}); });
        std::sort(entries.begin(), entries.end());
        return entries;
    }

    static void save(const SiblingBlock& block, const FeatureNumbers& numbers, int32_t first_lane,
                     BlockArrays<Made>& out) {
        const int32_t n_lanes = block.n_lanes(), capacity = block.capacity();
        const auto save_row = [&](uint32_t r) {
            const float* row = block.rows_.row(r);
            out.weights.insert(out.weights.end(), row + first_lane, row + n_lanes);
            out.sums.insert(out.sums.end(), row + capacity + first_lane, row + capacity + n_lanes);
        };
        save_row(0);
        Vector<int32_t> renumbered(block.firsts_.size(), -1);
        int32_t n_firsts = 0;
        for (const auto& [id, entry] : sorted(block, numbers)) {
            out.features.push_back(static_cast<int64_t>(id));
            if (!SiblingBlock::is_single(entry)) {
                out.first.push_back(-1);
                out.value.push_back(0.0f);
                save_row(entry);
                continue;
            }
            const SiblingBlock::Single& single = block.singles_[SiblingBlock::index_of(entry)];
            if (renumbered[single.first] < 0) {
                renumbered[single.first] = n_firsts++;
                const float* row = block.firsts_.row(single.first);
                out.gradients.insert(out.gradients.end(), row + first_lane, row + n_lanes);
            }
            out.first.push_back(renumbered[single.first]);
            out.value.push_back(single.value);
        }
        out.feature_ptr.push_back(out.features.size());
        out.row_ptr.push_back(out.weights.size());
        out.gradient_ptr.push_back(out.gradients.size());
    }

    // Views of one block's part of the arrays.
    struct Part {
        const int64_t* features;
        const int32_t* first;
        const float* value;
        int64_t n_features;
        const float* weights;
        const float* sums;
        const float* gradients;
        int64_t n_gradients;  // floats
    };

    // Fills a block that has learned nothing.
    static void load(const Part& part, SiblingBlock& block, int32_t first_lane, FeatureNumbers& numbers) {
        const int32_t n_lanes = block.n_lanes();
        block.table_.reserve(part.n_features);
        const int32_t capacity = block.capacity(), saved = n_lanes - first_lane;
        const auto fill = [&](const float* from, float* to, bool inverse) {
            std::copy(from, from + saved, to + first_lane);
            if (first_lane > 0) return;
            for (int32_t c = n_lanes; c < capacity; ++c) to[c] = inverse ? inverted(from[0]) : from[0];
        };
        const float* weights = part.weights;
        const float* sums = part.sums;
        const auto load_row = [&](uint32_t r) {
            fill(weights, block.rows_.row(r), true);
            fill(sums, block.rows_.row(r) + capacity, false);
            weights += saved;
            sums += saved;
        };
        load_row(0);
        for (int64_t at = 0; at < part.n_gradients; at += saved) {
            fill(part.gradients + at, block.firsts_.row(block.firsts_.add()), true);
        }
        for (int64_t j = 0; j < part.n_features; ++j) {
            const uint32_t feature = numbers.intern(static_cast<uint64_t>(part.features[j]));
            if (part.first[j] >= 0) {
                block.add_single(feature, {static_cast<uint32_t>(part.first[j]), part.value[j]});
            } else {
                const uint32_t row = block.rows_.add();
                load_row(row);
                block.table_.set(feature, row);
            }
        }
    }

    // Calls use(feature id, weights by lane): first for the constant with id -1, then by ascending id.
    template <class Use>
    static void each_row(const SiblingBlock& block, const FeatureNumbers& numbers, const LearnerOptions& options,
                         Use&& use) {
        use(int64_t{-1}, block.rows_.row(0));
        Vector<float> replayed(2 * block.capacity());
        for (const auto& [id, entry] : sorted(block, numbers)) {
            use(static_cast<int64_t>(id), row_of(block, entry, options, replayed));
        }
    }

    // The same for the constant and those of the given features that the block has seen.
    template <class Use>
    static void each_row_among(Span<const int32_t> features, const SiblingBlock& block, const FeatureNumbers& numbers,
                               const LearnerOptions& options, Use&& use) {
        use(int64_t{-1}, block.rows_.row(0));
        Vector<float> replayed(2 * block.capacity());
        for (const int32_t id : features) {
            const uint32_t number = numbers.find(static_cast<uint64_t>(id));
            const uint32_t entry = number == FeatureNumbers::kNone ? SiblingBlock::kNoRow : block.table_.find(number);
            if (entry != SiblingBlock::kNoRow) use(int64_t{id}, row_of(block, entry, options, replayed));
        }
    }

  private:
    // The row of an entry of the block's table; `replayed` holds it if the block does not.
    static const float* row_of(const SiblingBlock& block, uint32_t entry, const LearnerOptions& options,
                               Vector<float>& replayed) {
        if (!SiblingBlock::is_single(entry)) return block.rows_.row(entry);
        std::fill(replayed.begin(), replayed.end(), 0.0f);
        block.replay(block.singles_[SiblingBlock::index_of(entry)], options, replayed.data());
        return replayed.data();
    }
};

template <class Held>
struct LabelArrays {
    typename Held::template Small<int32_t> answers_as;
    typename Held::template Small<uint8_t> retired;
    typename Held::template Small<int64_t> support, first_seen, last_seen;
};

template <class Held>
struct TreeArrays {
    typename Held::template Small<int32_t> parent, label;
    typename Held::template Small<uint8_t> auxiliary;
    LabelArrays<Held> records;
    BlockArrays<Held> blocks;
};

// A classifier's weights and sums of squared gradients by feature; the constant is feature -1.
struct Classifier {
    Vector<int64_t> features;
    Vector<float> weights, sums;
};

struct TreeState {
    // Saves block 0, then the blocks of the nodes that have one, in the order of the nodes.
    static TreeArrays<Made> save(const Tree& tree) {
        TreeArrays<Made> out;
        for (auto* ptr : {&out.blocks.feature_ptr, &out.blocks.row_ptr, &out.blocks.gradient_ptr}) ptr->push_back(0);
        const Nodes& nodes = tree.nodes_;
        BlockState::save(tree.block(0), tree.numbers_, 1, out.blocks);
        for (int32_t v = 0; v < nodes.size(); ++v) {
            const Node& node = nodes[v];
            out.parent.push_back(node.parent);
            out.label.push_back(node.label);
            out.auxiliary.push_back(node.auxiliary ? 1 : 0);
            if (node.block >= 0) {
                BlockState::save(tree.block(node.block), tree.numbers_, node.auxiliary ? 0 : 1, out.blocks);
            }
        }
        out.records = records(tree);
        return out;
    }

    // The classifier of a node, or its auxiliary classifier.
    static Classifier classifier(const Tree& tree, int32_t node, bool auxiliary) {
        const Node& v = tree.nodes_[node];
        const int32_t number = auxiliary ? v.block : v.parent < 0 ? 0 : tree.nodes_[v.parent].block;
        const int32_t lane = auxiliary ? 0 : v.lane;
        const SiblingBlock& block = tree.block(number);
        Classifier found;
        BlockState::each_row(block, tree.numbers_, tree.learner(), [&](int64_t feature, const float* row) {
            found.features.push_back(feature);
            found.weights.push_back(row[lane]);
            found.sums.push_back(row[block.capacity() + lane]);
        });
        return found;
    }

    static LabelArrays<Made> records(const Tree& tree) {
        LabelArrays<Made> out;
        for (const LabelRecord& record : tree.labels_) {
            out.answers_as.push_back(record.answers_as);
            out.retired.push_back(record.retired ? 1 : 0);
            out.support.push_back(record.support);
            out.first_seen.push_back(record.first);
            out.last_seen.push_back(record.last);
        }
        return out;
    }

    struct Counters {
        int64_t seen, updates;
        uint64_t decisions;
        int32_t cursor;
    };

    // Fills a new tree. The caller has checked the arrays: sizes agree, parents form a tree, ids are in
    // range.
    static void load(Tree& tree, const TreeArrays<Viewed>& from, bool growing, const Counters& counters) {
        const auto n_nodes = static_cast<int32_t>(from.parent.size());
        const LabelArrays<Viewed>& r = from.records;
        tree.resize_labels(r.support.size());
        for (int64_t j = 0; j < r.support.size(); ++j) {
            tree.labels_[j] = {-1, r.answers_as[j], r.retired[j] != 0, r.support[j], r.first_seen[j], r.last_seen[j]};
        }
        tree.plant(from.parent.data(), from.label.data(), n_nodes, growing);
        for (int32_t v = 0; v < n_nodes; ++v) tree.nodes_[v].auxiliary = from.auxiliary[v] != 0;
        int64_t number = 0;
        const auto part = [&](int64_t i) {
            const BlockArrays<Viewed>& a = from.blocks;
            return BlockState::Part{a.features.data() + a.feature_ptr[i],   a.first.data() + a.feature_ptr[i],
                                    a.value.data() + a.feature_ptr[i],      a.feature_ptr[i + 1] - a.feature_ptr[i],
                                    a.weights.data() + a.row_ptr[i],        a.sums.data() + a.row_ptr[i],
                                    a.gradients.data() + a.gradient_ptr[i], a.gradient_ptr[i + 1] - a.gradient_ptr[i]};
        };
        tree.blocks_[0] = tree.blocks_.made(2);
        BlockState::load(part(number++), tree.blocks_[0], 1, tree.numbers_);
        for (int32_t v = 0; v < n_nodes; ++v) {
            Node& node = tree.nodes_[v];
            if (node.is_leaf() && !node.auxiliary) {
                node.block = -1;
                continue;
            }
            if (node.block < 0) node.block = tree.blocks_.add(1);
            tree.block_of(v) = tree.blocks_.made(1 + node.n_children());
            BlockState::load(part(number++), tree.block_of(v), node.auxiliary ? 0 : 1, tree.numbers_);
        }
        tree.seen_ = counters.seen;
        tree.updates_ = counters.updates;
        tree.nodes_.resume(counters.decisions, counters.cursor);
    }
};

}  // namespace labelwood::online
