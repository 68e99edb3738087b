#include "ranking/ranking.h"

// std headers come before any target region
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "common/blocks.h"
#include "common/isa.h"
#include "common/scratch.h"
#include "ranking/shortlist.h"

#define FML_KERNEL "ranking/ranking.inl.h"
#include "common/foreach_isa.h"
#include "common/tiling.h"

namespace fastml {

template <class T> T shorten(Shortlist<T>& list) noexcept {
    std::nth_element(list.found, list.found + list.k - 1, list.found + list.count);
    list.count = list.k;
    return list.found[list.k - 1].score;
}

namespace {

template <class T> constexpr T infinity = std::numeric_limits<T>::infinity();

// To lay out the items for fewer users than this costs more than it brings.
constexpr ptrdiff_t few = 8;
// Users of a task, who pass for each panel of items: in L2, and enough for a panel to come from L3.
constexpr ptrdiff_t most_users = 4 * block_unit;

template <class T> class Ranking {
  public:
    Ranking(const Scores<T>& of, ptrdiff_t k, int n_threads) noexcept
        : of_(of), k_(k), capacity_(std::min(2 * k + 64, of.n_items + 1)),
          n_threads_(threads_for(static_cast<double>(of.n_users) * of.n_items * of.f, n_threads)) {}

    // For many users: the scores as tiles.
    Status run(std::int32_t* items, T* scores) noexcept {
        const ptrdiff_t block = std::min(most_users, Grid(of_.n_users, 16).rows);
        const ptrdiff_t panels = ceil_div(of_.n_items, shape_.cols);
        const ptrdiff_t users = aligned(block * of_.f);
        const ptrdiff_t own = users + aligned(spill_size(shape_, of_.f, block / shape_.rows));
        Scratch<T> packed(panels * shape_.cols * of_.f), bias(panels * shape_.cols);
        Scratch<T> scratch(own * n_threads_), limits(block * n_threads_);
        Scratch<Ranked<T>> found(block * capacity_ * n_threads_);
        Scratch<Shortlist<T>> lists(block * n_threads_);
        if (!packed || !bias || !scratch || !limits || !found || !lists) return Status::no_memory;
        const Status status = parallel(
            panels, n_threads_, [&](ptrdiff_t j, int) { pack(j, packed.get(), bias.get()); });
        if (status != Status::ok) return status;
        const auto pack_block = FML_PICK(pack_users<T>);
        const auto rank = FML_PICK(rank_panel<T>);
        return parallel(ceil_div(of_.n_users, block), n_threads_, [&](ptrdiff_t b, int worker) {
            const ptrdiff_t first = b * block, n = std::min(block, of_.n_users - first);
            Shortlist<T>* mine = lists.get() + worker * block;
            T *limit = limits.get() + worker * block, *rows = scratch.get() + worker * own;
            std::fill(limit, limit + block, infinity<T>);
            for (ptrdiff_t i = 0; i < n; ++i)
                start(first + i, 0, found.get() + (worker * block + i) * capacity_, mine[i],
                      limit[i]);
            pack_block(of_.users + first * of_.f, n, of_.f, rows);
            for (ptrdiff_t j = 0; j < of_.n_items; j += shape_.cols)
                rank(rows, ceil_div(n, shape_.rows), packed.get() + j * of_.f, of_.f, rows + users,
                     bias.get() + j, j, limit, mine);
            for (ptrdiff_t i = 0; i < n; ++i)
                write(mine[i].found, mine[i].count, items + (first + i) * k_,
                      scores + (first + i) * k_);
        });
    }

    // For few users, each part of the items by itself.
    Status run_few(std::int32_t* items, T* scores) noexcept {
        const ptrdiff_t part = std::max(block_unit, (1 << 17) / of_.f);
        const ptrdiff_t parts = ceil_div(of_.n_items, part), n_lists = of_.n_users * parts;
        Scratch<Ranked<T>> found(n_lists * capacity_);
        Scratch<Shortlist<T>> lists(n_lists);
        Scratch<T> limits(n_lists);
        if (!found || !lists || !limits) return Status::no_memory;
        const auto rank = FML_PICK(rank_row<T>);
        const Status status = parallel(n_lists, n_threads_, [&](ptrdiff_t t, int) {
            const ptrdiff_t i = t / parts, begin = t % parts * part;
            start(i, begin, found.get() + t * capacity_, lists[t], limits[t]);
            rank(of_.users + i * of_.f, of_.items, of_.bias, begin,
                 std::min(begin + part, of_.n_items), of_.f, limits.get() + t, lists.get() + t);
        });
        if (status != Status::ok) return status;
        for (ptrdiff_t i = 0; i < of_.n_users; ++i) {
            Ranked<T>* all = found.get() + i * parts * capacity_;
            ptrdiff_t count = 0;
            for (ptrdiff_t p = 0; p < parts; ++p) {
                const Shortlist<T>& list = lists[i * parts + p];
                std::copy_n(list.found, list.count, all + count);
                count += list.count;
            }
            write(all, count, items + i * k_, scores + i * k_);
        }
        return Status::ok;
    }

  private:
    void start(ptrdiff_t user, ptrdiff_t item, Ranked<T>* found, Shortlist<T>& list,
               T& limit) const {
        list = {found, 0, k_, capacity_, nullptr, nullptr};
        limit = -infinity<T>;
        if (!of_.seen_indptr) return;
        list.seen = of_.seen + of_.seen_indptr[user];
        list.seen_end = of_.seen + of_.seen_indptr[user + 1];
        if (item) list.seen = std::lower_bound(list.seen, list.seen_end, item);
    }

    void pack(ptrdiff_t j, T* packed, T* bias) const {
        const ptrdiff_t first = j * shape_.cols, n = std::min(shape_.cols, of_.n_items - first);
        pack_(of_.items + first * of_.f, n, of_.f, packed + first * of_.f);
        std::fill(bias + first, bias + first + shape_.cols, -infinity<T>);
        if (of_.bias)
            std::copy_n(of_.bias + first, n, bias + first);
        else
            std::fill_n(bias + first, n, T(0));
    }

    void write(Ranked<T>* found, ptrdiff_t count, std::int32_t* items, T* scores) const {
        const ptrdiff_t n = std::min(k_, count);
        std::partial_sort(found, found + n, found + count);
        for (ptrdiff_t e = 0; e < k_; ++e) {
            items[e] = e < n ? found[e].item : -1;
            scores[e] = e < n ? found[e].score : -infinity<T>;
        }
    }

    const Scores<T>& of_;
    ptrdiff_t k_, capacity_;
    int n_threads_;
    TileShape shape_ = chosen_shape<T>();
    decltype(&baseline::pack_items<T>) pack_ = FML_PICK(pack_items<T>);
};

}  // namespace

template <class T>
Status rank_items(const Scores<T>& of, ptrdiff_t k, std::int32_t* items, T* scores,
                  int n_threads) noexcept {
    Ranking<T> ranking(of, k, n_threads);
    return of.n_users < few ? ranking.run_few(items, scores) : ranking.run(items, scores);
}

template Status rank_items(const Scores<float>&, ptrdiff_t, std::int32_t*, float*, int) noexcept;
template Status rank_items(const Scores<double>&, ptrdiff_t, std::int32_t*, double*, int) noexcept;

}  // namespace fastml
