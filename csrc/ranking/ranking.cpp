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

namespace fastml {

// Takes a user of the block, an item and its score; for the body, which may not hold closures.
template <class T> struct RankingSink {
    void (*push)(RankingSink*, std::ptrdiff_t, std::ptrdiff_t, T);
};

}  // namespace fastml

#define FML_KERNEL "ranking/ranking.inl.h"
#include "common/foreach_isa.h"
#include "common/tiling.h"

namespace fastml {
namespace {

template <class T> struct Ranked {
    T score;
    std::int32_t item;
    bool operator<(const Ranked& other) const {
        return score > other.score || (score == other.score && item < other.item);
    }
};

// The best so far of a block of users: up to `capacity` each, of which k stay when it is full.
template <class T> class Shortlist : public RankingSink<T> {
  public:
    Shortlist(const Scores<T>& of, ptrdiff_t k, ptrdiff_t capacity, ptrdiff_t first, ptrdiff_t n,
              Ranked<T>* found, ptrdiff_t* counts, T* limits, ptrdiff_t padded) noexcept
        : RankingSink<T>{&Shortlist::take}, of_(of), k_(k), capacity_(capacity), first_(first),
          found_(found), counts_(counts), limits_(limits) {
        constexpr T infinity = std::numeric_limits<T>::infinity();
        for (ptrdiff_t i = 0; i < padded; ++i) limits[i] = i < n ? -infinity : infinity;
        std::fill(counts, counts + n, ptrdiff_t{0});
    }

    // Items come in ascending order: one that equals the k-th best so far is behind it.
    void add(ptrdiff_t i, ptrdiff_t item, T score) {
        if (!(score > limits_[i]) || seen(i, static_cast<std::int32_t>(item))) return;
        Ranked<T>* found = found_ + i * capacity_;
        found[counts_[i]++] = {score, static_cast<std::int32_t>(item)};
        if (counts_[i] < capacity_) return;
        std::nth_element(found, found + k_ - 1, found + capacity_);
        counts_[i] = k_;
        limits_[i] = found[k_ - 1].score;
    }
    T limit(ptrdiff_t i) const { return limits_[i]; }

    void write(ptrdiff_t i, std::int32_t* items, T* scores) {
        Ranked<T>* found = found_ + i * capacity_;
        const ptrdiff_t n = std::min(k_, counts_[i]);
        std::partial_sort(found, found + n, found + counts_[i]);
        for (ptrdiff_t e = 0; e < k_; ++e) {
            items[e] = e < n ? found[e].item : -1;
            scores[e] = e < n ? found[e].score : -std::numeric_limits<T>::infinity();
        }
    }

  private:
    static void take(RankingSink<T>* sink, ptrdiff_t i, ptrdiff_t item, T score) {
        static_cast<Shortlist*>(sink)->add(i, item, score);
    }
    bool seen(ptrdiff_t i, std::int32_t item) const {
        if (!of_.seen_indptr) return false;
        const ptrdiff_t* range = of_.seen_indptr + first_ + i;
        return std::binary_search(of_.seen + range[0], of_.seen + range[1], item);
    }

    const Scores<T>& of_;
    ptrdiff_t k_, capacity_, first_;
    Ranked<T>* found_;
    ptrdiff_t* counts_;
    T* limits_;
};

// To lay out the items for fewer users than this costs more than it brings.
constexpr ptrdiff_t few = 8;
// Users of a task, who pass for each panel of items: in L2, and enough for a panel to come from L3.
constexpr ptrdiff_t most_users = 4 * block_unit;

template <class T> class Ranking {
  public:
    Ranking(const Scores<T>& of, ptrdiff_t k, int n_threads) noexcept
        : of_(of), k_(k), capacity_(std::min(2 * k + 64, of.n_items + 1)),
          block_(of.n_users < few ? 1 : std::min(most_users, Grid(of.n_users, 16).rows)),
          n_threads_(threads_for(static_cast<double>(of.n_users) * of.n_items * of.f, n_threads)) {}

    Status run(std::int32_t* items, T* scores) noexcept {
        const ptrdiff_t panels = of_.n_users < few ? 0 : ceil_div(of_.n_items, shape_.cols);
        spill_ = spill_size(shape_, of_.f, block_ / shape_.rows);
        const ptrdiff_t own = aligned(block_ * of_.f + spill_ + step);
        Scratch<T> packed(panels * shape_.cols * of_.f), bias(panels * shape_.cols);
        Scratch<T> scratch(own * n_threads_), limits(block_ * n_threads_);
        Scratch<Ranked<T>> found(block_ * capacity_ * n_threads_);
        Scratch<ptrdiff_t> counts(block_ * n_threads_);
        if (!packed || !bias || !scratch || !limits || !found || !counts) return Status::no_memory;
        packed_ = packed.get();
        bias_ = bias.get();
        const Status status = parallel(panels, n_threads_, [&](ptrdiff_t j, int) { pack(j); });
        if (status != Status::ok) return status;
        return parallel(ceil_div(of_.n_users, block_), n_threads_, [&](ptrdiff_t b, int worker) {
            const ptrdiff_t first = b * block_, n = std::min(block_, of_.n_users - first);
            Shortlist<T> list(
                of_, k_, capacity_, first, n, found.get() + worker * block_ * capacity_,
                counts.get() + worker * block_, limits.get() + worker * block_, block_);
            T* own_scratch = scratch.get() + worker * own;
            if (panels)
                rank_tiles(first, n, own_scratch, limits.get() + worker * block_, list);
            else
                rank_rows(first, own_scratch, list);
            for (ptrdiff_t i = 0; i < n; ++i)
                list.write(i, items + (first + i) * k_, scores + (first + i) * k_);
        });
    }

  private:
    static constexpr ptrdiff_t step = 256;  // items at a time, without panels

    void pack(ptrdiff_t j) const {
        const ptrdiff_t first = j * shape_.cols, n = std::min(shape_.cols, of_.n_items - first);
        pack_items_(of_.items + first * of_.f, n, of_.f, packed_ + first * of_.f);
        for (ptrdiff_t r = 0; r < shape_.cols; ++r)
            bias_[first + r] = r >= n     ? -std::numeric_limits<T>::infinity()
                               : of_.bias ? of_.bias[first + r]
                                          : T(0);
    }

    void rank_tiles(ptrdiff_t first, ptrdiff_t n, T* users, const T* limits,
                    Shortlist<T>& list) const {
        pack_users_(of_.users + first * of_.f, n, of_.f, users);
        T* spill = users + block_ * of_.f;
        for (ptrdiff_t j = 0; j < of_.n_items; j += shape_.cols)
            rank_panel_(users, ceil_div(n, shape_.rows), packed_ + j * of_.f, of_.f, spill, limits,
                        bias_ + j, j, &list);
    }

    void rank_rows(ptrdiff_t first, T* scores, Shortlist<T>& list) const {
        for (ptrdiff_t j = 0; j < of_.n_items; j += step) {
            const ptrdiff_t n = std::min(step, of_.n_items - j);
            score_(of_.users + first * of_.f, of_.items + j * of_.f,
                   of_.bias ? of_.bias + j : nullptr, n, of_.f, scores);
            for (ptrdiff_t e = 0; e < n; ++e)
                if (scores[e] > list.limit(0)) list.add(0, j + e, scores[e]);
        }
    }

    const Scores<T>& of_;
    ptrdiff_t k_, capacity_, block_;
    int n_threads_;
    TileShape shape_ = chosen_shape<T>();
    ptrdiff_t spill_ = 0;
    T *packed_ = nullptr, *bias_ = nullptr;
    decltype(&baseline::pack_items<T>) pack_items_ = FML_PICK(pack_items<T>);
    decltype(&baseline::pack_users<T>) pack_users_ = FML_PICK(pack_users<T>);
    decltype(&baseline::rank_panel<T>) rank_panel_ = FML_PICK(rank_panel<T>);
    decltype(&baseline::score_block<T>) score_ = FML_PICK(score_block<T>);
};

}  // namespace

template <class T>
Status rank_items(const Scores<T>& of, ptrdiff_t k, std::int32_t* items, T* scores,
                  int n_threads) noexcept {
    return Ranking<T>(of, k, n_threads).run(items, scores);
}

template Status rank_items(const Scores<float>&, ptrdiff_t, std::int32_t*, float*, int) noexcept;
template Status rank_items(const Scores<double>&, ptrdiff_t, std::int32_t*, double*, int) noexcept;

}  // namespace fastml
