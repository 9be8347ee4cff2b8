// The memory bandwidth that the solver's inner loops could reach at best. The program picks rows of 16 floats
// at random from a table. It first reads and sums them, then reads, changes and writes them back. Arguments:
// bytes of the table, seconds per loop. Prints the GB/s of both loops.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

typedef float Row __attribute__((vector_size(64)));

template <class Visit>
double gigabytes_per_second(double seconds, double bytes_per_round, Visit&& visit) {
    using Clock = std::chrono::steady_clock;
    int64_t rounds = 0;
    const auto start = Clock::now();
    double passed = 0.0;
    while (passed < seconds) {
        visit();
        ++rounds;
        passed = std::chrono::duration<double>(Clock::now() - start).count();
    }
    return bytes_per_round * static_cast<double>(rounds) / passed / 1e9;
}

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    const auto n_rows = static_cast<uint32_t>(std::atoll(argv[1]) / sizeof(Row));
    const double seconds = std::atof(argv[2]);
    std::vector<Row> table(n_rows, Row{} + 1.0f);
    std::vector<uint32_t> order(1 << 16);
    uint32_t state = 1;
    for (auto& row : order) row = (state = state * 1664525u + 1013904223u) % n_rows;
    Row sums[8] = {};
    const double bytes = static_cast<double>(order.size()) * sizeof(Row);
    const double reads = gigabytes_per_second(seconds, bytes, [&] {
        for (size_t i = 0; i < order.size(); i += 8) {
            for (size_t n = 0; n < 8; ++n) sums[n] += table[order[i + n]] * 0.5f;
        }
    });
    const double updates = gigabytes_per_second(seconds, 2 * bytes, [&] {
        for (const uint32_t row : order) table[row] += sums[0] * 1e-30f;
    });
    for (const Row& sum : sums) state += static_cast<uint32_t>(sum[0]);
    std::printf("%.1f %.1f %u\n", reads, updates, state & 1);
}
