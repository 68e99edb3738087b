// One sweep over the coordinates of rows of W, which do not know of one another: lanes are rows, and the
// order of their coordinates is the only one there is.
#include "nmf/narrow.inl.h"

constexpr int tile_vecs = 4;                         // of rows at a time
constexpr int at_once = FML_TILE_ROWS == 8 ? 4 : 2;  // coordinates, in registers

// `count` coordinates from place s of the order: what they have before the first of them moves, from one
// reading of w, and then what each one's move makes of the later ones.
template <class T, int vecs, int count>
FML_INLINE void sweep_coordinates(const Sweep<T>& how, std::ptrdiff_t s, std::ptrdiff_t k,
                                  std::ptrdiff_t ldg, const T* p, std::ptrdiff_t ldp, T* w,
                                  std::ptrdiff_t ldw, typename Simd<T>::Vec& violation) {
    using Vec = typename Simd<T>::Vec;
    constexpr int lanes = Simd<T>::lanes;
    const Vec zero = broadcast<Vec>(T(0)), l1 = broadcast<Vec>(how.l1);
    const std::ptrdiff_t* order = how.order + s;
    const T* g[count];
    Vec grad[count][vecs];
    FML_UNROLL
    for (int a = 0; a < count; ++a) {
        g[a] = how.G + order[a] * ldg;
        FML_UNROLL
        for (int v = 0; v < vecs; ++v) grad[a][v] = l1 - load<Vec>(p + order[a] * ldp + v * lanes);
    }
    for (std::ptrdiff_t r = 0; r < k; ++r) {
        Vec wr[vecs];
        FML_UNROLL
        for (int v = 0; v < vecs; ++v) {
            wr[v] = load<Vec>(w + r * ldw + v * lanes);
            in_register(wr[v]);
        }
        FML_UNROLL
        for (int a = 0; a < count; ++a) {
            const Vec gr = broadcast<Vec>(g[a][r]);
            FML_UNROLL
            for (int v = 0; v < vecs; ++v) grad[a][v] += gr * wr[v];
        }
    }
    FML_UNROLL
    for (int a = 0; a < count; ++a) {
        const T hess = g[a][order[a]], inverse = 1 / hess;
        const bool exact = inverse > std::numeric_limits<T>::max();  // of the smallest numbers
        T* at = w + order[a] * ldw;
        FML_UNROLL
        for (int v = 0; v < vecs; ++v) {
            const Vec wt = load<Vec>(at + v * lanes);
            const Vec down = select(grad[a][v] < zero, grad[a][v], zero);
            violation += absolute<T>(select(zero >= wt, down, grad[a][v]));
            if (hess == 0) continue;
            const Vec next = wt - (exact ? grad[a][v] / hess : grad[a][v] * inverse);
            const Vec kept = select(next < zero, zero, next);
            store(at + v * lanes, kept);
            const Vec move = kept - wt;
            FML_UNROLL
            for (int b = a + 1; b < count; ++b) grad[b][v] += move * g[b][order[a]];
        }
    }
}

// All coordinates once of vecs vectors of rows, of which `p` (k, ldp) are the products and w (k, ldw)
// the values; returns the sum of the projected gradients that they had.
template <class T, int vecs>
double sweep_tile(const Sweep<T>& how, std::ptrdiff_t k, std::ptrdiff_t ldg, const T* p,
                  std::ptrdiff_t ldp, T* w, std::ptrdiff_t ldw) {
    using Vec = typename Simd<T>::Vec;
    Vec violation = broadcast<Vec>(T(0));
    std::ptrdiff_t s = 0;
    for (; s + at_once <= k; s += at_once)
        sweep_coordinates<T, vecs, at_once>(how, s, k, ldg, p, ldp, w, ldw, violation);
    for (; s < k; ++s) sweep_coordinates<T, vecs, 1>(how, s, k, ldg, p, ldp, w, ldw, violation);
    T each[Simd<T>::lanes];
    store(each, violation);
    double sum = 0;
    for (int l = 0; l < Simd<T>::lanes; ++l) sum += each[l];
    return sum;
}

// how.sweeps of them: until one finds a tenth of what the first did.
template <class T, int vecs>
FML_INLINE double sweeps_of(const Sweep<T>& how, std::ptrdiff_t k, std::ptrdiff_t ldg, const T* p,
                            std::ptrdiff_t ldp, T* w, std::ptrdiff_t ldw) {
    const double first = sweep_tile<T, vecs>(how, k, ldg, p, ldp, w, ldw);
    for (int more = 1; more < how.sweeps; ++more)
        if (sweep_tile<T, vecs>(how, k, ldg, p, ldp, w, ldw) <= first / 10) break;
    return first;
}

// Of m rows, and zeros up to a whole vector.
template <class T>
double sweep_flat(const Sweep<T>& how, std::ptrdiff_t k, std::ptrdiff_t ldg, const T* p,
                  std::ptrdiff_t ldp, T* w, std::ptrdiff_t ldw, std::ptrdiff_t m) {
    constexpr std::ptrdiff_t lanes = Simd<T>::lanes;
    double violation = 0;
    for (std::ptrdiff_t r = 0; r < m;) {
        const std::ptrdiff_t left = m - r;
        if (left > (tile_vecs - 1) * lanes) {
            violation += sweeps_of<T, tile_vecs>(how, k, ldg, p + r, ldp, w + r, ldw);
            r += tile_vecs * lanes;
        } else if (left > lanes) {
            violation += sweeps_of<T, 2>(how, k, ldg, p + r, ldp, w + r, ldw);
            r += 2 * lanes;
        } else {
            violation += sweeps_of<T, 1>(how, k, ldg, p + r, ldp, w + r, ldw);
            r += lanes;
        }
    }
    return violation;
}
