#include "kmeans/lloyd.h"

// std headers come before any target region
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "common/blocks.h"
#include "common/isa.h"
#include "kmeans/kmeans.h"

#define FML_KERNEL "kmeans/bounds.inl.h"
#include "common/foreach_isa.h"
#include "common/tiling.h"

namespace fastml {
namespace {

// One step, from the centers of the last one to these.
template <class T> class Step {
  public:
    Step(const Rows<T>& X, const T* w, const T* centers, ptrdiff_t k, Memory<T>& memory,
         std::int32_t* labels, int n_threads)
        : X_(X), w_(w), centers_(centers), k_(k), memory_(memory), labels_(labels),
          n_threads_(n_threads) {}

    Status label();
    Status list_changes(ptrdiff_t* changed);
    Status add(ptrdiff_t changed, double* sums, double* weights);

  private:
    struct Plan {
        ptrdiff_t movers;  // how many centers are looked at by every row
        double cost;       // relative to all rows against all centers
        double open;       // the share of rows to be looked at again
    };
    // The arrays of a Drift, and the centers by how far they moved.
    struct Moves {
        Scratch<float> moved, apart;
        Scratch<std::int32_t> order, rank;
        explicit Moves(ptrdiff_t k) : moved(k), apart(k), order(k), rank(k) {}
        explicit operator bool() const { return moved && apart && order && rank; }
    };

    // Cycles, roughly, that a row takes against some centers; if it is kept, in order.
    double full_cost(ptrdiff_t centers, bool kept = false) const {
        const double lanes = chosen_shape<float>().cols / 3.0;
        return (kept ? 0.2 : 1.2) * X_.d + centers * (0.5 * X_.d + 8) / (2 * lanes);
    }
    Status label_all();
    Status label_open(bool* done);
    Status find_moves(Moves& moves) const;
    Plan plan(const Moves& moves) const;
    float rest(const Moves& moves, ptrdiff_t movers) const {
        return movers < k_ ? moves.moved[moves.order[movers]] : 0.0f;
    }
    Status reach_movers(const Moves& moves, ptrdiff_t movers, float* near) const;
    Status list_open(const Drift& drift, double open, ptrdiff_t* n_open);
    Status add_moved(ptrdiff_t changed, bool* accurate);

    const Rows<T>& X_;
    const T *w_, *centers_;
    const ptrdiff_t k_;
    Memory<T>& memory_;
    std::int32_t* labels_;
    const int n_threads_;
};

template <class T> Status Step<T>::label() {
    bool done = false;
    Status status = memory_.bounded ? label_open(&done) : Status::ok;
    if (status == Status::ok && !done) status = label_all();
    if (status == Status::ok) std::memcpy(memory_.centers, centers_, k_ * X_.d * sizeof(T));
    return status;
}

template <class T> Status Step<T>::label_all() {
    constexpr double worth = 60;  // below it takes no longer to label a row than to see to bounds
    const bool with_bounds = memory_.wanted && memory_.wait == 0 && full_cost(k_) > worth &&
                             in_range(margin_of(centers_, k_, X_.d).reach);
    memory_.wait -= memory_.wait > 0;
    memory_.bounded = false;  // should it be interrupted
    ptrdiff_t changed = 0;
    const Status status =
        label_rows(X_, nullptr, X_.n, centers_, k_, with_bounds ? memory_.bounds : Bounds{},
                   labels_, memory_.work, &memory_.kept, &changed, n_threads_);
    memory_.bounded = status == Status::ok && with_bounds;
    return status;
}

// *done: unless bounds would not pay.
template <class T> Status Step<T>::label_open(bool* done) {
    constexpr double pays = 0.8;
    Moves moves(k_);
    if (!moves) return Status::no_memory;
    memory_.bounded = false;
    Status status = find_moves(moves);
    if (status != Status::ok) return status;
    const Plan best = plan(moves);
    *done = best.cost < pays && in_range(margin_of(centers_, k_, X_.d).reach);
    if (!*done) {
        memory_.wait = memory_.patience;
        memory_.patience = std::min(2 * memory_.patience + 1, 15);
        return status;
    }
    memory_.patience = 0;
    Scratch<float> near(best.movers ? X_.n : 0);
    if (!near) return Status::no_memory;
    if (best.movers) status = reach_movers(moves, best.movers, near.get());
    if (status != Status::ok) return status;
    const Margin<T> margin = margin_of(centers_, k_, X_.d);
    const double gamma = 1.01 * margin.gamma, reach = margin.reach;
    const Drift drift{moves.moved.get(),
                      moves.apart.get(),
                      best.movers ? near.get() : nullptr,
                      rest(moves, best.movers),
                      static_cast<float>(2 * gamma * reach),
                      static_cast<float>(4 * gamma * reach * reach)};
    ptrdiff_t n_open = 0, changed = 0;
    status = list_open(drift, best.open, &n_open);
    if (status == Status::ok && n_open)
        status = label_rows(X_, memory_.work, n_open, centers_, k_, memory_.bounds, labels_,
                            memory_.work, nullptr, &changed, n_threads_);
    memory_.bounded = status == Status::ok;
    return status;
}

template <class T> Status Step<T>::find_moves(Moves& moves) const {
    for (ptrdiff_t j = 0; j < k_; ++j) {
        double sqdist = 0;
        for (ptrdiff_t p = 0; p < X_.d; ++p) {
            const double t =
                static_cast<double>(centers_[j * X_.d + p]) - memory_.centers[j * X_.d + p];
            sqdist += t * t;
        }
        moves.moved[j] = static_cast<float>(std::sqrt(sqdist) * (1 + 1e-6));
        moves.apart[j] = 0;
        moves.order[j] = static_cast<std::int32_t>(j);
    }
    const float* moved = moves.moved.get();
    std::stable_sort(moves.order.get(), moves.order.get() + k_,
                     [=](std::int32_t a, std::int32_t b) { return moved[a] > moved[b]; });
    for (ptrdiff_t r = 0; r < k_; ++r) moves.rank[moves.order[r]] = static_cast<std::int32_t>(r);
    if (k_ * 64 > X_.n) return Status::ok;
    // The second nearest center of a center is the nearest other.
    Scratch<float> own(k_);
    Scratch<std::int32_t> labels(k_), work(k_);
    if (!own || !labels || !work) return Status::no_memory;
    for (ptrdiff_t j = 0; j < k_; ++j) labels[j] = 0;
    const Rows<T> rows{centers_, nullptr, nullptr, k_, X_.d, nullptr};
    ptrdiff_t changed = 0;
    return label_rows(rows, nullptr, k_, centers_, k_, Bounds{own.get(), moves.apart.get()},
                      labels.get(), work.get(), nullptr, &changed, n_threads_);
}

// The cheapest number of movers, by how many rows of a sample would stay open.
template <class T> typename Step<T>::Plan Step<T>::plan(const Moves& moves) const {
    constexpr ptrdiff_t sampled = 1024;
    // Cycles, roughly, as measured: to drift a row's bounds, to look at it again, to gather it.
    const double drift = 10, look = 25 + 0.25 * X_.d, gather = 20 + 0.25 * full_cost(k_);
    const ptrdiff_t stride = ceil_div(X_.n, sampled);
    Plan best{0, std::numeric_limits<double>::infinity(), 1};
    for (ptrdiff_t m = 0; 2 * m <= k_; m = m ? 2 * m : 8) {
        const float most = rest(moves, m);
        double open = 0, rows = 0;
        for (ptrdiff_t i = 0; i < X_.n; i += stride, ++rows) {
            const std::int32_t a = labels_[i];
            const float u = memory_.bounds.upper[i] + moves.moved[a];
            const float l = std::max(memory_.bounds.lower[i] - most, moves.apart[a] - u);
            open += moves.rank[a] < m || !(u < l);
        }
        open /= rows;
        const double doubtful = open * (1 - memory_.settled);
        const double cost = drift + (m ? full_cost(m, memory_.kept.filled) : 0) + open * look +
                            doubtful * (full_cost(k_) + gather);
        if (cost < best.cost) best = {m, cost, open};
    }
    best.cost /= full_cost(k_, memory_.kept.filled);
    return best;
}

template <class T>
Status Step<T>::reach_movers(const Moves& moves, ptrdiff_t movers, float* near) const {
    Scratch<T> chosen(movers * X_.d);
    if (!chosen) return Status::no_memory;
    for (ptrdiff_t m = 0; m < movers; ++m)
        std::memcpy(chosen.get() + m * X_.d, centers_ + moves.order[m] * X_.d, X_.d * sizeof(T));
    return reach_rows(X_, chosen.get(), movers, memory_.kept, near, n_threads_);
}

// Rows whose label is in doubt, in memory_.work.
template <class T> Status Step<T>::list_open(const Drift& drift, double open, ptrdiff_t* n_open) {
    const Grid grid(X_.n, summed_blocks);  // few: each has to wait for its first rows to arrive
    Scratch<ptrdiff_t> first(grid.blocks), left(grid.blocks);
    if (!first || !left) return Status::no_memory;
    const auto test = FML_PICK(drift_block<T>);
    const auto tighten = FML_PICK(tighten_block<T>);
    const T gamma = margin_of(centers_, k_, X_.d).gamma;
    const double work = passed_over * X_.n * (1 + open * X_.d);
    const Status status =
        parallel(grid.blocks, threads_for(work, n_threads_), [&](ptrdiff_t b, int) {
            std::int32_t* open = memory_.work + grid.begin(b);
            first[b] = test(grid.begin(b), grid.end(b), labels_, drift, memory_.bounds, open);
            left[b] = tighten(X_, centers_, labels_, drift, gamma, memory_.bounds, open, first[b]);
        });
    if (status != Status::ok) return status;
    ptrdiff_t doubted = 0;
    for (ptrdiff_t b = 0; b < grid.blocks; ++b) {
        std::memmove(memory_.work + *n_open, memory_.work + grid.begin(b),
                     left[b] * sizeof(std::int32_t));
        *n_open += left[b];
        doubted += first[b];
    }
    if (doubted) memory_.settled = 1 - static_cast<double>(*n_open) / doubted;
    return status;
}

// Rows whose label changed, in memory_.work.
template <class T> Status Step<T>::list_changes(ptrdiff_t* changed) {
    const Grid grid(X_.n, free_blocks);
    Scratch<ptrdiff_t> found(grid.blocks);
    if (!found) return Status::no_memory;
    const auto compare = FML_PICK(changes_block);
    const Status status = parallel(
        grid.blocks, threads_for(passed_over * X_.n / 8, n_threads_), [&](ptrdiff_t b, int) {
            found[b] = compare(grid.begin(b), grid.end(b), labels_, memory_.before,
                               memory_.work + grid.begin(b));
        });
    if (status != Status::ok) return status;
    *changed = 0;
    for (ptrdiff_t b = 0; b < grid.blocks; ++b) {
        std::memmove(memory_.work + *changed, memory_.work + grid.begin(b),
                     found[b] * sizeof(std::int32_t));
        *changed += found[b];
    }
    memory_.wanted = *changed <= X_.n / 4;
    return status;
}

// The sums, from the rows that changed their label, unless too much has changed since they were
// last added up in full. Full sums bound what rounding adds up to.
template <class T> Status Step<T>::add(ptrdiff_t changed, double* sums, double* weights) {
    constexpr int oldest = 16;
    // Few sums are added up in full by all threads, many are sorted first, as changes are.
    const ptrdiff_t share = k_ * X_.d <= fused_sums ? 32 : 4;
    bool accurate = ++memory_.age < oldest && changed <= X_.n / share;
    Status status = accurate ? add_moved(changed, &accurate) : Status::ok;
    if (status != Status::ok) return status;
    for (ptrdiff_t c = 0; c < changed; ++c) {
        const std::int32_t i = memory_.work[c];
        memory_.before[i] = labels_[i];
    }
    if (!accurate) {
        status = sum_by_label(X_, w_, labels_, k_, memory_.sums, memory_.weights, n_threads_);
        memory_.age = status == Status::ok ? 0 : oldest;
    }
    std::memcpy(sums, memory_.sums, k_ * X_.d * sizeof(double));
    std::memcpy(weights, memory_.weights, k_ * sizeof(double));
    return status;
}

// *accurate: unless a cluster is left with so little of what it had that rounding might show.
template <class T> Status Step<T>::add_moved(ptrdiff_t changed, bool* accurate) {
    constexpr double least = 1e-3;
    Scratch<ptrdiff_t> start(k_ + 1);
    Scratch<std::int32_t> rows(2 * changed);
    Scratch<double> gone(k_);
    if (!start || !rows || !gone) return Status::no_memory;
    std::memset(start.get(), 0, (k_ + 1) * sizeof(ptrdiff_t));
    std::memset(gone.get(), 0, k_ * sizeof(double));
    for (ptrdiff_t c = 0; c < changed; ++c) {
        const std::int32_t i = memory_.work[c], from = memory_.before[i], to = labels_[i];
        const double weight = w_ ? w_[i] : 1;
        ++start[from];
        ++start[to];
        gone[from] += std::fabs(weight);
        memory_.weights[from] -= weight;
        memory_.weights[to] += weight;
    }
    for (ptrdiff_t j = 0, sum = 0; j <= k_; ++j) {
        const ptrdiff_t count = j < k_ ? start[j] : 0;
        start[j] = sum;
        sum += count;
    }
    for (ptrdiff_t c = 0; c < changed; ++c) {
        const std::int32_t i = memory_.work[c];
        rows[start[memory_.before[i]]++] = ~i;
        rows[start[labels_[i]]++] = i;
    }
    for (ptrdiff_t j = 0; j < k_; ++j)
        *accurate = *accurate && (gone[j] == 0 || memory_.weights[j] > least * gone[j]);
    if (!*accurate) return Status::ok;
    const auto run = FML_PICK(sum_moved<T>);
    constexpr ptrdiff_t strip = 256;  // columns of a task: short enough for Ctrl-C
    const ptrdiff_t strips = ceil_div(X_.d, strip);
    const double work = passed_over * 2.0 * changed * X_.d;
    return parallel(k_ * strips, threads_for(work, n_threads_), [&](ptrdiff_t t, int) {
        const ptrdiff_t j = t / strips, p0 = t % strips * strip;
        const ptrdiff_t first = j ? start[j - 1] : 0;
        run(X_, w_, rows.get() + first, start[j] - first, p0, std::min(p0 + strip, X_.d),
            memory_.sums + j * X_.d);
    });
}

}  // namespace

template <class T>
Status lloyd_step(const Rows<T>& X, const T* w, const T* centers, ptrdiff_t k, Memory<T>& memory,
                  std::int32_t* labels, ptrdiff_t* changed, double* sums, double* weights,
                  int n_threads) noexcept {
    Step<T> step(X, w, centers, k, memory, labels, n_threads);
    Status status = step.label();
    if (status == Status::ok) status = step.list_changes(changed);
    if (status == Status::ok && sums) status = step.add(*changed, sums, weights);
    return status;
}

#define FML_INSTANTIATE(T)                                                                \
    template Status lloyd_step(const Rows<T>&, const T*, const T*, ptrdiff_t, Memory<T>&, \
                               std::int32_t*, ptrdiff_t*, double*, double*, int) noexcept;
FML_INSTANTIATE(float)
FML_INSTANTIATE(double)

}  // namespace fastml
