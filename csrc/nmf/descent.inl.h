// Coordinate descent for rows of W in |X - W·H|² with H fixed: rows do not know of one another, so
// that a lane takes a row, and the order of its coordinates is the only one there is.
#include "nmf/narrow.inl.h"

constexpr int widest = 8;  // vectors of rows at a time: enough to hide an addition's latency
template <class T> constexpr std::ptrdiff_t flipped_rows = widest * Simd<T>::lanes;

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
    constexpr std::ptrdiff_t width = vecs * Simd<T>::lanes;
    flip_in<T, vecs>(P, m, job.W.ld, p, width);
    flip_in<T, vecs>(W, m, job.W.ld, w, width);
    const double first = sweep_tile<T, vecs>(job, p, w);
    for (int sweep = 1; sweep < job.sweep.sweeps; ++sweep)
        if (sweep_tile<T, vecs>(job, p, w) <= 0.1 * first) break;
    flip_out<T, vecs>(w, width, m, job.W.ld, W);
    return first;
}

// Sweeps over m rows, as many at a time as hide what an addition takes.
template <class T>
double sweep_block(const Descent<T>& job, const T* P, T* W, std::ptrdiff_t m, T* p, T* w) {
    constexpr int lanes = Simd<T>::lanes;
    const std::ptrdiff_t ld = job.W.ld;
    double violation = 0;
    for (std::ptrdiff_t r = 0; r < m;) {
        const std::ptrdiff_t left = m - r;
        if (left >= 8 * lanes) {
            violation += sweep_rows<T, 8>(job, P + r * ld, W + r * ld, 8 * lanes, p, w);
            r += 8 * lanes;
        } else if (left > lanes) {
            const std::ptrdiff_t here = left < 4 * lanes ? left : 4 * lanes;
            violation += sweep_rows<T, 4>(job, P + r * ld, W + r * ld, here, p, w);
            r += here;
        } else {
            violation += sweep_rows<T, 1>(job, P + r * ld, W + r * ld, left, p, w);
            r += left;
        }
    }
    return violation;
}

// Rows [begin, end) of W; then WᵀX of them is added to back (k, ld_flat) and WᵀW to gram (ld, ld), if
// these are wanted. scratch: job.rows * ld values and twice flipped_rows * ld.
template <class T>
void descend_block(const Descent<T>& job, std::ptrdiff_t begin, std::ptrdiff_t end, T* scratch,
                   T* back, T* gram, double* violation) {
    const std::ptrdiff_t ld = job.W.ld, d = job.X.d;
    T *p = scratch + job.rows * ld, *w = p + flipped_rows<T> * ld;
    for (std::ptrdiff_t i = begin; i < end; i += job.rows) {
        const std::ptrdiff_t here = end - i < job.rows ? end - i : job.rows;
        if (!job.products) multiply_in<T>(job, i, here, scratch);
        const T* P = job.products ? job.products + i * ld : scratch;
        T* W = job.W.at + i * ld;
        *violation += sweep_block(job, P, W, here, p, w);
        if (back) add_outer(W, ld, job.W.k, job.X.data + i * d, d, here, d, back, job.ld_flat);
        if (gram) add_gram(W, here, ld, gram);
    }
}

// For a driver, which is outside every region.
template <class T> void flipped_rows_of(std::ptrdiff_t* rows) { *rows = flipped_rows<T>; }
