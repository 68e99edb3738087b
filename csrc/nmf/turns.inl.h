// Coordinate descent by turns in dense X. Both factors are flat here, Wᵀ (k, ·) and H (k, ·): lanes are rows
// of W and columns of H, in the sweeps as in the products.
#include "nmf/sweep.inl.h"

// gram (k, ldg): its lower half, += F Fᵀ of m columns of F.
template <class T>
void add_flat_gram(const T* F, std::ptrdiff_t ld, std::ptrdiff_t k, std::ptrdiff_t m, T* gram,
                   std::ptrdiff_t ldg) {
    const std::ptrdiff_t one = 1;
    for (std::ptrdiff_t t = 0; t < k; t += dot_cols) {
        const std::ptrdiff_t cols = k - t < dot_cols ? k - t : dot_cols;
        dots(F + t * ld, ld, k - t, F + t * ld, ld, cols, m, true, gram + t * ldg + t, ldg, one);
    }
}

// The turn of the factor that goes through X, for places [begin, end) of it, which are rows of X or columns:
// a few at a time, which stay in cache for what they add to `back`, the products of the other. Without
// sweeps nothing is done but that.
template <class T>
void turn_block(const Turn<T>& job, std::ptrdiff_t begin, std::ptrdiff_t end, T* p, T* back,
                T* gram, double* violation) {
    const std::ptrdiff_t d = job.d, k = job.k, ld = job.own.ld, ld_other = job.other.ld, one = 1;
    T* const other = job.other.at;
    for (std::ptrdiff_t i = begin; i < end; i += job.step) {
        const std::ptrdiff_t m = end - i < job.step ? end - i : job.step;
        T* own = job.own.at + i;
        clear(p, k * job.ldp);
        if (job.columns) {
            if (job.sweep.sweeps) {
                add_outer<T, true>(other, ld_other, k, job.X + i, d, job.n, m, p, job.ldp);
                *violation += sweep_flat(job.sweep, k, job.ldg, p, job.ldp, own, ld, m);
            }
            dots(job.X + i, d, job.n, own, ld, k, m, true, back, one, ld_other);
        } else {
            const T* X = job.X + i * d;
            dots(X, d, m, other, ld_other, k, d, true, p, one, job.ldp);
            *violation += sweep_flat(job.sweep, k, job.ldg, p, job.ldp, own, ld, m);
            add_outer<T, true>(own, ld, k, X, d, m, d, back, ld_other);
        }
    }
    add_flat_gram(job.own.at + begin, ld, k, end - begin, gram, job.ldg);
}

// The turn of the other factor, for m places of it from i on, of which the sums of `parts` that are `apart`
// become the products p.
template <class T>
void answer_block(const Turn<T>& job, const T* sums, std::ptrdiff_t parts, std::ptrdiff_t apart,
                  std::ptrdiff_t i, std::ptrdiff_t m, T* p, T* gram, double* violation) {
    using Vec = typename Simd<T>::Vec;
    const std::ptrdiff_t k = job.k, ld = job.own.ld;
    for (std::ptrdiff_t t = 0; t < k; ++t) {
        for (std::ptrdiff_t j = 0; j < m; j += Simd<T>::lanes) {
            const T* at = sums + t * ld + i + j;
            Vec sum = load<Vec>(at);
            for (std::ptrdiff_t b = 1; b < parts; ++b) sum += load<Vec>(at + b * apart);
            store(p + t * job.ldp + j, sum);
        }
    }
    T* own = job.own.at + i;
    *violation = sweep_flat(job.sweep, k, job.ldg, p, job.ldp, own, ld, m);
    add_flat_gram(own, ld, k, m, gram, job.ldg);
}
