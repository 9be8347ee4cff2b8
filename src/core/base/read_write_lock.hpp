// A lock that readers share and a writer has alone.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

namespace labelwood {

// New readers wait for a waiting writer, so that readers cannot keep writers out. A thread that has the lock may
// take it again, but not to write if it reads: two such threads would wait for each other.
class ReadWriteLock {
  public:
    ReadWriteLock() = default;
    ReadWriteLock(const ReadWriteLock&) = delete;
    ReadWriteLock& operator=(const ReadWriteLock&) = delete;

    bool try_read() {
        const std::lock_guard guard(mutex_);
        return begin_reading();
    }
    // Throws std::logic_error if this thread reads.
    bool try_write() {
        const std::lock_guard guard(mutex_);
        return begin_writing();
    }

    // Wait for the lock. `poll` is called ten times a second; if it returns false, so do these, without the lock.
    template <class Poll>
    bool read(Poll&& poll) {
        std::unique_lock guard(mutex_);
        return wait(guard, poll, [&] { return begin_reading(); });
    }
    // New readers wait as long as this waits.
    template <class Poll>
    bool write(Poll&& poll) {
        std::unique_lock guard(mutex_);
        ++n_waiting_;
        const bool taken = wait(guard, poll, [&] { return begin_writing(); });
        --n_waiting_;
        if (!taken) changed_.notify_all();
        return taken;
    }

    void end_reading() {
        const std::lock_guard guard(mutex_);
        const auto reader = find_reader();
        if (reader == readers_.end()) {  // a writer that reads
            --depth_;
            return;
        }
        if (--reader->depth > 0) return;
        *reader = readers_.back();
        readers_.pop_back();
        if (readers_.empty() && n_waiting_ > 0) changed_.notify_all();
    }
    void end_writing() {
        const std::lock_guard guard(mutex_);
        if (--depth_ > 0) return;
        writer_ = {};
        changed_.notify_all();
    }

  private:
    struct Reader {
        std::thread::id thread;
        int depth;
    };

    bool begin_reading() {
        const std::thread::id thread = std::this_thread::get_id();
        if (writer_ == thread) {
            ++depth_;
            return true;
        }
        const auto reader = find_reader();
        if (reader != readers_.end()) {
            ++reader->depth;
            return true;
        }
        if (writer_ != std::thread::id() || n_waiting_ > 0) return false;
        readers_.push_back({thread, 1});
        return true;
    }
    bool begin_writing() {
        const std::thread::id thread = std::this_thread::get_id();
        if (writer_ == thread) {
            ++depth_;
            return true;
        }
        if (find_reader() != readers_.end()) throw std::logic_error("a thread cannot change a model while it reads it");
        if (writer_ != std::thread::id() || !readers_.empty()) return false;
        writer_ = thread;
        depth_ = 1;
        return true;
    }

    template <class Poll, class Begin>
    bool wait(std::unique_lock<std::mutex>& guard, Poll& poll, Begin&& begin) {
        while (!begin()) {
            if (changed_.wait_for(guard, std::chrono::milliseconds(100)) == std::cv_status::no_timeout) continue;
            guard.unlock();
            const bool goes_on = poll();
            guard.lock();
            if (!goes_on) return false;
        }
        return true;
    }

    std::vector<Reader>::iterator find_reader() {
        const std::thread::id thread = std::this_thread::get_id();
        return std::find_if(readers_.begin(), readers_.end(), [&](const Reader& r) { return r.thread == thread; });
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<Reader> readers_;  // threads that read
    std::thread::id writer_;       // the thread that writes
    int depth_ = 0;                // how often the writer has taken the lock
    int n_waiting_ = 0;            // writers that wait
};

}  // namespace labelwood
