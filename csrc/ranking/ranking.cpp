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

namespace {

template <class T> constexpr T infinity = std::numeric_limits<T>::infinity();

// Users of a task, who pass for each panel of items: in L2, and enough for a panel to come from L3.
constexpr ptrdiff_t most_users = 4 * block_unit;
// Enough that of the items after them few are better than the k-th best.
constexpr ptrdiff_t first_items = 512;

template <class T> class Ranking {
  public:
    Ranking(const Scores<T>& of, ptrdiff_t k, int n_threads) noexcept
        : of_(of), k_(k), capacity_(ceil_div(2 * k + 64, list_unit) * list_unit),
          n_threads_(n_threads) {}

    // For many users: the scores as tiles.
    Status run(std::int32_t* items, T* scores) noexcept {
        const ptrdiff_t block = std::min(most_users, Grid(of_.n_users, 16).rows);
        const ptrdiff_t panels = ceil_div(of_.n_items, shape_.cols);
        const ptrdiff_t users = aligned(block * of_.f);
        const ptrdiff_t own = users + aligned(spill_size(shape_, of_.f, block / shape_.rows));
        Scratch<T> packed(panels * shape_.cols * of_.f), bias(panels * shape_.cols);
        Scratch<T> scratch(own * n_threads_), limits(block * n_threads_);
        Lists lists(block * n_threads_, capacity_);
        if (!packed || !bias || !scratch || !limits || !lists) return Status::no_memory;
        const Status status = parallel(panels, n_threads_, [&](ptrdiff_t j, int) {
            const ptrdiff_t first = j * shape_.cols;
            pack(first, packed.get() + first * of_.f, bias.get() + first);
        });
        if (status != Status::ok) return status;
        const auto pack_block = FML_PICK(pack_users<T>);
        return parallel(ceil_div(of_.n_users, block), n_threads_, [&](ptrdiff_t b, int worker) {
            const ptrdiff_t first = b * block, n = std::min(block, of_.n_users - first);
            Shortlist<T>* mine = lists.get() + worker * block;
            T *limit = limits.get() + worker * block, *rows = scratch.get() + worker * own;
            std::fill(limit, limit + block, infinity<T>);
            for (ptrdiff_t i = 0; i < n; ++i) {
                lists.clear(worker * block + i, worker * block + i, k_, capacity_);
                limit[i] = -infinity<T>;
                skip_seen(mine[i], first + i, 0);
            }
            pack_block(of_.users + first * of_.f, n, of_.f, rows);
            for (ptrdiff_t j = 0; j < of_.n_items; j += shape_.cols)
                rank_panel_(rows, ceil_div(n, shape_.rows), packed.get() + j * of_.f, of_.f,
                            rows + users, bias.get() + j, j, limit, mine);
            for (ptrdiff_t i = 0; i < n; ++i)
                write(mine[i], items + (first + i) * k_, scores + (first + i) * k_);
        });
    }

    // For few users, each part of the items by itself, laid out when its turn comes. The first items
    // are done before all others: what is no better than the k-th best of them is on no list.
    Status run_few(std::int32_t* items, T* scores) noexcept {
        const ptrdiff_t n = of_.n_users, rows = n == 1 ? 1 : ceil_div(n, shape_.rows) * shape_.rows;
        const ptrdiff_t cols = shape_.cols;
        const ptrdiff_t part = ceil_div(ceil_div(of_.n_items, few_parts()), cols) * cols;
        const ptrdiff_t parts = ceil_div(of_.n_items, part);
        const ptrdiff_t head = parts == 1 ? 0 : std::min(part, ceil_div(first_items, cols) * cols);
        const ptrdiff_t own = few_scratch(rows);
        // One user is a matter of memory: at the pace of what is passed over.
        const double work =
            static_cast<double>(of_.n_items) * of_.f * (n == 1 ? passed_over : rows);
        const int threads = threads_for(work, n_threads_);
        Lists lists(rows * parts, capacity_);
        Scratch<T> limits(rows * parts), start(rows), users(rows * of_.f), scratch(own * threads);
        if (!lists || !limits || !start || !users || !scratch) return Status::no_memory;
        if (n > 1) FML_PICK(pack_users<T>)(of_.users, n, of_.f, users.get());
        std::fill(start.get(), start.get() + rows, infinity<T>);
        std::fill(start.get(), start.get() + n, -infinity<T>);
        const auto open = [&](ptrdiff_t p) {
            std::copy_n(start.get(), rows, limits.get() + p * rows);
            for (ptrdiff_t i = 0; i < n; ++i) {
                lists.clear(p * rows + i, i * parts + p, k_, capacity_);
                skip_seen(lists.get()[p * rows + i], i, p * part);
            }
        };
        const auto scan = [&](ptrdiff_t p, ptrdiff_t begin, ptrdiff_t end, int worker) {
            rank_part(users.get(), rows, begin, std::min(end, of_.n_items),
                      scratch.get() + worker * own, limits.get() + p * rows,
                      lists.get() + p * rows);
        };
        open(0);
        if (head) {
            scan(0, 0, head, 0);
            for (ptrdiff_t i = 0; i < n; ++i)
                if (lists.get()[i].count >= k_) limits[i] = shorten_(lists.get()[i]);
            std::copy_n(limits.get(), rows, start.get());
        }
        const Status status = parallel(parts, threads, [&](ptrdiff_t p, int worker) {
            if (p) open(p);
            scan(p, p ? p * part : head, (p + 1) * part, worker);
        });
        if (status != Status::ok) return status;
        for (ptrdiff_t i = 0; i < n; ++i) {
            Shortlist<T>& all = lists.get()[i];
            for (ptrdiff_t p = 1; p < parts; ++p) {
                const Shortlist<T>& list = lists.get()[p * rows + i];
                std::copy_n(list.scores, list.count, all.scores + all.count);
                std::copy_n(list.items, list.count, all.items + all.count);
                all.count += list.count;
            }
            write(all, items + i * k_, scores + i * k_);
        }
        return Status::ok;
    }

  private:
    // A power of 2, so that threads get as many each; lists are short work only if parts are long.
    ptrdiff_t few_parts() const {
        ptrdiff_t parts = 1;
        while (parts < 16 && parts * 2 <= of_.n_items * of_.f >> 16) parts *= 2;
        return parts;
    }

    // What rank_part needs: a panel, its biases, and what is spilled.
    ptrdiff_t few_scratch(ptrdiff_t rows) const {
        return aligned(shape_.cols * of_.f) + aligned(shape_.cols) +
               aligned(spill_size(shape_, of_.f, rows / shape_.rows));
    }

    // Items [begin, end) for all users, who are packed unless there is but one.
    void rank_part(const T* users, ptrdiff_t rows, ptrdiff_t begin, ptrdiff_t end, T* panel,
                   T* limits, Shortlist<T>* lists) const {
        if (rows == 1) {
            rank_row_(of_.users, of_.items, of_.bias, begin, end, of_.f, limits, lists);
            return;
        }
        T *bias = panel + aligned(shape_.cols * of_.f), *spill = bias + aligned(shape_.cols);
        for (ptrdiff_t j = begin; j < end; j += shape_.cols) {
            pack(j, panel, bias);
            rank_panel_(users, rows / shape_.rows, panel, of_.f, spill, bias, j, limits, lists);
        }
    }

    // Lists and what is on them: list l keeps that in a slot, those of one user next to each other.
    struct Lists {
        Scratch<T> scores;
        Scratch<std::int32_t> items;
        Scratch<Shortlist<T>> lists;
        Lists(ptrdiff_t n, ptrdiff_t capacity) noexcept
            : scores(n * capacity), items(n * capacity), lists(n) {}
        explicit operator bool() const noexcept { return scores && items && lists; }
        Shortlist<T>* get() const { return lists.get(); }
        void clear(ptrdiff_t l, ptrdiff_t slot, ptrdiff_t k, ptrdiff_t capacity) const {
            lists[l] = {scores.get() + slot * capacity,
                        items.get() + slot * capacity,
                        0,
                        k,
                        capacity,
                        nullptr,
                        nullptr};
        }
    };

    void skip_seen(Shortlist<T>& list, ptrdiff_t user, ptrdiff_t item) const {
        if (!of_.seen_begin) return;
        list.seen = of_.seen + of_.seen_begin[user];
        list.seen_end = of_.seen + of_.seen_end[user];
        if (item) list.seen = std::lower_bound(list.seen, list.seen_end, item);
    }

    // The items from `first` on as a panel, and their bias.
    void pack(ptrdiff_t first, T* panel, T* bias) const {
        const ptrdiff_t n = std::min(shape_.cols, of_.n_items - first);
        pack_(of_.items + first * of_.f, n, of_.f, panel);
        std::fill(bias, bias + shape_.cols, -infinity<T>);
        if (of_.bias)
            std::copy_n(of_.bias + first, n, bias);
        else
            std::fill_n(bias, n, T(0));
    }

    void write(Shortlist<T>& list, std::int32_t* items, T* scores) const {
        if (list.count > k_) shorten_(list);
        if (list.count <= most_counted) {
            write_(list, items, scores);
        } else {
            for (ptrdiff_t e = 0; e < list.count; ++e) items[e] = static_cast<std::int32_t>(e);
            std::sort(items, items + list.count, [&](std::int32_t a, std::int32_t b) {
                return list.scores[a] > list.scores[b] ||
                       (list.scores[a] == list.scores[b] && a < b);
            });
            for (ptrdiff_t e = 0; e < list.count; ++e) {
                scores[e] = list.scores[items[e]];
                items[e] = list.items[items[e]];
            }
        }
        std::fill(items + list.count, items + k_, -1);
        std::fill(scores + list.count, scores + k_, -infinity<T>);
    }

    const Scores<T>& of_;
    ptrdiff_t k_, capacity_;
    int n_threads_;
    TileShape shape_ = chosen_shape<T>();
    decltype(&baseline::pack_items<T>) pack_ = FML_PICK(pack_items<T>);
    decltype(&baseline::rank_panel<T>) rank_panel_ = FML_PICK(rank_panel<T>);
    decltype(&baseline::rank_row<T>) rank_row_ = FML_PICK(rank_row<T>);
    decltype(&baseline::shorten<T>) shorten_ = FML_PICK(shorten<T>);
    decltype(&baseline::write_in_order<T>) write_ = FML_PICK(write_in_order<T>);
};

}  // namespace

template <class T>
Status rank_items(const Scores<T>& of, ptrdiff_t k, std::int32_t* items, T* scores,
                  int n_threads) noexcept {
    Ranking<T> ranking(of, k, n_threads);
    return of.n_users <= most_users ? ranking.run_few(items, scores) : ranking.run(items, scores);
}

template Status rank_items(const Scores<float>&, ptrdiff_t, std::int32_t*, float*, int) noexcept;
template Status rank_items(const Scores<double>&, ptrdiff_t, std::int32_t*, double*, int) noexcept;

}  // namespace fastml
