// parallel_for on std::thread. No thread outlives a call, so forking is safe and an idle process uses no CPU.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace labelwood {

// Thrown by a kernel that the monitor stopped (Ctrl-C). The binding re-raises the pending Python exception.
struct Interrupted : std::exception {
    const char* what() const noexcept override { return "interrupted"; }
};

// Progress and cancellation of a long kernel. Work is counted in units of equal cost (non-zeros, bytes),
// never in nodes. `poll` runs on the calling thread about ten times a second. It is given millionths of the
// total, or units if no total is set, and returns false to stop the kernel.
class Monitor {
  public:
    using Poll = std::function<bool(int64_t done)>;

    Monitor() = default;
    explicit Monitor(Poll poll) : poll_(std::move(poll)) {}

    void set_total(int64_t work) { total_ = work; }
    void add(int64_t work) { done_.fetch_add(work, std::memory_order_relaxed); }
    bool stopped() const { return stop_.load(std::memory_order_relaxed); }
    void stop() { stop_.store(true, std::memory_order_relaxed); }
    // For the loops of a long task.
    void check() const {
        if (stopped()) throw Interrupted();
    }
    void poll() {
        if (!poll_ || stopped()) return;  // once it has stopped the kernel, a Python error may be pending
        const int64_t done = done_.load(std::memory_order_relaxed);
        const double share = total_ > 0 ? 1e6 * static_cast<double>(done) / static_cast<double>(total_) : 0.0;
        if (!poll_(total_ > 0 ? static_cast<int64_t>(share) : done)) stop();
    }
    bool polls() const { return static_cast<bool>(poll_); }

  private:
    Poll poll_;
    int64_t total_ = 0;
    std::atomic<int64_t> done_{0};
    std::atomic<bool> stop_{false};
};

// Runs task(index, worker) for index in [0, n_tasks) on up to n_threads workers, taking indices in order. The
// result of a task must depend on its index alone; `worker` only selects a scratch buffer. The first
// exception of a task is rethrown after all workers have ended.
template <class Task>
void parallel_for(int64_t n_tasks, int n_threads, Monitor& monitor, Task&& task) {
    n_threads = static_cast<int>(std::clamp<int64_t>(n_threads, 1, std::max<int64_t>(n_tasks, 1)));
    if (n_threads == 1 && !monitor.polls()) {
        for (int64_t i = 0; i < n_tasks; ++i) task(i, 0);
        return;
    }
    std::atomic<int64_t> next{0};
    std::mutex mutex;
    std::condition_variable ended;
    int running = n_threads;
    std::exception_ptr error;

    auto work = [&](int worker) {
        try {
            while (!monitor.stopped()) {
                const int64_t i = next.fetch_add(1, std::memory_order_relaxed);
                if (i >= n_tasks) break;
                task(i, worker);
            }
        } catch (...) {
            monitor.stop();
            const std::lock_guard lock(mutex);
            if (!error) error = std::current_exception();
        }
        const std::lock_guard lock(mutex);
        --running;
        ended.notify_one();
    };

    std::vector<std::thread> threads;
    threads.reserve(static_cast<size_t>(n_threads));
    try {
        for (int t = 0; t < n_threads; ++t) threads.emplace_back(work, t);
    } catch (...) {  // the system refused a thread: the others do the work
        const std::lock_guard lock(mutex);
        running -= n_threads - static_cast<int>(threads.size());
    }
    if (threads.empty()) {  // no thread started: the calling thread works, without polling
        running = 1;
        work(0);
    }
    {
        std::unique_lock lock(mutex);
        while (running > 0) {
            if (ended.wait_for(lock, std::chrono::milliseconds(100)) == std::cv_status::timeout) {
                lock.unlock();
                monitor.poll();
                lock.lock();
            }
        }
    }
    for (auto& thread : threads) thread.join();
    if (error) std::rethrow_exception(error);
    monitor.check();
}

}  // namespace labelwood
