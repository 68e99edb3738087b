// Coordinate descent for rows of W in |X - W·H|² with H fixed: rows do not know of one another, so
// that a lane takes a row, and the order of its coordinates is the only one there is.
#include "nmf/sweep.inl.h"

template <class T> constexpr std::ptrdiff_t flipped_rows = tile_vecs * Simd<T>::lanes;

// Sweeps over m rows, with p and w (flipped_rows * ld each) as scratch.
template <class T, int vecs>
double sweep_rows(const Descent<T>& job, const T* P, T* W, std::ptrdiff_t m, T* p, T* w) {
    constexpr std::ptrdiff_t width = vecs * Simd<T>::lanes;
    const std::ptrdiff_t ld = job.W.ld;
    flip_in<T, vecs>(P, m, ld, p, width);
    flip_in<T, vecs>(W, m, ld, w, width);
    const double first = sweeps_of<T, vecs>(job.sweep, job.W.k, ld, p, width, w, width);
    flip_out<T, vecs>(w, width, m, ld, W);
    return first;
}

// Sweeps over m rows, as many at a time as hide what an addition takes.
template <class T>
double sweep_block(const Descent<T>& job, const T* P, T* W, std::ptrdiff_t m, T* p, T* w) {
    constexpr std::ptrdiff_t lanes = Simd<T>::lanes, most = tile_vecs * lanes;
    const std::ptrdiff_t ld = job.W.ld;
    double violation = 0;
    for (std::ptrdiff_t r = 0; r < m; r += most) {
        const std::ptrdiff_t here = m - r < most ? m - r : most;
        violation += here > lanes
                         ? sweep_rows<T, tile_vecs>(job, P + r * ld, W + r * ld, here, p, w)
                         : sweep_rows<T, 1>(job, P + r * ld, W + r * ld, here, p, w);
    }
    return violation;
}

// Rows [begin, end) of W; then WᵀW of them is added to gram (ld, ld), if it is wanted. scratch: job.rows
// * ld values and twice flipped_rows * ld.
template <class T>
void descend_block(const Descent<T>& job, std::ptrdiff_t begin, std::ptrdiff_t end, T* scratch,
                   T* gram, double* violation) {
    const std::ptrdiff_t ld = job.W.ld;
    T *p = scratch + job.rows * ld, *w = p + flipped_rows<T> * ld;
    for (std::ptrdiff_t i = begin; i < end; i += job.rows) {
        const std::ptrdiff_t here = end - i < job.rows ? end - i : job.rows;
        if (!job.products) rows_times(job.X, i, here, job.B.at, ld, scratch);
        const T* P = job.products ? job.products + i * ld : scratch;
        T* W = job.W.at + i * ld;
        *violation += sweep_block(job, P, W, here, p, w);
        if (gram) add_gram(W, here, ld, gram);
    }
}

// For a driver, which is outside every region.
template <class T> void flipped_rows_of(std::ptrdiff_t* rows) { *rows = flipped_rows<T>; }
