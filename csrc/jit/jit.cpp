#include "jit/jit.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>

#include "common/blocks.h"

namespace fastml {
namespace {

using Seconds = std::chrono::duration<double>;

// A tile takes about this long: short for Ctrl-C and for balance, long beside what starting it
// costs. Less than `worth_waking` in all is done by the calling thread alone.
constexpr double tile_time = 1e-3, worth_waking = 50e-6;
constexpr ptrdiff_t widest = 64;

template <class T> struct Tiles {
    const PairTask& task;
    T* out;
    ptrdiff_t side;
    std::atomic<ptrdiff_t> failed{-1};

    ptrdiff_t across() const { return ceil_div(task.m, side); }

    ptrdiff_t count() const {
        const ptrdiff_t k = across();
        return task.symmetric ? k * (k + 1) / 2 : ceil_div(task.n, side) * k;
    }

    void run(ptrdiff_t t) {
        if (failed.load(std::memory_order_relaxed) >= 0) return;
        const ptrdiff_t k = across();
        if (!task.symmetric) return fill(t / k, t % k);
        // Rows r and k - 1 - r of the upper triangle have k + 1 tiles together.
        const ptrdiff_t r = t / (k + 1), c = t % (k + 1);
        if (c < k - r)
            fill(r, r + c);
        else
            fill(k - 1 - r, c - 1);
    }

    void fill(ptrdiff_t a, ptrdiff_t b) {
        const ptrdiff_t i0 = a * side, i1 = std::min(task.n, i0 + side);
        const ptrdiff_t j0 = b * side, j1 = std::min(task.m, j0 + side);
        for (ptrdiff_t i = i0; i < i1; ++i)
            if (!row(i, task.symmetric ? std::max(i, j0) : j0, j1)) return;
        if (!task.symmetric) return;
        for (ptrdiff_t j = j0; j < j1; ++j)
            for (ptrdiff_t i = i0; i < std::min(i1, j); ++i)
                out[j * task.m + i] = out[i * task.m + j];
    }

    bool row(ptrdiff_t i, ptrdiff_t j0, ptrdiff_t j1) {
        const ptrdiff_t done = task.f(task.X + i * task.row_size, task.Y + j0 * task.row_size,
                                      j1 - j0, task.d, out + i * task.m + j0, task.params);
        if (done == j1 - j0) return true;
        failed.store(i * task.m + j0 + done, std::memory_order_relaxed);
        return false;
    }
};

}  // namespace

template <class T>
Status pair_matrix(const PairTask& task, T* out, int n_threads, ptrdiff_t* failed) noexcept {
    Tiles<T> tiles{task, out, 1};
    // The first pairs are computed to see how long they take, and once more in their tile. One
    // before them brings code and data in.
    const ptrdiff_t sample = std::min<ptrdiff_t>(task.m, 8);
    bool fine = tiles.row(0, 0, 1);
    const auto start = std::chrono::steady_clock::now();
    fine = fine && tiles.row(0, 0, sample);
    const double pair = Seconds(std::chrono::steady_clock::now() - start).count() / sample;

    Status status = Status::ok;
    if (fine) {
        const double wanted = std::sqrt(tile_time / std::max(pair, 1e-9));
        tiles.side = std::max<ptrdiff_t>(1, std::min<ptrdiff_t>(widest, std::lround(wanted)));
        const double total = pair * task.n * task.m;
        status = parallel(tiles.count(), total < worth_waking ? 1 : n_threads,
                          [&](ptrdiff_t t, int) { tiles.run(t); });
    }
    *failed = tiles.failed.load();
    return status;
}

template Status pair_matrix(const PairTask&, float*, int, ptrdiff_t*) noexcept;
template Status pair_matrix(const PairTask&, double*, int, ptrdiff_t*) noexcept;

}  // namespace fastml
