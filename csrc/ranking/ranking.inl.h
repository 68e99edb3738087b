#include "common/gemm.inl.h"
#include "ranking/select.inl.h"

template <class T>
FML_INLINE void consider(Shortlist<T>& list, T* limit, std::ptrdiff_t item, T score) {
    while (list.seen < list.seen_end && *list.seen < item) ++list.seen;
    if (list.seen < list.seen_end && *list.seen == item) return;
    list.scores[list.count] = score;
    list.items[list.count] = static_cast<std::int32_t>(item);
    if (++list.count == list.capacity) *limit = shorten(list);
}

// Puts the entries of a tile that are above the limit of their user on the user's list. A rows are
// users, B rows items; a score starts as the bias of its item.
template <class T> struct Above {
    using Vec = typename Simd<T>::Vec;
    static constexpr int lanes = Simd<T>::lanes;
    const T* bias;
    std::ptrdiff_t first;  // item
    T* limits;
    Shortlist<T>* lists;

    FML_INLINE void begin(std::ptrdiff_t, Tile<T>& tile) const {
        FML_UNROLL
        for (int v = 0; v < tile_vecs; ++v) {
            const Vec start = load<Vec>(bias + v * lanes);
            FML_UNROLL
            for (int i = 0; i < tile_rows; ++i) tile.at[i][v] = start;
        }
    }
    FML_INLINE void end(std::ptrdiff_t i0, const Tile<T>& tile) const {
        unsigned rows = 0;
        FML_UNROLL
        for (int i = 0; i < tile_rows; ++i) {
            Vec most = tile.at[i][0];
            FML_UNROLL
            for (int v = 1; v < tile_vecs; ++v) most = maximum<T>(tile.at[i][v], most);
            rows |= unsigned{below<T>(broadcast<Vec>(limits[i0 + i]), most) != 0} << i;
        }
        if (rows) {
            const Tile<T> seen = tile;  // in memory only if need be
            found(i0, rows, seen);
        }
    }
    void found(std::ptrdiff_t i0, unsigned rows, const Tile<T>& tile) const {
        for (; rows; rows &= rows - 1) {
            const int i = lowest_bit(rows);
            T* limit = limits + i0 + i;
            const Vec least = broadcast<Vec>(*limit);
            std::uint64_t bits = 0;
            for (int v = 0; v < tile_vecs; ++v)
                bits |= std::uint64_t{below<T>(least, tile.at[i][v])} << (v * lanes);
            for (; bits; bits &= bits - 1) {
                const int j = lowest_bit(bits);
                const T score = tile.at[i][j / lanes][j % lanes];
                // The limit may have risen since.
                if (score > *limit) consider(lists[i0 + i], limit, first + j, score);
            }
        }
    }
};

template <class T>
void pack_items(const T* rows, std::ptrdiff_t n_rows, std::ptrdiff_t f, T* panel) {
    pack_panel<T, tile_cols<T>>(rows, f, n_rows, f, nullptr, panel);
}

template <class T>
void pack_users(const T* rows, std::ptrdiff_t n_rows, std::ptrdiff_t f, T* panels) {
    for (std::ptrdiff_t i = 0; i < n_rows; i += tile_rows)
        pack_panel<T, tile_rows>(rows + i * f, f, n_rows - i < tile_rows ? n_rows - i : tile_rows,
                                 f, nullptr, panels + i * f);
}

// All packed users against one panel of items.
template <class T>
void rank_panel(const T* users, std::ptrdiff_t n_panels, const T* panel, std::ptrdiff_t f, T* spill,
                const T* bias, std::ptrdiff_t first, T* limits, Shortlist<T>* lists) {
    Above<T> above{bias, first, limits, lists};
    multiply_panel(users, n_panels, panel, f, spill, above);
}

// scores[r] = the products of one user with `lanes` items, summed across all of them at once.
template <class T>
FML_INLINE void score_items(const T* user, const T* items, std::ptrdiff_t f, T* scores) {
    using Vec = typename Simd<T>::Vec;
    constexpr int lanes = Simd<T>::lanes;
    Vec sums[lanes] = {};
    std::ptrdiff_t p = 0;
    for (; p + lanes <= f; p += lanes) {
        const Vec u = load<Vec>(user + p);
        FML_UNROLL
        for (int r = 0; r < lanes; ++r) sums[r] += load<Vec>(items + r * f + p) * u;
    }
    store(scores, sums_of<T>(sums));
    for (; p < f; ++p)
        for (int r = 0; r < lanes; ++r) scores[r] += user[p] * items[r * f + p];
}

// Items [begin, end) for one user, without panels.
template <class T>
void rank_row(const T* user, const T* items, const T* bias, std::ptrdiff_t begin,
              std::ptrdiff_t end, std::ptrdiff_t f, T* limit, Shortlist<T>* list) {
    using Vec = typename Simd<T>::Vec;
    constexpr int lanes = Simd<T>::lanes;
    T scores[lanes];
    for (std::ptrdiff_t j = begin; j < end; j += lanes) {
        const std::ptrdiff_t n = end - j < lanes ? end - j : lanes;
        if (n == lanes) {
            score_items(user, items + j * f, f, scores);
        } else {
            for (int r = 0; r < lanes; ++r) {
                scores[r] = r < n ? T(0) : -std::numeric_limits<T>::infinity();
                for (std::ptrdiff_t p = 0; r < n && p < f; ++p)
                    scores[r] += user[p] * items[(j + r) * f + p];
                if (r < n && bias) scores[r] += bias[j + r];
            }
        }
        Vec sums = load<Vec>(scores);
        if (bias && n == lanes) sums += load<Vec>(bias + j);
        store(scores, sums);
        unsigned above = below<T>(broadcast<Vec>(*limit), sums);
        for (; above; above &= above - 1) {
            const int r = lowest_bit(above);
            // The limit may have risen since.
            if (scores[r] > *limit) consider(*list, limit, j + r, scores[r]);
        }
    }
}
