// Multiplicative updates: W times what X, weighted by the loss, and the penalties make of it.
#include "nmf/ratios.inl.h"

// Rows [i, i + m) of W *= (num / den)^gamma, or their update with memory. den is one row for all, or
// (m, ld).
template <class T>
void apply_rows(const Multiply<T>& job, const T* num, const T* den, std::ptrdiff_t i,
                std::ptrdiff_t m) {
    using Vec = typename Simd<T>::Vec;
    const Update<T>& how = job.how;
    const std::ptrdiff_t ld = job.W.ld;
    const Vec zero = broadcast<Vec>(T(0)), least = broadcast<Vec>(tiny<T>);
    const Vec smallest = broadcast<Vec>(T(std::numeric_limits<double>::epsilon()));
    for (std::ptrdiff_t e = 0; e < m * ld; e += Simd<T>::lanes) {
        T* at = job.W.at + i * ld + e;
        const Vec w = load<Vec>(at);
        Vec below = load<Vec>(den + (job.one_den ? e % ld : e)) + broadcast<Vec>(how.l1);
        below += w * how.l2;
        below = select(zero >= below, select(zero > below, below, least), below);
        Vec above = load<Vec>(num + e), next;
        if (how.num) {
            T *kept = how.num + i * ld + e, *kept_den = how.den + i * ld + e;
            above = above * (how.gamma != 1 ? vpow<T>(w, 1 / how.gamma) : w);
            above += load<Vec>(kept) * how.rho;
            below += load<Vec>(kept_den) * how.rho;
            store(kept, above);
            store(kept_den, below);
        }
        next = above / below;
        if (how.gamma != 1) next = vpow<T>(next, how.gamma);
        if (!how.num) next = next * w;
        if (how.flush) next = select(next < smallest, zero, next);
        store(at, next);
    }
}

// Of columns [j, j + cols) of rows [i, i + m): V becomes x v^(beta - 2), and P v^(beta - 1).
template <class T, int loss>
void weighted_panel(const Multiply<T>& job, const T* W, const T* X, std::ptrdiff_t m,
                    std::ptrdiff_t j, std::ptrdiff_t cols, T* V, T* P) {
    if (loss == kullback_leibler) {
        panel_of(job, W, m, j, cols, StoreRatio<T>{X + j, job.B.n, m, cols, V, job.ld_panel});
        return;
    }
    panel_of(job, W, m, j, cols, Store<T>{V, job.ld_panel});
    weigh_panel<T, loss>(X ? X + j : X, job.B.n, m, cols, job.beta, V, P, job.ld_panel);
}

// num and den of rows [i, i + m), by panels: what X makes of H, and what V does.
template <class T, int loss>
void weigh_rows(const Multiply<T>& job, std::ptrdiff_t i, std::ptrdiff_t m, T* V, T* P, T* num,
                T* den) {
    const std::ptrdiff_t ld = job.W.ld, k = job.W.k, d = job.B.n, one = 1;
    const T* W = job.W.at + i * ld;
    const bool stored = job.X.indptr != nullptr;
    if (stored)
        for (std::ptrdiff_t r = 0; r < m; ++r)
            weigh_row<T, loss>(job.X, i + r, job.B.at, ld, W + r * ld, job.beta, num + r * ld);
    else
        clear(num, m * ld);
    if (loss == kullback_leibler && stored) return;
    clear(den, m * ld);
    for (std::ptrdiff_t j = 0; j < d; j += job.panel) {
        const std::ptrdiff_t cols = d - j < job.panel ? d - j : job.panel,
                             deep = in_vectors<T>(cols);
        weighted_panel<T, loss>(job, W, stored ? nullptr : job.X.data + i * d, m, j, cols, V, P);
        const T* H = job.flat + j;
        if (!stored) dots(V, job.ld_panel, m, H, job.ld_flat, k, deep, true, num, ld, one);
        if (loss != kullback_leibler)
            dots(P, job.ld_panel, m, H, job.ld_flat, k, deep, true, den, ld, one);
    }
}

// The same for the columns of dense X, added to num and den (k, ld_flat).
template <class T, int loss>
void weigh_columns(const Multiply<T>& job, std::ptrdiff_t i, std::ptrdiff_t m, T* V, T* P, T* num,
                   T* den) {
    const std::ptrdiff_t ld = job.W.ld, k = job.W.k, d = job.B.n;
    const T* W = job.W.at + i * ld;
    for (std::ptrdiff_t j = 0; j < d; j += job.panel) {
        const std::ptrdiff_t cols = d - j < job.panel ? d - j : job.panel,
                             wide = in_vectors<T>(cols);
        weighted_panel<T, loss>(job, W, job.X.data + i * d, m, j, cols, V, P);
        add_outer(W, ld, k, V, job.ld_panel, m, wide, num + j, job.ld_flat);
        if (loss != kullback_leibler)
            add_outer(W, ld, k, P, job.ld_panel, m, wide, den + j, job.ld_flat);
    }
}

template <class T, int loss>
void multiply_rows(const Multiply<T>& job, std::ptrdiff_t i, std::ptrdiff_t m, T* scratch, T* back,
                   T* back_den) {
    const std::ptrdiff_t ld = job.W.ld, d = job.B.n, one = 1;
    T *num = scratch, *den = num + job.rows * ld, *V = den + job.rows * ld,
      *P = V + job.rows * job.ld_panel;
    T* W = job.W.at + i * ld;
    if (job.num) {
        apply_rows(job, job.num + i * ld, job.one_den ? job.den : job.den + i * ld, i, m);
    } else if (job.update && loss == frobenius) {
        multiply_in<T>(job, i, m, num);
        clear(den, m * ld);
        add_product(W, ld, one, m, job.W.k, job.den, ld, ld, den, ld);
        apply_rows(job, num, den, i, m);
    } else if (job.update) {
        if constexpr (loss != frobenius) weigh_rows<T, loss>(job, i, m, V, P, num, den);
        apply_rows(job, num, job.one_den ? job.den : den, i, m);
    }
    if (!back) return;
    if constexpr (loss == frobenius)
        add_outer(W, ld, job.W.k, job.X.data + i * d, d, m, d, back, job.ld_flat);
    else
        weigh_columns<T, loss>(job, i, m, V, P, back, back_den);
}

// Rows [begin, end) of W, if they are to be updated; then what X and V make of them for H, gram and sums
// of columns, each unless null. scratch: job.rows * 2 * (ld + ld_panel).
template <class T>
void multiply_block(const Multiply<T>& job, std::ptrdiff_t begin, std::ptrdiff_t end, T* scratch,
                    T* back, T* back_den, T* gram, T* sums) {
    const std::ptrdiff_t ld = job.W.ld;
    for (std::ptrdiff_t i = begin; i < end; i += job.rows) {
        const std::ptrdiff_t m = end - i < job.rows ? end - i : job.rows;
        if (job.beta == 2)
            multiply_rows<T, frobenius>(job, i, m, scratch, back, back_den);
        else if (job.beta == 1)
            multiply_rows<T, kullback_leibler>(job, i, m, scratch, back, back_den);
        else if (job.beta == 0)
            multiply_rows<T, itakura_saito>(job, i, m, scratch, back, back_den);
        else
            multiply_rows<T, any_beta>(job, i, m, scratch, back, back_den);
        const T* W = job.W.at + i * ld;
        if (gram) add_gram(W, m, ld, gram);
        if (sums)
            for (std::ptrdiff_t r = 0; r < m; ++r)
                for (std::ptrdiff_t j = 0; j < ld; ++j) sums[j] += W[r * ld + j];
    }
}

template <class T, int loss>
double cost_rows(const Multiply<T>& job, std::ptrdiff_t i, std::ptrdiff_t m, T* V) {
    const std::ptrdiff_t ld = job.W.ld, d = job.B.n;
    const T* W = job.W.at + i * ld;
    const bool stored = job.X.indptr != nullptr;
    double sum = 0;
    if (stored)
        for (std::ptrdiff_t r = 0; r < m; ++r)
            sum += row_cost<T, loss>(job.X, i + r, job.B.at, ld, W + r * ld, job.beta);
    if (stored && loss != any_beta) return sum;
    for (std::ptrdiff_t j = 0; j < d; j += job.panel) {
        const std::ptrdiff_t cols = d - j < job.panel ? d - j : job.panel;
        panel_of(job, W, m, j, cols, Store<T>{V, job.ld_panel});
        sum += panel_cost<T, loss>(stored ? nullptr : job.X.data + i * d + j, d, m, cols, job.beta,
                                   V, job.ld_panel);
    }
    return sum;
}

template <class T>
void cost_block(const Multiply<T>& job, std::ptrdiff_t begin, std::ptrdiff_t end, T* scratch,
                double* sum) {
    for (std::ptrdiff_t i = begin; i < end; i += job.rows) {
        const std::ptrdiff_t m = end - i < job.rows ? end - i : job.rows;
        if (job.beta == 2)
            *sum += cost_rows<T, frobenius>(job, i, m, scratch);
        else if (job.beta == 1)
            *sum += cost_rows<T, kullback_leibler>(job, i, m, scratch);
        else if (job.beta == 0)
            *sum += cost_rows<T, itakura_saito>(job, i, m, scratch);
        else
            *sum += cost_rows<T, any_beta>(job, i, m, scratch);
    }
}
