#pragma once
// Passes over the rows, on the pool. Internal to the family.
#include <algorithm>
#include <cmath>
#include <new>

#include "common/blocks.h"
#include "common/scratch.h"
#include "linear_svm/linear_svm.h"

namespace fastml {

// The bodies for the instruction set in use; see passes.inl.h and gram.inl.h.
template <class T> struct Bodies {
    void (*margins)(const Rows<T>&, ptrdiff_t, ptrdiff_t, const double*, double, double*);
    void (*combine)(const Rows<T>&, double, ptrdiff_t, ptrdiff_t, const double*, double*);
    void (*norms)(const Rows<T>&, double, ptrdiff_t, ptrdiff_t, double*);
    void (*gram)(const Rows<T>&, double, const std::int32_t*, const double*, ptrdiff_t, ptrdiff_t,
                 double*, double*);
    ptrdiff_t gram_scratch;  // for each entry of a row of H
};
template <class T> Bodies<T> chosen_bodies();

// L L' = H + ridge I, of the lower triangle of H (n, ld); and x = (L L')^-1 x.
void factor(const double* H, ptrdiff_t n, ptrdiff_t ld, double ridge, double* L);
void solve(const double* L, ptrdiff_t n, ptrdiff_t ld, double* x);

inline double dot(const double* x, const double* y, ptrdiff_t n) {
    double sum = 0;
    for (ptrdiff_t i = 0; i < n; ++i) sum += x[i] * y[i];
    return sum;
}

// Sums over blocks of rows that have to be added: fewer, the longer they are.
inline ptrdiff_t blocks_summed(double size) {
    return std::min(summed_blocks, std::max<ptrdiff_t>(2, static_cast<ptrdiff_t>(8e6 / size)));
}

// The solver, or null if it could not have its memory.
template <class S> Solver* checked(S* solver) {
    if (solver && solver->ok()) return solver;
    delete solver;
    return nullptr;
}

template <class T> class Passes {
  public:
    const Rows<T> X;
    const double bias;  // the constant of the last column
    const Bodies<T> bodies;
    const ptrdiff_t n, width, classes;
    const double entries;  // stored, about what a pass costs
    const Grid grid;

    // Of several classes z and a are (classes, n), w and u (classes, X.d + 1).
    Passes(const Rows<T>& rows, double constant, ptrdiff_t n_classes = 1)
        : X(rows), bias(constant), bodies(chosen_bodies<T>()), n(X.n), width(X.d + 1),
          classes(n_classes),
          entries(X.indptr ? passed_over * X.indptr[n] : static_cast<double>(n) * width),
          grid(n, row_blocks()), parts_(grid.blocks * width * classes),
          strip_(X.indptr ? 256 : std::clamp<ptrdiff_t>(16384 / width, 1, 128) * 4) {}
    explicit operator bool() const { return static_cast<bool>(parts_); }

    // z = X w where w is given; then rows(begin, end, block) on a strip of rows, which may set a;
    // then u = X'a where u is given. One reading of X. What rows() does to one costs `each`.
    template <class Visit>
    Status sweep(const double* w, double* z, const double* a, double* u, int n_threads,
                 const Visit& rows, double each = passed_over) {
        const ptrdiff_t size = width * classes;
        if (u) std::fill_n(parts_.get(), grid.blocks * size, 0.0);
        auto block = [&](ptrdiff_t b, int) {
            for (ptrdiff_t i = grid.begin(b); i < grid.end(b); i += strip_) {
                const ptrdiff_t end = std::min(i + strip_, grid.end(b));
                for (ptrdiff_t m = 0; w && m < classes; ++m) {
                    const double* wm = w + m * width;
                    bodies.margins(X, i, end, wm, bias * wm[X.d], z + m * n + i);
                }
                rows(i, end, b);
                double* part = parts_.get() + b * size;
                for (ptrdiff_t m = 0; u && m < classes; ++m)
                    bodies.combine(X, bias, i, end, a + m * n + i, part + m * width);
            }
        };
        const double work =
            static_cast<double>(classes) * ((w || u ? entries : 0) + each * static_cast<double>(n));
        const Status status = parallel(grid.blocks, threads_for(work, n_threads), block);
        if (u && status == Status::ok) add_parts(parts_.get(), grid.blocks, size, u);
        return status;
    }

  private:
    // The sums of all blocks together are a small part of what is read.
    ptrdiff_t row_blocks() const {
        const double stored = X.indptr ? X.indptr[n] : static_cast<double>(n) * X.d;
        const auto most = static_cast<ptrdiff_t>(stored / (32.0 * static_cast<double>(width)));
        return std::clamp<ptrdiff_t>(most, 2, blocks_summed(static_cast<double>(width)));
    }

    Scratch<double> parts_;
    const ptrdiff_t strip_;
};

// The lower triangle of a sum of kappa x x', and systems with it.
template <class T> class Gram {
  public:
    Gram(const Passes<T>& passes)
        : passes_(passes), ld(ceil_div(passes.width, 24) * 24),
          most_(blocks_summed(static_cast<double>(ld * ld))), H(ld * ld), factor_(ld * ld),
          parts_(most_ * ld * ld) {
        if (*this) std::fill_n(H.get(), ld * ld, 0.0);
    }
    explicit operator bool() const { return H && factor_ && parts_; }

    void clear() { std::fill_n(H.get(), ld * ld, 0.0); }
    // To H, or to another such sum (ld, ld).
    Status add(const std::int32_t* rows, const double* kappa, ptrdiff_t m, int n_threads) noexcept {
        return add(rows, kappa, m, n_threads, H.get());
    }
    Status add(const std::int32_t* rows, const double* kappa, ptrdiff_t m, int n_threads,
               double* sum) noexcept;
    void factorise(double ridge) { factor(H.get(), passes_.width, ld, ridge, factor_.get()); }
    void solve(double* x) const { fastml::solve(factor_.get(), passes_.width, ld, x); }

  private:
    const Passes<T>& passes_;

  public:
    const ptrdiff_t ld;

  private:
    const ptrdiff_t most_;  // blocks of rows

  public:
    Scratch<double> H;

  private:
    Scratch<double> factor_, parts_;
};

}  // namespace fastml
