// Coordinate descent for rows of W in |X - W·H|² with H fixed: rows do not know of one another, so
// that a lane takes a row, and the order of its coordinates is the only one there is.
#include "nmf/products.inl.h"

constexpr int widest = 8;  // vectors of rows at a time: enough to hide an addition's latency
template <class T> constexpr std::ptrdiff_t flipped_rows = widest * Simd<T>::lanes;

// Of m <= vecs * lanes rows, column c of vector v goes to tile[c, v]; missing rows are zero.
template <class T, int vecs>
FML_INLINE void flip_in(const T* rows, std::ptrdiff_t m, std::ptrdiff_t ld, T* tile) {
    using Vec = typename Simd<T>::Vec;
    constexpr int lanes = Simd<T>::lanes;
    for (std::ptrdiff_t v = 0; v < vecs; ++v) {
        for (std::ptrdiff_t c = 0; c < ld; c += lanes) {
            Vec block[lanes];
            for (int i = 0; i < lanes; ++i) {
                const std::ptrdiff_t row = v * lanes + i;
                block[i] = row < m ? load<Vec>(rows + row * ld + c) : broadcast<Vec>(T(0));
            }
            transpose<T>(block);
            for (int i = 0; i < lanes; ++i) store(tile + ((c + i) * vecs + v) * lanes, block[i]);
        }
    }
}
template <class T, int vecs>
FML_INLINE void flip_out(const T* tile, std::ptrdiff_t m, std::ptrdiff_t ld, T* rows) {
    using Vec = typename Simd<T>::Vec;
    constexpr int lanes = Simd<T>::lanes;
    for (std::ptrdiff_t v = 0; v < vecs; ++v) {
        for (std::ptrdiff_t c = 0; c < ld; c += lanes) {
            Vec block[lanes];
            for (int i = 0; i < lanes; ++i)
                block[i] = load<Vec>(tile + ((c + i) * vecs + v) * lanes);
            transpose<T>(block);
            for (int i = 0; i < lanes && v * lanes + i < m; ++i)
                store(rows + (v * lanes + i) * ld + c, block[i]);
        }
    }
}

// All coordinates once; returns the sum of the projected gradients that they had.
template <class T, int vecs>
FML_INLINE double sweep_tile(const Descent<T>& job, const T* p, T* w) {
    using Vec = typename Simd<T>::Vec;
    constexpr int lanes = Simd<T>::lanes, width = vecs * lanes;
    const Vec zero = broadcast<Vec>(T(0));
    Vec violation = zero;
    for (std::ptrdiff_t s = 0; s < job.W.k; ++s) {
        const std::ptrdiff_t t = job.sweep.order[s];
        const T* g = job.sweep.G + t * job.W.ld;
        Vec grad[vecs];
        FML_UNROLL
        for (int v = 0; v < vecs; ++v)
            grad[v] = broadcast<Vec>(job.sweep.l1) - load<Vec>(p + t * width + v * lanes);
        for (std::ptrdiff_t r = 0; r < job.W.k; ++r) {
            const Vec gr = broadcast<Vec>(g[r]);
            FML_UNROLL
            for (int v = 0; v < vecs; ++v) grad[v] += gr * load<Vec>(w + r * width + v * lanes);
        }
        const T hess = g[t];
        FML_UNROLL
        for (int v = 0; v < vecs; ++v) {
            T* at = w + t * width + v * lanes;
            const Vec wt = load<Vec>(at);
            const Vec down = select(grad[v] < zero, grad[v], zero);
            violation += absolute<T>(select(zero >= wt, down, grad[v]));
            if (hess == 0) continue;
            const Vec next = wt - grad[v] / hess;
            store(at, select(next < zero, zero, next));
        }
    }
    T each[lanes];
    store(each, violation);
    double sum = 0;
    for (int l = 0; l < lanes; ++l) sum += each[l];
    return sum;
}

// Sweeps over m rows, with p and w (widest * lanes * ld each) as scratch. More than one: until a
// sweep finds a tenth of what the first did.
template <class T, int vecs>
double sweep_rows(const Descent<T>& job, const T* P, T* W, std::ptrdiff_t m, T* p, T* w) {
    flip_in<T, vecs>(P, m, job.W.ld, p);
    flip_in<T, vecs>(W, m, job.W.ld, w);
    const double first = sweep_tile<T, vecs>(job, p, w);
    for (int sweep = 1; sweep < job.sweep.sweeps; ++sweep)
        if (sweep_tile<T, vecs>(job, p, w) <= 0.1 * first) break;
    flip_out<T, vecs>(w, m, job.W.ld, W);
    return first;
}

// Rows [begin, end) of W; then XᵀW of them is added to back (d, ld) and WᵀW to gram (ld, ld), if
// these are wanted. scratch: job.rows * ld values and twice flipped_rows * ld.
template <class T>
void descend_block(const Descent<T>& job, std::ptrdiff_t begin, std::ptrdiff_t end, T* scratch,
                   T* back, T* gram, double* violation) {
    constexpr int lanes = Simd<T>::lanes;
    const std::ptrdiff_t ld = job.W.ld;
    T *p = scratch + job.rows * ld, *w = p + flipped_rows<T> * ld;
    for (std::ptrdiff_t i = begin; i < end; i += job.rows) {
        const std::ptrdiff_t here = end - i < job.rows ? end - i : job.rows;
        if (!job.products) rows_times(job.X, i, here, job.B.at, ld, scratch);
        const T* P = job.products ? job.products + i * ld : scratch;
        T* W = job.W.at + i * ld;
        for (std::ptrdiff_t r = 0; r < here;) {
            const std::ptrdiff_t left = here - r;
            if (left >= 8 * lanes) {
                *violation += sweep_rows<T, 8>(job, P + r * ld, W + r * ld, 8 * lanes, p, w);
                r += 8 * lanes;
            } else if (left > lanes) {
                const std::ptrdiff_t m = left < 4 * lanes ? left : 4 * lanes;
                *violation += sweep_rows<T, 4>(job, P + r * ld, W + r * ld, m, p, w);
                r += m;
            } else {
                *violation += sweep_rows<T, 1>(job, P + r * ld, W + r * ld, left, p, w);
                r += left;
            }
        }
        if (back)
            add_product(job.X.data + i * job.X.d, std::ptrdiff_t(1), job.X.d, job.X.d, here, W, ld,
                        ld, back, ld);
        if (gram) add_gram(W, here, ld, gram);
    }
}

// For a driver, which is outside every region.
template <class T> void flipped_rows_of(std::ptrdiff_t* rows) { *rows = flipped_rows<T>; }
