// What all bindings share: array types, results, the interpreter lock and the progress callback.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#ifdef __GLIBC__
#include <cxxabi.h>
#endif

#include <chrono>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/csr.hpp"
#include "base/parallel.hpp"
#include "base/span.hpp"

namespace labelwood::bind {

namespace nb = nanobind;

template <class T>
using Array = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Array2 = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Out = nb::ndarray<nb::numpy, T, nb::ndim<1>, nb::c_contig>;
template <class T>
using Out2 = nb::ndarray<nb::numpy, T, nb::ndim<2>, nb::c_contig>;

using AnyArray = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// An argument that is taken as it is or refused: without a conversion, no number is narrowed and no array is
// copied into another type. A scalar is a Python int in range, a float or a bool.
inline auto arg(const char* name) {
    return nb::arg(name).noconvert();
}

// Reads an integer of Python or NumPy; false if it is none, or is out of range.
template <class T>
bool read_integer(nb::handle given, T& into) noexcept {
    if (PyBool_Check(given.ptr()) || !PyIndex_Check(given.ptr())) return false;
    PyObject* found = PyNumber_Index(given.ptr());
    if (found == nullptr) {
        PyErr_Clear();
        return false;
    }
    const nb::object held = nb::steal(found);
    return nb::try_cast(held, into, false);
}

// Hands a vector's memory to NumPy without a copy.
template <class T, class Allocator>
Out<T> to_numpy(std::vector<T, Allocator>&& values) {
    using Held = std::vector<T, Allocator>;
    auto* held = new Held(std::move(values));
    nb::capsule owner(held, [](void* p) noexcept { delete static_cast<Held*>(p); });
    return Out<T>(held->data(), {held->size()}, owner);
}

template <class T>
Out2<T> to_numpy(std::vector<T>&& values, int64_t rows, int64_t cols) {
    auto* held = new std::vector<T>(std::move(values));
    nb::capsule owner(held, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return Out2<T>(held->data(), {static_cast<size_t>(rows), static_cast<size_t>(cols)}, owner);
}

inline nb::tuple to_numpy(OwnedCsr&& matrix) {
    return nb::make_tuple(to_numpy(std::move(matrix.indptr)), to_numpy(std::move(matrix.indices)),
                          to_numpy(std::move(matrix.data)));
}

template <class T>
int64_t length(const Array<T>& array) {
    return static_cast<int64_t>(array.shape(0));
}

template <class T>
Span<const T> span(const Array<T>& array) {
    return {array.data(), length(array)};
}

template <class T>
const T* data_or_null(const std::optional<Array<T>>& array) {
    return array ? array->data() : nullptr;
}

// Takes the interpreter lock. If the interpreter is shutting down, Python unwinds the stack of a thread that
// asks for the lock, and C++ would abort. The thread waits for the end of the process instead.
template <class Take>
void take_lock(Take&& take) noexcept {
#ifdef __GLIBC__
    try {
        take();
    } catch (abi::__forced_unwind&) {
        for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
    }
#else
    take();
#endif
}

// Scopes with and without the interpreter lock.
class WithLock {
  public:
    WithLock() noexcept {
        take_lock([&] { state_ = PyGILState_Ensure(); });
    }
    ~WithLock() { PyGILState_Release(state_); }
    WithLock(const WithLock&) = delete;

  private:
    PyGILState_STATE state_;
};

class WithoutLock {
  public:
    WithoutLock() noexcept : state_(PyEval_SaveThread()) {}
    ~WithoutLock() {
        take_lock([&] { PyEval_RestoreThread(state_); });
    }
    WithoutLock(const WithoutLock&) = delete;

  private:
    PyThreadState* state_;
};

// A Monitor that handles pending signals and, if `progress` is callable, calls it with the work done.
inline Monitor monitor_of(const nb::object& progress) {
    PyObject* callback = progress.is_none() ? nullptr : progress.ptr();
    return Monitor([callback](int64_t done) {
        const WithLock lock;
        if (PyErr_CheckSignals() != 0) return false;
        if (callback != nullptr) {
            PyObject* result = PyObject_CallFunction(callback, "L", static_cast<long long>(done));
            if (result == nullptr) return false;
            Py_DECREF(result);
        }
        return true;
    });
}

// Threads and monitor of a call. A small call ends before anyone could interrupt it: one thread, and no polling
// unless the caller asks for it.
struct Call {
    Call(bool small, int threads, const nb::object& progress)
        : n_threads(small ? 1 : threads), monitor(small && progress.is_none() ? Monitor() : monitor_of(progress)) {}

    int n_threads;
    Monitor monitor;
};

// Runs a kernel without the interpreter lock. After an interrupt, the monitor's Python error is raised.
template <class Kernel>
auto without_gil(Kernel&& kernel) {
    try {
        const WithoutLock unlocked;
        return kernel();
    } catch (const Interrupted&) {
        throw nb::python_error();
    }
}

// Runs fill(labels, scores) without the interpreter lock on two new arrays of [n_rows, k]; returns both.
template <class Fill>
nb::tuple labels_and_scores(int64_t n_rows, int64_t k, Fill&& fill) {
    Vector<int32_t> labels(n_rows * k);
    Vector<float> scores(n_rows * k);
    without_gil([&] { fill(labels.data(), scores.data()); });
    return nb::make_tuple(to_numpy(std::move(labels), n_rows, k), to_numpy(std::move(scores), n_rows, k));
}

}  // namespace labelwood::bind
