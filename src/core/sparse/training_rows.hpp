// Training rows as label trees read them: scaled on reading, and possibly mapped from a file larger than
// memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#if defined(__unix__) || defined(__APPLE__)
#include <sys/mman.h>
#include <unistd.h>
#endif

#include "base/csr.hpp"
#include "base/span.hpp"
#include "base/vectors.hpp"

namespace labelwood::sparse {

// Limits the memory of mapped files. A page of a mapped file counts for the process from its first use until
// it is released. Readers report the rows they use; past the limit all pages are released. They are read
// again on the next use: releasing is never wrong, only slow.
class Residency {
  public:
    // `bytes` is the size of the largest file.
    Residency(int64_t limit, int64_t bytes) : limit_(limit), left_(limit), touched_(bytes / kBlock + 2) {}

    // The range must be a read-only mapping of a file: anonymous memory would lose its content.
    void watch(const void* begin, int64_t bytes) { ranges_.push_back({begin, bytes}); }

    // `bytes` at `offset` of every watched file are about to be used. The system maps the neighbours of a
    // page with it, up to a whole block, so blocks are counted.
    void use(int64_t offset, int64_t bytes) {
        const int64_t cost = ranges_.size() * kBlock;
        for (int64_t block = offset / kBlock; block <= (offset + bytes) / kBlock; ++block) {
            std::atomic<uint32_t>& touched = touched_[block];
            const uint32_t round = round_.load(std::memory_order_relaxed);
            if (touched.load(std::memory_order_relaxed) == round) continue;
            if (left_.fetch_sub(cost, std::memory_order_relaxed) < cost) {
                let_go();
                left_.fetch_sub(cost, std::memory_order_relaxed);
            }
            touched.store(round_.load(std::memory_order_relaxed), std::memory_order_relaxed);
        }
    }

    void let_go() {
        const std::lock_guard lock(mutex_);
        left_.store(limit_, std::memory_order_relaxed);
        round_.fetch_add(1, std::memory_order_relaxed);
#if defined(__unix__) || defined(__APPLE__)
        const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
        for (const Range& range : ranges_) {  // whole pages within the range only
            const uintptr_t first = (reinterpret_cast<uintptr_t>(range.begin) + page - 1) / page * page;
            const uintptr_t last =
                (reinterpret_cast<uintptr_t>(range.begin) + static_cast<uintptr_t>(range.bytes)) / page * page;
            if (last > first) madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
        }
#endif
    }

  private:
    struct Range {
        const void* begin;
        int64_t bytes;
    };
    static constexpr int64_t kBlock = 2 * 1024 * 1024;  // a huge page, which one use may map

    const int64_t limit_;
    std::atomic<int64_t> left_;
    Vector<std::atomic<uint32_t>> touched_;  // per block the round of its last use
    std::atomic<uint32_t> round_{1};
    std::mutex mutex_;
    Vector<Range> ranges_;
};

// A matrix whose rows are multiplied by a factor each when they are read. A row may have a vector: dense columns
// beside its sparse ones.
struct TrainingRows {
    Csr x;
    const float* scale = nullptr;    // null: all factors are 1
    Residency* residency = nullptr;  // null: the rows are in memory
    Vectors vectors{};               // width 0: none

    // Numbers of a row, those of its vector included.
    int64_t entries(int64_t row) const { return x.row_nnz(row) + vectors.width; }

    // Reports that a row is about to be read, and returns its factor.
    float open(int64_t row) const {
        if (residency != nullptr) residency->use(4 * x.indptr[row], 4 * x.row_nnz(row));
        return scale == nullptr ? 1.0f : scale[row];
    }
};

}  // namespace labelwood::sparse
