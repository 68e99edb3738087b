#include "common/gemm.inl.h"

// Hands the entries of a tile that are above the limit of their user to a sink. A rows are users, B
// rows items; a score starts as the bias of its item.
template <class T> struct Above {
    using Vec = typename Simd<T>::Vec;
    static constexpr int lanes = Simd<T>::lanes;
    const T *limits, *bias;
    std::ptrdiff_t first;  // item
    RankingSink<T>* sink;

    FML_INLINE void begin(std::ptrdiff_t, Tile<T>& tile) const {
        FML_UNROLL
        for (int v = 0; v < tile_vecs; ++v) {
            const Vec start = load<Vec>(bias + v * lanes);
            FML_UNROLL
            for (int i = 0; i < tile_rows; ++i) tile.at[i][v] = start;
        }
    }
    FML_INLINE void end(std::ptrdiff_t i0, const Tile<T>& tile) const {
        unsigned any = 0;
        FML_UNROLL
        for (int i = 0; i < tile_rows; ++i) {
            Vec most = tile.at[i][0];
            FML_UNROLL
            for (int v = 1; v < tile_vecs; ++v) most = maximum<T>(tile.at[i][v], most);
            any |= below<T>(broadcast<Vec>(limits[i0 + i]), most);
        }
        if (any) {
            const Tile<T> seen = tile;  // in memory only if need be
            found(i0, seen);
        }
    }
    void found(std::ptrdiff_t i0, const Tile<T>& tile) const {
        for (int i = 0; i < tile_rows; ++i)
            for (int v = 0; v < tile_vecs; ++v) {
                unsigned bits = below<T>(broadcast<Vec>(limits[i0 + i]), tile.at[i][v]);
                for (; bits; bits &= bits - 1) {
                    const int j = v * lanes + lowest_bit(bits);
                    sink->push(sink, i0 + i, first + j, tile.at[i][v][j % lanes]);
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
                const T* limits, const T* bias, std::ptrdiff_t first, RankingSink<T>* sink) {
    Above<T> above{limits, bias, first, sink};
    multiply_panel(users, n_panels, panel, f, spill, above);
}

// out[j] = the score of item j for one user.
template <class T>
void score_block(const T* user, const T* items, const T* bias, std::ptrdiff_t n, std::ptrdiff_t f,
                 T* out) {
    for (std::ptrdiff_t j = 0; j < n; ++j, items += f) {
        T sum = 0;
#pragma omp simd reduction(+ : sum)
        for (std::ptrdiff_t p = 0; p < f; ++p) sum += user[p] * items[p];
        out[j] = bias ? sum + bias[j] : sum;
    }
}
