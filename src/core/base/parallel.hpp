// parallel_for on std::thread: no pool is alive between calls, so a fork is safe and an idle process is idle.
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

// Thrown out of a kernel when the monitor asked it to stop (Ctrl-C). The binding turns it into the pending
// Python exception.
struct Interrupted : std::exception {
    const char* what() const noexcept override { return "interrupted"; }
};

// How a long kernel reports and stops. Work is counted in units that cost the same (non-zeros touched,
// bytes), never in nodes; with a total set, `poll` is told millionths of it, else the units themselves.
// `poll` runs on the calling thread about ten times a second and returns false to stop.
class Monitor {
  public:
    using Poll = std::function<bool(int64_t done)>;

    Monitor() = default;
    explicit Monitor(Poll poll) : poll_(std::move(poll)) {}

    void set_total(int64_t work) { total_ = work; }
    void add(int64_t work) { done_.fetch_add(work, std::memory_order_relaxed); }
    bool stopped() const { return stop_.load(std::memory_order_relaxed); }
    void stop() { stop_.store(true, std::memory_order_relaxed); }
    void poll() {
        if (!poll_) return;
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

// Runs task(index, worker) for index in [0, n_tasks) on up to n_threads workers, taking indices in order.
// What a task computes must depend on its index alone; `worker` only selects a workspace.
// The first exception of a task is rethrown here after all workers have ended.
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
    } catch (...) {  // the system refused a thread: those that started finish the work alone
        const std::lock_guard lock(mutex);
        running -= n_threads - static_cast<int>(threads.size());
    }
    if (threads.empty()) {  // none did: the calling thread does it, and does not poll
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
    if (monitor.stopped()) throw Interrupted();
}

}  // namespace labelwood
