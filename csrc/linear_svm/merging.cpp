#include "linear_svm/merging.h"

// std headers come before any target region
#include <cmath>
#include <cstring>

#include "common/isa.h"
#include "linear_svm/deferring.h"
#include "linear_svm/part.h"
#include "linear_svm/passes.h"

#define FML_KERNEL "linear_svm/merging.inl.h"
#include "common/foreach_isa.h"

namespace fastml {
namespace {

constexpr ptrdiff_t least_rows = 1000;
// Rows of a sample, in roots of all: if all come twice, eight of a sample of four have been there.
constexpr double sample_roots = 4;
constexpr ptrdiff_t fewest_again = 6;
// Of the rows, how many may differ, or copying them is hardly worth it.
constexpr double most_distinct = 0.5;

// Odd numbers, one a column and one for targets, as good as random (Weyl's sequence, finalised).
void fill_keys(std::uint32_t* keys, ptrdiff_t count) {
    std::uint64_t state = 0;
    for (ptrdiff_t p = 0; p < count; ++p) {
        state += 0x9e3779b97f4a7c15ull;
        const std::uint64_t mixed = (state ^ state >> 31) * 0xbf58476d1ce4e5b9ull;
        keys[p] = static_cast<std::uint32_t>(mixed >> 32) | 1;
    }
}

template <class T> bool equal_rows(const Rows<T>& X, ptrdiff_t i, ptrdiff_t j) {
    const auto same = [](const auto* x, const auto* y, ptrdiff_t size) {
        return std::memcmp(x, y, static_cast<std::size_t>(size) * sizeof *x) == 0;
    };
    const ptrdiff_t size = Part<T>::entries(X, i);
    if (!X.indptr) return same(X.data + i * size, X.data + j * size, size);
    const std::int32_t at = X.indptr[i], to = X.indptr[j];
    return size == Part<T>::entries(X, j) && same(X.indices + at, X.indices + to, size) &&
           same(X.data + at, X.data + to, size);
}

// Where features are flags or categories, many rows are equal, and with equal targets have equal
// losses: one of them with the sum of the costs does for all. What is set aside as equal has been
// compared.
template <class T> class Merging final : public Deferring {
  public:
    Merging(const Rows<T>& X, const Problem& problem, const Limits& limits, Method<T> method)
        : X_(X), problem_(problem), limits_(limits), method_(method), w_(X.d + 1) {
        if (!ok()) return;
        std::fill_n(w_.get(), X.d + 1, 0.0);
        w = w_.get();
    }
    bool ok() const { return static_cast<bool>(w_); }

    Status advance(int n_threads) noexcept override {
        if (other_) return follow(n_threads);
        Scratch<std::int32_t> first(X_.n);
        Scratch<double> cost(X_.n);
        if (!first || !cost) return Status::no_memory;
        ptrdiff_t count;
        const Status status = find(first.get(), cost.get(), &count, n_threads);
        if (status != Status::ok) return status;
        if (static_cast<double>(count) > most_distinct * static_cast<double>(X_.n))
            return choose(method_(X_, problem_, limits_));
        ptrdiff_t entries = 0;
        for (ptrdiff_t k = 0; k < count; ++k) entries += Part<T>::entries(X_, first[k]);
        part_.reset(new (std::nothrow) Part<T>(X_, count, entries));
        if (!part_ || !*part_) return Status::no_memory;
        for (ptrdiff_t k = 0; k < count; ++k)
            part_->add(X_, problem_, first[k], cost[k] / problem_.C[first[k]]);
        return choose(method_(part_->rows(X_), part_->problem(problem_), limits_));
    }

  private:
    // The first one of rows that are equal, and the sum of their costs.
    Status find(std::int32_t* first, double* cost, ptrdiff_t* count, int n_threads) {
        const auto keys_of = FML_PICK(keys_block<T>);
        const ptrdiff_t n = X_.n;
        int shift = 64;
        while (ptrdiff_t{1} << (64 - shift) < 2 * n) --shift;
        const ptrdiff_t size = ptrdiff_t{1} << (64 - shift);
        Scratch<std::uint32_t> columns(X_.d + 1);
        Scratch<std::uint64_t> keys(n);
        Scratch<std::int32_t> table(size);  // the place in `first` of a key
        if (!columns || !keys || !table) return Status::no_memory;
        fill_keys(columns.get(), X_.d + 1);
        const Grid grid(n, free_blocks);
        const double work = X_.indptr ? X_.indptr[n] : static_cast<double>(n * X_.d);
        const Status status =
            parallel(grid.blocks, threads_for(work, n_threads), [&](ptrdiff_t b, int) {
                const ptrdiff_t begin = grid.begin(b);
                keys_of(X_, problem_.b, columns.get(), begin, grid.end(b), keys.get() + begin);
            });
        std::fill_n(table.get(), size, -1);
        ptrdiff_t found = 0;
        for (ptrdiff_t i = 0; i < n; ++i) {
            std::uint64_t slot = keys[i] * 0x9e3779b97f4a7c15ull >> shift;
            std::int32_t k;
            while ((k = table[slot]) >= 0 && keys[first[k]] != keys[i])
                slot = (slot + 1) & (size - 1);
            if (k >= 0 && problem_.b[first[k]] == problem_.b[i] && equal_rows(X_, first[k], i)) {
                cost[k] += problem_.C[i];
                continue;
            }
            // Others of the same key are not looked for any more: there are hardly any.
            table[slot] = static_cast<std::int32_t>(found);
            cost[found] = problem_.C[i];
            first[found++] = static_cast<std::int32_t>(i);
        }
        *count = found;
        return status;
    }

    const Rows<T> X_;
    const Problem problem_;
    const Limits limits_;
    const Method<T> method_;
    Scratch<double> w_;  // until another solver has one
    std::unique_ptr<Part<T>> part_;
};

}  // namespace

template <class T> bool may_repeat(const Rows<T>& X, const Problem& problem) {
    if (X.n < least_rows) return false;
    const auto keys_of = FML_PICK(keys_block<T>);
    const auto count = static_cast<ptrdiff_t>(sample_roots * std::sqrt(static_cast<double>(X.n)));
    Scratch<std::uint32_t> columns(X.d + 1);
    Scratch<std::uint64_t> keys(count);
    if (!columns || !keys) return false;
    fill_keys(columns.get(), X.d + 1);
    for (ptrdiff_t t = 0; t < count; ++t) {
        const ptrdiff_t i = t * X.n / count;
        keys_of(X, problem.b, columns.get(), i, i + 1, keys.get() + t);
    }
    std::sort(keys.get(), keys.get() + count);
    return count - (std::unique(keys.get(), keys.get() + count) - keys.get()) >= fewest_again;
}

template <class T>
Solver* merging(const Rows<T>& X, const Problem& problem, const Limits& limits,
                Method<T> method) noexcept {
    return checked(new (std::nothrow) Merging<T>(X, problem, limits, method));
}
#define FML_INSTANTIATE(T)                                    \
    template bool may_repeat(const Rows<T>&, const Problem&); \
    template Solver* merging(const Rows<T>&, const Problem&, const Limits&, Method<T>) noexcept;
FML_INSTANTIATE(float)
FML_INSTANTIATE(double)

}  // namespace fastml
