#include "sgd_factors/sgd_factors.h"

// std headers come before any target region
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "common/blocks.h"
#include "common/isa.h"
#include "common/scratch.h"

#define FML_KERNEL "sgd_factors/sgd_factors.inl.h"
#include "common/foreach_isa.h"

namespace fastml {
namespace {

// Steele, Lea and Flood's SplitMix64: any seed will do, so that each cell can have its own.
class SplitMix {
  public:
    explicit SplitMix(std::uint64_t seed) : state_(seed) {}
    // Below n, which is below 2^32.
    std::uint64_t below(std::uint64_t n) {
        std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
        z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
        return ((z ^ (z >> 31)) >> 32) * n >> 32;
    }

  private:
    std::uint64_t state_;
};

// The ratings of one part of users into its cells, of which the first starts at out[at].
template <class T>
void deal_part(const Table<T>& table, ptrdiff_t a, ptrdiff_t at, std::uint64_t seed, Rating<T>* out,
               ptrdiff_t* begin, ptrdiff_t* next) {
    std::fill(next, next + table.parts, ptrdiff_t{0});
    for (ptrdiff_t u = table.first[a]; u < table.first[a + 1]; ++u) {
        const ptrdiff_t row = table.user_at[u];
        for (ptrdiff_t e = table.indptr[row]; e < table.indptr[row + 1]; ++e)
            ++next[table.item_part[table.indices[e]]];
    }
    for (ptrdiff_t b = 0; b < table.parts; ++b) {
        begin[a * table.parts + b] = at;
        at += std::exchange(next[b], at);
    }
    for (ptrdiff_t u = table.first[a]; u < table.first[a + 1]; ++u) {
        const ptrdiff_t row = table.user_at[u];
        for (ptrdiff_t e = table.indptr[row]; e < table.indptr[row + 1]; ++e) {
            const std::int32_t item = table.indices[e];
            out[next[table.item_part[item]]++] = {static_cast<std::int32_t>(u),
                                                  table.item_place[item], table.values[e]};
        }
    }
    for (ptrdiff_t b = 0; b < table.parts; ++b) {
        const ptrdiff_t cell = a * table.parts + b, end = next[b];
        SplitMix random(seed + static_cast<std::uint64_t>(cell));
        for (ptrdiff_t e = begin[cell], stop; e < end; e = stop) {
            const std::int32_t group = out[e].user / static_cast<std::int32_t>(table.group);
            for (stop = e; stop < end && out[stop].user / table.group == group; ++stop) {
                const auto known = static_cast<std::uint64_t>(stop - e) + 1;
                std::swap(out[stop], out[e + static_cast<ptrdiff_t>(random.below(known))]);
            }
        }
    }
}

}  // namespace

template <class T>
Status deal_ratings(const Table<T>& table, std::uint64_t seed, Rating<T>* out, ptrdiff_t* begin,
                    int n_threads) noexcept {
    const ptrdiff_t parts = table.parts;
    Scratch<ptrdiff_t> starts(parts + 1), next(parts * n_threads);
    if (!starts || !next) return Status::no_memory;
    starts[0] = 0;
    for (ptrdiff_t a = 0; a < parts; ++a) {
        ptrdiff_t size = 0;
        for (ptrdiff_t u = table.first[a]; u < table.first[a + 1]; ++u)
            size += table.indptr[table.user_at[u] + 1] - table.indptr[table.user_at[u]];
        starts[a + 1] = starts[a] + size;
    }
    begin[parts * parts] = starts[parts];
    n_threads = threads_for(static_cast<double>(starts[parts]) * passed_over, n_threads);
    return parallel(parts, n_threads, [&](ptrdiff_t a, int worker) {
        deal_part(table, a, starts[a], seed, out, begin, next.get() + worker * parts);
    });
}

template <class T>
Status descend_epoch(const Cells<T>& cells, const std::int32_t* diagonals, const Steps& steps,
                     const Factors<T>& users, const Factors<T>& items, ptrdiff_t f, ptrdiff_t ld,
                     double* error, int n_threads) noexcept {
    const ptrdiff_t parts = cells.parts;
    Scratch<double> errors(parts);
    if (!errors) return Status::no_memory;
    const auto block = FML_PICK(descend_block<T>);
    const double work = 4.0 * static_cast<double>(cells.begin[parts * parts]) * ld / parts;
    n_threads = threads_for(work, n_threads);
    *error = 0;
    for (ptrdiff_t d = 0; d < parts; ++d) {
        const Status status = parallel(parts, n_threads, [&](ptrdiff_t a, int) {
            const ptrdiff_t cell = a * parts + (a + diagonals[d]) % parts;
            const ptrdiff_t begin = cells.begin[cell];
            errors[a] = block(cells.ratings + begin, cells.begin[cell + 1] - begin, steps, users,
                              items, f, ld);
        });
        if (status != Status::ok) return status;
        for (ptrdiff_t a = 0; a < parts; ++a) *error += errors[a];
    }
    return Status::ok;
}

#define FML_INSTANTIATE(T)                                                                    \
    template Status deal_ratings(const Table<T>&, std::uint64_t, Rating<T>*, ptrdiff_t*,      \
                                 int) noexcept;                                               \
    template Status descend_epoch(const Cells<T>&, const std::int32_t*, const Steps&,         \
                                  const Factors<T>&, const Factors<T>&, ptrdiff_t, ptrdiff_t, \
                                  double*, int) noexcept;
FML_INSTANTIATE(float)
FML_INSTANTIATE(double)

}  // namespace fastml
