// Products of all pairs of items, each a sequence of `depth` values: columns of X, or its rows.
// Slices of the items lie in panels, d-major: value p of item r of a panel at p * width + r. Tiles
// take both operands from them, broadcast entries as well as lanes, so that each is packed once.

#include "common/gemm.inl.h"

// The width of a panel, divided by the height of a tile and by its width; and what divides both.
template <class P> constexpr int panel_unit =
    Simd<P>::lanes > tile_rows ? Simd<P>::lanes : tile_rows;
template <class P>
constexpr int panel_width = tile_cols<P> % panel_unit<P> == 0 ? tile_cols<P> : 2 * tile_cols<P>;

template <class P>
void panel_shape(std::ptrdiff_t* width, std::ptrdiff_t* unit, std::ptrdiff_t* depth) {
    static_assert(panel_width<P> % panel_unit<P> == 0);
    *width = panel_width<P>;
    *unit = panel_unit<P>;
    *depth = tile_depth<P>;
}

// Items lie beside one another, `stride` from one value to the next.
template <class P, class T, bool per_item>
FML_INLINE void pack_beside(const T* X, std::ptrdiff_t stride, std::ptrdiff_t items,
                            std::ptrdiff_t width, std::ptrdiff_t depth, const P* shift, P* out) {
    constexpr int lanes = Simd<P>::lanes;
    using Vec = typename Simd<P>::Vec;
    const std::ptrdiff_t full = items / lanes * lanes;
    for (std::ptrdiff_t p = 0; p < depth; ++p, X += stride, out += width) {
        std::ptrdiff_t r = 0;
        for (; r < full; r += lanes) {
            const Vec less = per_item ? load<Vec>(shift + r) : broadcast<Vec>(shift[p]);
            store(out + r, load_as<P>(X + r) - less);
        }
        for (; r < items; ++r) out[r] = X[r] - shift[per_item ? r : p];
        for (; r < width; ++r) out[r] = 0;
    }
}

// The values of an item lie beside one another, `stride` from one item to the next.
template <class P, class T, bool per_item>
FML_INLINE void pack_across(const T* X, std::ptrdiff_t stride, std::ptrdiff_t items,
                            std::ptrdiff_t width, std::ptrdiff_t depth, const P* shift, P* out) {
    constexpr int lanes = Simd<P>::lanes;
    using Vec = typename Simd<P>::Vec;
    std::ptrdiff_t r = 0;
    for (; r + lanes <= items; r += lanes) {
        std::ptrdiff_t p = 0;
        for (; p + lanes <= depth; p += lanes) {
            Vec block[lanes];
            FML_UNROLL
            for (int i = 0; i < lanes; ++i) {
                const Vec less = per_item ? broadcast<Vec>(shift[r + i]) : load<Vec>(shift + p);
                block[i] = load_as<P>(X + (r + i) * stride + p) - less;
            }
            transpose<P>(block);
            FML_UNROLL
            for (int i = 0; i < lanes; ++i) store(out + (p + i) * width + r, block[i]);
        }
        for (; p < depth; ++p)
            for (int i = 0; i < lanes; ++i)
                out[p * width + r + i] = X[(r + i) * stride + p] - shift[per_item ? r + i : p];
    }
    for (; r < width; ++r)
        for (std::ptrdiff_t p = 0; p < depth; ++p)
            out[p * width + r] = r < items ? X[r * stride + p] - shift[per_item ? r : p] : P(0);
}

// Packs one panel of `items` and adds its sums over the depth to `sums`.
template <class P, class T>
void pack_items(const T* X, std::ptrdiff_t stride, bool beside, bool per_item, std::ptrdiff_t items,
                std::ptrdiff_t width, std::ptrdiff_t depth, const P* shift, P* out, double* sums) {
    if (beside && per_item)
        pack_beside<P, T, true>(X, stride, items, width, depth, shift, out);
    else if (beside)
        pack_beside<P, T, false>(X, stride, items, width, depth, shift, out);
    else if (per_item)
        pack_across<P, T, true>(X, stride, items, width, depth, shift, out);
    else
        pack_across<P, T, false>(X, stride, items, width, depth, shift, out);
    constexpr int lanes = Simd<P>::lanes;
    using Vec = typename Simd<P>::Vec;
    for (std::ptrdiff_t r = 0; r < width; r += lanes) {
        Vec sum[4] = {};  // chains long enough to keep up with the loads
        std::ptrdiff_t p = 0;
        for (; p + 4 <= depth; p += 4) {
            FML_UNROLL
            for (int i = 0; i < 4; ++i) sum[i] = sum[i] + load<Vec>(out + (p + i) * width + r);
        }
        for (; p < depth; ++p) sum[0] = sum[0] + load<Vec>(out + p * width + r);
        const Vec all = (sum[0] + sum[1]) + (sum[2] + sum[3]);
        for (std::ptrdiff_t i = 0; i < lanes && r + i < items; ++i) sums[r + i] += all[i];
    }
}

FML_INLINE void add_lanes(double* to, const Simd<double>::Vec& v) {
    store(to, load<Simd<double>::Vec>(to) + v);
}
FML_INLINE void add_lanes(double* to, const Simd<float>::Vec& v) {
    float lane[Simd<float>::lanes];
    store(lane, v);
    FML_UNROLL
    for (int l = 0; l < Simd<float>::lanes; l += Simd<double>::lanes)
        add_lanes(to + l, widen(lane + l));
}

// Adds the products of tile_rows items and vecs * lanes others to `out` (rows `ld` apart).
template <class P, int vecs>
FML_INLINE void add_tile(const P* a, std::ptrdiff_t a_width, const P* b, std::ptrdiff_t b_width,
                         std::ptrdiff_t depth, double* out, std::ptrdiff_t ld) {
    using Vec = typename Simd<P>::Vec;
    constexpr int lanes = Simd<P>::lanes;
    Vec sum[tile_rows][vecs] = {};
    for (std::ptrdiff_t p = 0; p < depth; ++p, a += a_width, b += b_width) {
        Vec bp[vecs];
        FML_UNROLL
        for (int v = 0; v < vecs; ++v) bp[v] = load<Vec>(b + v * lanes);
        FML_UNROLL
        for (int i = 0; i < tile_rows; ++i) {
            FML_UNROLL
            for (int v = 0; v < vecs; ++v) sum[i][v] = sum[i][v] + bp[v] * a[i];
        }
    }
    FML_UNROLL
    for (int i = 0; i < tile_rows; ++i) {
        FML_UNROLL
        for (int v = 0; v < vecs; ++v) add_lanes(out + i * ld + v * lanes, sum[i][v]);
    }
}

// Adds the products of one panel, from item `first` of it, with those before it and itself, on and
// above the diagonal, to `out` (size, size). `packed` holds the panels one after the other.
template <class P>
void add_products(const P* packed, std::ptrdiff_t size, std::ptrdiff_t first, std::ptrdiff_t depth,
                  double* out) {
    constexpr int lanes = Simd<P>::lanes;
    const std::ptrdiff_t left = size - first;
    const std::ptrdiff_t width = left < panel_width<P> ? left : panel_width<P>;
    const P* own = packed + first * depth;
    for (std::ptrdiff_t c = 0; c < width; c += tile_cols<P>) {
        const std::ptrdiff_t end = c + tile_cols<P> < width ? c + tile_cols<P> : width;
        for (std::ptrdiff_t i = 0; i < first + end; i += tile_rows) {
            const std::ptrdiff_t panel = i / panel_width<P> * panel_width<P>;
            const std::ptrdiff_t a_width =
                size - panel < panel_width<P> ? size - panel : panel_width<P>;
            const P* a = packed + panel * depth + (i - panel);
            // Columns left of row i are on the other side of the diagonal.
            const std::ptrdiff_t skip = i > first + c ? (i - first - c) / lanes * lanes : 0;
            const P* b = own + c + skip;
            double* to = out + i * size + first + c + skip;
            switch ((end - c - skip) / lanes) {
                case 1:
                    add_tile<P, 1>(a, a_width, b, width, depth, to, size);
                    break;
                case 2:
                    add_tile<P, 2>(a, a_width, b, width, depth, to, size);
                    break;
                default:
                    add_tile<P, 3>(a, a_width, b, width, depth, to, size);
            }
        }
    }
}
