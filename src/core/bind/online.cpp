// Binding of the growing tree, the only stateful object of the module. Callers in Python have checked the
// arrays.
//
// Learning takes the object's mutex exclusively, predictions share it: a reader never sees half an update. Nobody waits
// for the mutex while holding the interpreter lock, because a search takes that lock to report its progress.
//
// ModelLock is for the estimators in Python, whose state is more than the tree: names, counts, decisions.
#include <mutex>
#include <shared_mutex>
#include <utility>

#include "base/read_write_lock.hpp"
#include "bind/arguments.hpp"
#include "bind/options.hpp"
#include "online/pack.hpp"
#include "online/search.hpp"
#include "online/state.hpp"

namespace labelwood::bind {
namespace {

struct OnlineTreeOptions {
    online::GrowthOptions growth;
    online::LearnerOptions learner;
    bool normalize;
};

void read(OptionsReader& from, OnlineTreeOptions& to) {
    from.choose("policy", to.growth.policy, {"best-greedy", "random", "complete", "flat"});
    from.read("arity", to.growth.arity);
    from.read("max_leaf", to.growth.max_leaf);
    from.read("alpha", to.growth.alpha);
    from.read("printed_balance", to.growth.printed);
    from.read("seed", to.growth.seed);
    from.read("learning_rate", to.learner.rate);
    from.read("epsilon", to.learner.inside);
    bool is_outside = false;
    from.read("epsilon_outside", is_outside);
    if (is_outside) std::swap(to.learner.inside, to.learner.outside);
    from.read("bias", to.learner.bias);
    from.read("normalize", to.normalize);
}

void read(OptionsReader& from, online::TreeArrays<online::Viewed>& to) {
    from.view("parent", to.parent);
    from.view("label", to.label);
    from.view("auxiliary", to.auxiliary);
    from.view("answers_as", to.records.answers_as);
    from.view("retired", to.records.retired);
    from.view("support", to.records.support);
    from.view("first_seen", to.records.first_seen);
    from.view("last_seen", to.records.last_seen);
    from.view("feature_ptr", to.blocks.feature_ptr);
    from.view("features", to.blocks.features);
    from.view("first", to.blocks.first);
    from.view("value", to.blocks.value);
    from.view("row_ptr", to.blocks.row_ptr);
    from.view("weights", to.blocks.weights);
    from.view("sums", to.blocks.sums);
    from.view("gradient_ptr", to.blocks.gradient_ptr);
    from.view("gradients", to.blocks.gradients);
}

// A ReadWriteLock whose waiting can be interrupted (Ctrl-C). Python takes it by `with`, which no signal can separate
// from its end.
class ModelLock {
  public:
    struct Reading {
        void enter() {
            if (!lock.try_read()) wait([&](auto poll) { return lock.read(poll); });
        }
        void exit(const nb::object&, const nb::object&, const nb::object&) { lock.end_reading(); }
        ReadWriteLock& lock;
    };
    struct Changing {
        void enter() {
            if (!lock.try_write()) wait([&](auto poll) { return lock.write(poll); });
        }
        void exit(const nb::object&, const nb::object&, const nb::object&) { lock.end_writing(); }
        ReadWriteLock& lock;
    };

    Reading reading{lock_};
    Changing changing{lock_};

  private:
    template <class Take>
    static void wait(Take&& take) {
        const auto goes_on = [] {
            const WithLock lock;
            return PyErr_CheckSignals() == 0;
        };
        if (!without_gil([&] { return take(goes_on); })) throw nb::python_error();
    }

    ReadWriteLock lock_;
};

// Locks a mutex; waits without the interpreter lock.
template <class Lock>
Lock locked(std::shared_mutex& mutex) {
    Lock lock(mutex, std::try_to_lock);
    if (!lock.owns_lock()) without_gil([&] { lock.lock(); });
    return lock;
}

class OnlineTreeObject {
  public:
    explicit OnlineTreeObject(const nb::dict& options)
        : OnlineTreeObject(options_from<OnlineTreeOptions>(options, read)) {}

    void plant(Array<int32_t> parent, Array<int32_t> label, bool growing) {
        const auto lock = exclusive();
        tree_.plant(parent.data(), label.data(), static_cast<int32_t>(parent.shape(0)), growing);
    }

    void learn(const StreamArrays& x, const PatternArrays& y, const Array<int64_t>& order, int n_threads) {
        without_gil([&] {
            const std::unique_lock lock(mutex_);
            tree_.resize_labels(y.n_cols);
            x.with_rows([&](const auto& rows) {
                tree_.learn(rows.indptr, rows.indices, rows.data, y.view(), order.data(), length(order), n_threads);
            });
        });
    }

    nb::tuple search(const StreamArrays& x, int32_t k, int n_threads, const nb::object& progress,
                     const std::optional<Array<int32_t>>& allowed) const {
        Call call(x.indptr.data()[x.n_rows()] < 4096, n_threads, progress);
        return labels_and_scores(x.n_rows(), k, [&](int32_t* labels, float* scores) {
            const std::shared_lock lock(mutex_);
            x.with_rows([&](const auto& rows) {
                if (allowed) {
                    online::search_allowed(tree_, rows, span(*allowed), k, call.n_threads, call.monitor, labels,
                                           scores);
                } else {
                    online::search(tree_, rows, k, call.n_threads, call.monitor, labels, scores);
                }
            });
        });
    }

    nb::tuple progressive(const StreamArrays& x, const PatternArrays& y, int32_t k) {
        return labels_and_scores(x.n_rows(), k, [&](int32_t* labels, float* scores) {
            const std::unique_lock lock(mutex_);
            tree_.resize_labels(y.n_cols);
            x.with_rows(
                [&](const auto& rows) { online::predict_then_learn(tree_, rows, y.view(), k, labels, scores); });
        });
    }

    void set_lifecycle(int32_t label, bool retired, int32_t answers_as) {
        const auto lock = exclusive();
        tree_.resize_labels(1 + static_cast<int64_t>(std::max(label, answers_as)));
        tree_.set_lifecycle(label, retired, answers_as);
    }

    nb::dict records() const {
        const auto lock = shared();
        nb::dict out;
        put_records(online::TreeState::records(tree_), out);
        return out;
    }

    nb::dict state() const {
        online::TreeArrays<online::Made> arrays = without_gil([&] {
            const std::shared_lock lock(mutex_);
            return online::TreeState::save(tree_);
        });
        nb::dict out;
        online::BlockArrays<online::Made>& b = arrays.blocks;
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

    void restore(const nb::dict& arrays, bool growing, int64_t seen, int64_t updates, uint64_t decisions,
                 int32_t cursor) {
        const auto given = options_from<online::TreeArrays<online::Viewed>>(arrays, read);
        const auto lock = exclusive();
        online::TreeState::load(tree_, given, growing, {seen, updates, decisions, cursor});
    }

    nb::dict pack(double threshold) const {
        online::PackedTree packed = without_gil([&] {
            const std::shared_lock lock(mutex_);
            return online::pack(tree_, static_cast<float>(threshold));
        });
        nb::dict out;
        put_shape(std::move(packed.shape), out);
        out["feature_ptr"] = to_numpy(std::move(packed.weights.feature_ptr));
        out["features"] = to_numpy(std::move(packed.weights.features));
        out["weight_ptr"] = to_numpy(std::move(packed.weights.weight_ptr));
        out["row_start"] = to_numpy(std::move(packed.weights.row_start));
        out["child"] = to_numpy(std::move(packed.weights.child));
        out["weights"] = to_numpy(std::move(packed.weights.weights));
        out["bias"] = to_numpy(std::move(packed.weights.bias));
        return out;
    }

    nb::dict shape() const {
        online::PackedShape shape = without_gil([&] {
            const std::shared_lock lock(mutex_);
            return online::packed_shape(tree_);
        });
        nb::dict out;
        put_shape(std::move(shape), out);
        return out;
    }

    nb::tuple weights_of(const Array<int32_t>& nodes, const Array<int32_t>& features) const {
        const auto lock = shared();
        online::WeightsOfNodes found = online::weights_of(tree_, span(nodes), span(features));
        return nb::make_tuple(to_numpy(std::move(found.weights), length(nodes), length(features)),
                              to_numpy(std::move(found.bias)));
    }

    nb::tuple classifier(int32_t node, bool auxiliary) const {
        const auto lock = shared();
        online::Classifier found = online::TreeState::classifier(tree_, node, auxiliary);
        return nb::make_tuple(to_numpy(std::move(found.features)), to_numpy(std::move(found.weights)),
                              to_numpy(std::move(found.sums)));
    }

    bool growing() const { return tree_.growing(); }
    int64_t seen() const {
        const auto lock = shared();
        return tree_.seen();
    }
    int64_t revision() const {
        const auto lock = shared();
        return tree_.revision();
    }
    bool has_label(int32_t label) const {
        const auto lock = shared();
        return tree_.has_label(label);
    }

    bool knows_any(const StreamArrays& x) const {
        const auto lock = shared();
        bool found = false;
        x.with_rows([&](const auto& rows) {
            found = online::known_features(tree_, rows, nullptr, rows.n_rows).features.size() > 0;
        });
        return found;
    }

    nb::dict facts() const {
        const auto lock = shared();
        nb::dict out;
        out["nodes"] = tree_.nodes().size();
        out["depth"] = tree_.nodes().depth();
        out["auxiliary_classifiers"] = tree_.nodes().n_auxiliary();
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
    using Shared = std::shared_lock<std::shared_mutex>;
    using Exclusive = std::unique_lock<std::shared_mutex>;
    Shared shared() const { return locked<Shared>(mutex_); }
    Exclusive exclusive() { return locked<Exclusive>(mutex_); }

    static void put_shape(online::PackedShape&& shape, nb::dict& out) {
        out["child_ptr"] = to_numpy(std::move(shape.child_ptr));
        out["label"] = to_numpy(std::move(shape.label));
        out["leaf_labels"] = to_numpy(std::move(shape.leaf_labels));
        out["order"] = to_numpy(std::move(shape.order));
    }

    static void put_records(online::LabelArrays<online::Made>&& records, nb::dict& out) {
        out["answers_as"] = to_numpy(std::move(records.answers_as));
        out["retired"] = to_numpy(std::move(records.retired));
        out["support"] = to_numpy(std::move(records.support));
        out["first_seen"] = to_numpy(std::move(records.first_seen));
        out["last_seen"] = to_numpy(std::move(records.last_seen));
    }

    explicit OnlineTreeObject(const OnlineTreeOptions& options)
        : tree_(options.growth, options.learner, options.normalize) {}

    online::Tree tree_;
    mutable std::shared_mutex mutex_;
};

}  // namespace

void bind_online(nb::module_& m) {
    nb::class_<ModelLock> lock(m, "ModelLock", "A lock that readers share and a writer has alone.");
    nb::class_<ModelLock::Reading>(lock, "Reading")
        .def("__enter__", &ModelLock::Reading::enter)
        .def("__exit__", &ModelLock::Reading::exit, arg("type").none(), arg("error").none(), arg("trace").none());
    nb::class_<ModelLock::Changing>(lock, "Changing")
        .def("__enter__", &ModelLock::Changing::enter)
        .def("__exit__", &ModelLock::Changing::exit, arg("type").none(), arg("error").none(), arg("trace").none());
    lock.def(nb::init<>());
    lock.def_ro("reading", &ModelLock::reading, "Holds off changes.");
    lock.def_ro("changing", &ModelLock::changing, "Holds off all other threads.");
    nb::class_<OnlineTreeObject> object(m, "OnlineTree", "A label tree that grows as it learns.");
    object.def(nb::init<const nb::dict&>(), arg("options"));
    object.def("learn", &OnlineTreeObject::learn, arg("X"), arg("Y"), arg("order"), arg("n_threads"),
               "Learn the rows `order`, in order.");
    object.def("search", &OnlineTreeObject::search, arg("X"), arg("k"), arg("n_threads"), arg("progress").none(),
               arg("allowed") = nb::none(), "Best k labels of every row; of the allowed labels, if they are given.");
    object.def("progressive", &OnlineTreeObject::progressive, arg("X"), arg("Y"), arg("k"),
               "Predict each row, then learn it.");
    object.def("plant", &OnlineTreeObject::plant, arg("parent"), arg("label"), arg("growing"),
               "Start from a given tree.");
    object.def("set_lifecycle", &OnlineTreeObject::set_lifecycle, arg("label"), arg("retired"), arg("answers_as"));
    object.def("records", &OnlineTreeObject::records, "What is known of every label.");
    object.def("state", &OnlineTreeObject::state, "Everything that learning on needs.");
    object.def("restore", &OnlineTreeObject::restore, arg("arrays"), arg("growing"), arg("seen"), arg("updates"),
               arg("decisions"), arg("cursor"), "The inverse of state, on a new object.");
    object.def("pack", &OnlineTreeObject::pack, arg("threshold"), "The arrays of a packed tree.");
    object.def("shape", &OnlineTreeObject::shape, "The packed tree without its weights, and the nodes it is made of.");
    object.def("weights_of", &OnlineTreeObject::weights_of, arg("nodes"), arg("features"),
               "Weights [nodes, features] and biases of nodes; siblings follow one another, features rise.");
    object.def("classifier", &OnlineTreeObject::classifier, arg("node"), arg("auxiliary"),
               "Features, weights and sums of a node's classifier.");
    object.def_prop_ro("growing", &OnlineTreeObject::growing, "Whether the tree is open to new labels.");
    object.def_prop_ro("revision", &OnlineTreeObject::revision, "Changes whenever the shape of the tree does.");
    object.def_prop_ro("seen", &OnlineTreeObject::seen, "Examples learned.");
    object.def("has_label", &OnlineTreeObject::has_label, arg("label"), "Whether a label has a leaf.");
    object.def("knows_any", &OnlineTreeObject::knows_any, arg("X"), "Whether a feature of the rows was learned.");
    object.def("facts", &OnlineTreeObject::facts, "Counts and sizes.");
}

}  // namespace labelwood::bind
