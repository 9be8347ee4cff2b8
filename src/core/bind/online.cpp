// Binding of the growing tree, the one stateful object of the module. Its callers have checked every array.
//
// Learning holds the lock alone, one call at a time; predictions share it, so a reader never sees half an
// update.
#include <mutex>
#include <shared_mutex>

#include "bind/bind.hpp"
#include "online/pack.hpp"
#include "online/search.hpp"
#include "online/state.hpp"

namespace labelwood::bind {
namespace {

using nb::arg;

class OnlineTreeObject {
  public:
    OnlineTreeObject(int policy, int32_t arity, int32_t max_leaf, double alpha, uint64_t seed, float rate,
                     float epsilon, float bias, bool normalize)
        : tree_(online::GrowthOptions{static_cast<online::Policy>(policy), arity, max_leaf, alpha, seed},
                online::LearnerOptions{rate, epsilon, bias}, normalize) {}

    void plant(Array<int32_t> parent, Array<int32_t> label, bool growing) {
        const std::unique_lock lock(mutex_);
        tree_.plant(parent.data(), label.data(), static_cast<int32_t>(parent.shape(0)), growing);
    }

    template <class Column>
    void learn(Array<int64_t> xp, Array<Column> xi, Array<float> xd, Array<int64_t> yp, Array<int32_t> yi,
               int64_t n_labels, Array<int64_t> order, int n_threads) {
        const Csr y = pattern(yp, yi, n_labels);
        without_gil([&] {
            const std::unique_lock lock(mutex_);
            tree_.resize_labels(n_labels);
            tree_.learn(xp.data(), xi.data(), xd.data(), y, order.data(),
                        static_cast<int64_t>(order.shape(0)), n_threads);
            return 0;
        });
    }

    template <class Column>
    nb::tuple search(Array<int64_t> xp, Array<Column> xi, Array<float> xd, int32_t k, int n_threads,
                     nb::object progress) const {
        const auto n_rows = static_cast<int64_t>(xp.shape(0)) - 1;
        const size_t size = static_cast<size_t>(n_rows) * static_cast<size_t>(k);
        std::vector<int32_t> labels(size);
        std::vector<float> scores(size);
        const bool small = xp.data()[n_rows] < 4096;  // ends before anyone could look: no threads, no polling
        Monitor monitor = small ? Monitor() : monitor_of(progress);
        without_gil([&] {
            const std::shared_lock lock(mutex_);
            const online::Batch batch = tree_.prepare(xp.data(), xi.data(), xd.data(), nullptr, n_rows,
                                                      [&](uint64_t id) { return tree_.numbers().find(id); });
            online::search_batch(tree_, batch, k, small ? 1 : n_threads, monitor, labels.data(),
                                 scores.data());
            return 0;
        });
        return nb::make_tuple(
            to_numpy(std::move(labels), static_cast<size_t>(n_rows), static_cast<size_t>(k)),
            to_numpy(std::move(scores), static_cast<size_t>(n_rows), static_cast<size_t>(k)));
    }

    // Predicts each row, then learns it.
    template <class Column>
    nb::tuple progressive(Array<int64_t> xp, Array<Column> xi, Array<float> xd, Array<int64_t> yp,
                          Array<int32_t> yi, int64_t n_labels, int32_t k) {
        const Csr y = pattern(yp, yi, n_labels);
        const size_t size = static_cast<size_t>(y.n_rows) * static_cast<size_t>(k);
        std::vector<int32_t> labels(size);
        std::vector<float> scores(size);
        without_gil([&] {
            const std::unique_lock lock(mutex_);
            tree_.resize_labels(n_labels);
            const online::Searcher searcher(tree_, k);
            online::SearchScratch scratch;
            for (int64_t row = 0; row < y.n_rows; ++row) {
                const online::Batch one =
                    tree_.prepare(xp.data(), xi.data(), xd.data(), &row, 1,
                                  [&](uint64_t id) { return tree_.numbers().find(id); });
                searcher.search(one.row(0), scratch, labels.data() + row * k, scores.data() + row * k);
                tree_.learn(xp.data(), xi.data(), xd.data(), y, &row, 1, 1);
            }
            return 0;
        });
        return nb::make_tuple(
            to_numpy(std::move(labels), static_cast<size_t>(y.n_rows), static_cast<size_t>(k)),
            to_numpy(std::move(scores), static_cast<size_t>(y.n_rows), static_cast<size_t>(k)));
    }

    void set_lifecycle(int32_t label, bool retired, int32_t answers_as) {
        const std::unique_lock lock(mutex_);
        tree_.resize_labels(1 + static_cast<int64_t>(std::max(label, answers_as)));
        tree_.set_lifecycle(label, retired, answers_as);
    }

    nb::dict records() const {
        const std::shared_lock lock(mutex_);
        nb::dict out;
        put_records(online::TreeState::records(tree_), out);
        return out;
    }

    nb::dict state() const {
        online::TreeArrays arrays = without_gil([&] {
            const std::shared_lock lock(mutex_);
            return online::TreeState::save(tree_);
        });
        nb::dict out;
        online::BlockArrays& b = arrays.blocks;
        out["parent"] = to_numpy(std::move(arrays.parent));
        out["label"] = to_numpy(std::move(arrays.label));
        out["auxiliary"] = to_numpy(std::move(arrays.auxiliary));
        put_records(std::move(arrays.records), out);
        out["feature_ptr"] = to_numpy(std::move(b.feature_ptr));
        out["features"] = to_numpy(std::move(b.features));
        out["first"] = to_numpy(std::move(b.first));
        out["value"] = to_numpy(std::move(b.value));
        out["row_ptr"] = to_numpy(std::move(b.row_ptr));
        out["weights"] = to_numpy(std::move(b.weights));
        out["sums"] = to_numpy(std::move(b.sums));
        out["gradient_ptr"] = to_numpy(std::move(b.gradient_ptr));
        out["gradients"] = to_numpy(std::move(b.gradients));
        return out;
    }

    void restore(nb::dict from, bool growing, int64_t seen, int64_t updates, uint64_t decisions,
                 int32_t cursor) {
        online::TreeArrays a;
        online::BlockArrays& b = a.blocks;
        take(from, "parent", a.parent);
        take(from, "label", a.label);
        take(from, "auxiliary", a.auxiliary);
        take(from, "answers_as", a.records.answers_as);
        take(from, "retired", a.records.retired);
        take(from, "support", a.records.support);
        take(from, "first_seen", a.records.first_seen);
        take(from, "last_seen", a.records.last_seen);
        take(from, "feature_ptr", b.feature_ptr);
        take(from, "features", b.features);
        take(from, "first", b.first);
        take(from, "value", b.value);
        take(from, "row_ptr", b.row_ptr);
        take(from, "weights", b.weights);
        take(from, "sums", b.sums);
        take(from, "gradient_ptr", b.gradient_ptr);
        take(from, "gradients", b.gradients);
        const std::unique_lock lock(mutex_);
        online::TreeState::load(tree_, a, growing, {seen, updates, decisions, cursor});
    }

    nb::dict pack(float threshold) const {
        online::PackedTree packed = without_gil([&] {
            const std::shared_lock lock(mutex_);
            return online::pack(tree_, threshold);
        });
        nb::dict out;
        out["child_ptr"] = to_numpy(std::move(packed.child_ptr));
        out["label"] = to_numpy(std::move(packed.label));
        out["leaf_labels"] = to_numpy(std::move(packed.leaf_labels));
        out["feature_ptr"] = to_numpy(std::move(packed.weights.feature_ptr));
        out["features"] = to_numpy(std::move(packed.weights.features));
        out["weight_ptr"] = to_numpy(std::move(packed.weights.weight_ptr));
        out["row_start"] = to_numpy(std::move(packed.weights.row_start));
        out["child"] = to_numpy(std::move(packed.weights.child));
        out["weights"] = to_numpy(std::move(packed.weights.weights));
        out["bias"] = to_numpy(std::move(packed.weights.bias));
        return out;
    }

    // Features (-1: the constant), weights and sums of a node's classifier, or of its auxiliary one.
    nb::tuple classifier(int32_t node, bool auxiliary) const {
        const std::shared_lock lock(mutex_);
        const online::Node& v = tree_.nodes()[node];
        const int32_t block = auxiliary ? v.block : v.parent < 0 ? 0 : tree_.nodes()[v.parent].block;
        const int32_t lane = auxiliary ? 0 : v.lane;
        std::vector<int64_t> features;
        std::vector<float> weights, sums;
        online::BlockState::each_row(tree_.block(block), tree_.numbers(), tree_.learner(),
                                     [&](int64_t feature, const float* row) {
                                         features.push_back(feature);
                                         weights.push_back(row[lane]);
                                         sums.push_back(row[tree_.block(block).capacity() + lane]);
                                     });
        return nb::make_tuple(to_numpy(std::move(features)), to_numpy(std::move(weights)),
                              to_numpy(std::move(sums)));
    }

    bool growing() const { return tree_.growing(); }
    int64_t seen() const {
        const std::shared_lock lock(mutex_);
        return tree_.seen();
    }
    bool has_label(int32_t label) const {
        const std::shared_lock lock(mutex_);
        return label < static_cast<int64_t>(tree_.labels().size()) &&
               tree_.labels()[static_cast<size_t>(label)].leaf >= 0;
    }

    nb::dict facts() const {
        const std::shared_lock lock(mutex_);
        int64_t n_auxiliary = 0;
        for (int32_t v = 0; v < tree_.nodes().size(); ++v) n_auxiliary += tree_.nodes()[v].auxiliary ? 1 : 0;
        nb::dict out;
        out["nodes"] = tree_.nodes().size();
        out["depth"] = tree_.nodes().depth();
        out["auxiliary_classifiers"] = n_auxiliary;
        out["seen"] = tree_.seen();
        out["updates"] = tree_.updates();
        out["decisions"] = tree_.nodes().decisions();
        out["cursor"] = tree_.nodes().cursor();
        out["growing"] = tree_.growing();
        out["features"] = tree_.numbers().size();
        out["bytes"] = tree_.bytes();
        return out;
    }

  private:
    static void put_records(online::LabelArrays&& records, nb::dict& out) {
        out["answers_as"] = to_numpy(std::move(records.answers_as));
        out["retired"] = to_numpy(std::move(records.retired));
        out["support"] = to_numpy(std::move(records.support));
        out["first_seen"] = to_numpy(std::move(records.first_seen));
        out["last_seen"] = to_numpy(std::move(records.last_seen));
    }

    template <class T>
    static void take(const nb::dict& from, const char* name, std::vector<T>& into) {
        const auto array = nb::cast<Array<T>>(from[name]);
        into.assign(array.data(), array.data() + array.shape(0));
    }

    online::Tree tree_;
    mutable std::shared_mutex mutex_;
};

template <class Column>
void define_for(nb::class_<OnlineTreeObject>& object) {
    const auto columns = [] { return arg("x_indices").noconvert(); };
    object.def("learn", &OnlineTreeObject::learn<Column>, arg("x_indptr"), columns(), arg("x_data"),
               arg("y_indptr"), arg("y_indices"), arg("n_labels"), arg("order"), arg("n_threads"),
               "Learn the rows `order`, in order.");
    object.def("search", &OnlineTreeObject::search<Column>, arg("x_indptr"), columns(), arg("x_data"),
               arg("k"), arg("n_threads"), arg("progress").none(), "Best k labels of every row.");
    object.def("progressive", &OnlineTreeObject::progressive<Column>, arg("x_indptr"), columns(),
               arg("x_data"), arg("y_indptr"), arg("y_indices"), arg("n_labels"), arg("k"),
               "Predict each row, then learn it.");
}

}  // namespace

void bind_online(nb::module_& m) {
    nb::class_<OnlineTreeObject> object(m, "OnlineTree", "A label tree that grows as it learns.");
    object.def(nb::init<int, int32_t, int32_t, double, uint64_t, float, float, float, bool>(), arg("policy"),
               arg("arity"), arg("max_leaf"), arg("alpha"), arg("seed"), arg("rate"), arg("epsilon"),
               arg("bias"), arg("normalize"));
    define_for<int32_t>(object);
    define_for<int64_t>(object);
    object.def("plant", &OnlineTreeObject::plant, arg("parent"), arg("label"), arg("growing"),
               "Start from a given tree.");
    object.def("set_lifecycle", &OnlineTreeObject::set_lifecycle, arg("label"), arg("retired"),
               arg("answers_as"));
    object.def("records", &OnlineTreeObject::records, "What is known of every label.");
    object.def("state", &OnlineTreeObject::state, "Everything that learning on needs.");
    object.def("restore", &OnlineTreeObject::restore, arg("arrays"), arg("growing"), arg("seen"),
               arg("updates"), arg("decisions"), arg("cursor"), "The inverse of state, on a new object.");
    object.def("pack", &OnlineTreeObject::pack, arg("threshold"), "The arrays of a packed tree.");
    object.def("classifier", &OnlineTreeObject::classifier, arg("node"), arg("auxiliary"),
               "Features, weights and sums of a node's classifier.");
    object.def_prop_ro("growing", &OnlineTreeObject::growing, "Whether the tree is open to new labels.");
    object.def_prop_ro("seen", &OnlineTreeObject::seen, "Examples learned.");
    object.def("has_label", &OnlineTreeObject::has_label, arg("label"), "Whether a label has a leaf.");
    object.def("facts", &OnlineTreeObject::facts, "Counts and sizes.");
}

}  // namespace labelwood::bind
