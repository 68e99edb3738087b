#include "als/dense.inl.h"

// What a worker needs for a row, all of it scratch. Vectors have ld values, or `capacity` (those of
// entries: panel rows, target, dots, fit, ones); matrices are (ld, ld).
template <class T> struct Bench {
    T *panel, *target, *dots, *fit, *ones, *A, *flipped, *inverse, *sum, *rhs, *r, *p, *image;
    std::ptrdiff_t capacity;
};

// One row after the other on one worker's bench. The bias is eliminated: what is solved for x alone
// is (GᵀG + reg - s sᵀ / (n + reg)) x = Gᵀ(t - mean), with s the sum of the regressors' rows in G.
template <class T> class RowSolver {
  public:
    RowSolver(const Ratings<T>& ratings, const Regressors<T>& columns, const Ridge& ridge,
              const Bench<T>& bench)
        : ratings_(ratings), Y_(columns), ridge_(ridge), b_(bench), f_(columns.f), ld_(columns.ld) {
    }

    // Of a row that is_long, nothing.
    void run(std::ptrdiff_t i, T* x, T* bias, double* error, double* penalty) {
        first_ = ratings_.indptr[i];
        n_ = ratings_.indptr[i + 1] - first_;
        reg_ = static_cast<T>(ridge_.alpha * (ridge_.by_count ? n_ : 1));
        x_ = x;
        bias_ = bias;
        if (is_long(n_, ridge_)) return;
        if (n_ == 0) {
            for (std::ptrdiff_t j = 0; j < ld_; ++j) x[j] = 0;
            if (bias) *bias = 0;
            return;
        }
        whole_ = n_ <= b_.capacity;
        fitted_ = false;
        if (whole_) gather(0, n_);
        if (!ridge_.nonnegative && n_ <= few())
            solve_dual();
        else
            solve_primal();
        if (error) *error += squares();
        *penalty += norm() * reg_;
    }

    // What entries [begin, end) of row i bring to its equations.
    void collect(std::ptrdiff_t i, std::ptrdiff_t begin, std::ptrdiff_t end, bool biased,
                 const Equations<T>& out) {
        T any = 0;
        bias_ = biased ? &any : nullptr;
        take(i, begin, end);
        add_up(true);
        std::memcpy(out.A, b_.A, ld_ * ld_ * sizeof(T));
        std::memcpy(out.rhs, b_.rhs, ld_ * sizeof(T));
        std::memcpy(out.sum, b_.sum, ld_ * sizeof(T));
        *out.total = total_;
    }

    // Row i from the equations of all its entries, which are lost.
    void finish(std::ptrdiff_t i, const Equations<T>& of, T* x, T* bias, double* penalty) {
        n_ = ratings_.indptr[i + 1] - ratings_.indptr[i];
        reg_ = static_cast<T>(ridge_.alpha * (ridge_.by_count ? n_ : 1));
        x_ = x;
        bias_ = bias;
        std::memcpy(b_.A, of.A, ld_ * ld_ * sizeof(T));
        std::memcpy(b_.rhs, of.rhs, ld_ * sizeof(T));
        std::memcpy(b_.sum, of.sum, ld_ * sizeof(T));
        total_ = *of.total;
        eliminate();
        solve_equations();
        *penalty += norm() * reg_;
    }

    // The part of entries [begin, end) of row i in the error.
    double squares_of(std::ptrdiff_t i, std::ptrdiff_t begin, std::ptrdiff_t end, T* x, T* bias) {
        x_ = x;
        bias_ = bias;
        take(i, begin, end);
        return squares();
    }

  private:
    // Entries [begin, end) of row i as if they were all of it.
    void take(std::ptrdiff_t i, std::ptrdiff_t begin, std::ptrdiff_t end) {
        first_ = ratings_.indptr[i] + begin;
        n_ = end - begin;
        whole_ = n_ <= b_.capacity;
        fitted_ = false;
        if (whole_) gather(0, n_);
    }

    double norm() const {
        double sum = bias_ ? static_cast<double>(*bias_) * *bias_ : 0;
        for (std::ptrdiff_t j = 0; j < f_; ++j) sum += static_cast<double>(x_[j]) * x_[j];
        return sum;
    }

    static constexpr std::ptrdiff_t unit = factor_unit;
    static constexpr std::ptrdiff_t block_width = 64;

    // So many entries at most are better solved for their multipliers than for x.
    std::ptrdiff_t few() const {
        const std::ptrdiff_t rank = 3 * f_ / 4, cheap = 4 * (ridge_.steps + 1);
        return ridge_.method == Method::cg && cheap < rank ? cheap : rank;
    }

    // Entries [begin, begin + n) of the row into the panel; rows of zeros up to a whole unit.
    void gather(std::ptrdiff_t begin, std::ptrdiff_t n) {
        using Vec = typename Simd<T>::Vec;
        constexpr int lanes = Simd<T>::lanes;
        constexpr std::ptrdiff_t ahead = 8;
        const std::int32_t* index = ratings_.indices + first_ + begin;
        const T* target = ratings_.target + first_ + begin;
        const T* scale = ratings_.scale ? ratings_.scale + first_ + begin : nullptr;
        for (std::ptrdiff_t q = 0; q < n; ++q) {
            const T* from = Y_.factors + index[q] * ld_;
            T* to = b_.panel + q * ld_;
            if (q + ahead < n)
                for (std::ptrdiff_t j = 0; j < f_; j += 64 / sizeof(T))
                    FML_PREFETCH(Y_.factors + index[q + ahead] * ld_ + j);
            const Vec s = broadcast<Vec>(scale ? scale[q] : T(1));
            for (std::ptrdiff_t j = 0; j < f_; j += lanes) store(to + j, load<Vec>(from + j) * s);
            b_.target[q] = Y_.offset ? target[q] - Y_.offset[index[q]] : target[q];
        }
        for (std::ptrdiff_t q = n; q < (n + unit - 1) / unit * unit; ++q) {
            for (std::ptrdiff_t j = 0; j < ld_; ++j) b_.panel[q * ld_ + j] = 0;
            b_.target[q] = 0;
        }
    }

    // The number of entries in the panel from `begin` on, which are gathered if they are not there.
    std::ptrdiff_t chunk(std::ptrdiff_t begin) {
        const std::ptrdiff_t n = n_ - begin < b_.capacity ? n_ - begin : b_.capacity;
        if (!whole_) gather(begin, n);
        return n;
    }

    void clear(T* vector) const {
        for (std::ptrdiff_t j = 0; j < ld_; ++j) vector[j] = 0;
    }
    T dot(const T* a, const T* b) const {
        T sum = 0;
#pragma omp simd reduction(+ : sum)
        for (std::ptrdiff_t j = 0; j < f_; ++j) sum += a[j] * b[j];
        return sum;
    }
    T best_bias() const {
        return bias_ ? static_cast<T>((total_ - dot(b_.sum, x_)) * share_) : T(0);
    }

    // Rows of the panel that stay in L1.
    std::ptrdiff_t slice() const {
        const std::ptrdiff_t fits = 16384 / static_cast<std::ptrdiff_t>(sizeof(T)) / ld_;
        return fits < unit ? unit : fits / unit * unit;
    }

    // GᵀG, of columns [j0, j0 + width), added to A.
    void add_slices(std::ptrdiff_t n, std::ptrdiff_t j0, std::ptrdiff_t width) {
        const std::ptrdiff_t depth = slice();
        for (std::ptrdiff_t q = 0; q < n; q += depth)
            add_gram(b_.panel + q * ld_ + j0, ld_, n - q < depth ? n - q : depth, width, b_.A, ld_);
    }

    // dots = G p of the n entries in the panel, and image += Gᵀ of that: of the targets less it, if so
    // wanted.
    void add_products(std::ptrdiff_t n, const T* p, bool residual, T* image) {
        const std::ptrdiff_t depth = slice();
        for (std::ptrdiff_t q = 0; q < n; q += depth) {
            const std::ptrdiff_t here = n - q < depth ? n - q : depth;
            T *dots = b_.dots + q, *weight = dots;
            panel_dots(b_.panel + q * ld_, ld_, here, f_, p, dots);
            if (residual) {
                weight = b_.fit + q;
                for (std::ptrdiff_t e = 0; e < here; ++e) weight[e] = b_.target[q + e] - dots[e];
            }
            add_combination(b_.panel + q * ld_, ld_, here, f_, weight, image);
        }
    }

    // What bias and reg make of GᵀG, of columns [j0, j0 + width).
    void complete(std::ptrdiff_t j0, std::ptrdiff_t width) {
        for (std::ptrdiff_t i = 0; i < width; ++i) {
            if (bias_) subtract_row(b_.sum + j0, b_.sum[j0 + i] * share_, i, width, b_.A + i * ld_);
            b_.A[i * (ld_ + 1)] += reg_;
        }
    }

    void clear_matrix(std::ptrdiff_t width) const {
        const std::ptrdiff_t rows = (width + unit - 1) / unit * unit;
        for (std::ptrdiff_t e = 0; e < rows * ld_; ++e) b_.A[e] = 0;
    }

    // The sums that the bias needs; and A and the right-hand side, if they are wanted.
    void summarise(bool system) {
        share_ = 1 / (static_cast<T>(n_) + reg_);
        add_up(system);
        if (system) eliminate();
    }

    // The bias and the penalty into the equations.
    void eliminate() {
        share_ = 1 / (static_cast<T>(n_) + reg_);
        if (bias_) subtract_row(b_.sum, static_cast<T>(total_) * share_, 0, f_, b_.rhs);
        complete(0, f_);
    }

    void add_up(bool system) {
        clear(b_.sum);
        if (system) {
            clear(b_.rhs);
            clear_matrix(f_);
        }
        total_ = 0;
        if (!system && !bias_) return;
        for (std::ptrdiff_t begin = 0; begin < n_; begin += b_.capacity) {
            const std::ptrdiff_t n = chunk(begin);
            if (bias_) {
                add_combination(b_.panel, ld_, n, f_, b_.ones, b_.sum);
                for (std::ptrdiff_t q = 0; q < n; ++q) total_ += b_.target[q];
            }
            if (!system) continue;
            add_combination(b_.panel, ld_, n, f_, b_.target, b_.rhs);
            add_slices(n, 0, f_);
        }
    }

    void solve_equations() {
        factorise(b_.A, f_, ld_, b_.inverse);
        solve_factorised(b_.A, f_, ld_, b_.inverse, b_.rhs, x_);
        if (bias_) *bias_ = best_bias();
    }

    void solve_primal() {
        const bool exact = ridge_.method == Method::cholesky || ridge_.nonnegative;
        summarise(exact);
        if (ridge_.nonnegative) {
            descend();
        } else if (exact) {
            solve_equations();
            return;
        } else if (ridge_.method == Method::cg) {
            conjugate_gradients();
        } else {
            for (int pass = 0; pass < ridge_.steps; ++pass)
                for (std::ptrdiff_t j = 0; j < f_; j += block_width) solve_block(j);
        }
        if (bias_) *bias_ = best_bias();
    }

    // x = Gᵀa with (GGᵀ + reg) a = t, and 1 added to every product for the bias, which is the sum of a.
    void solve_dual() {
        const std::ptrdiff_t ld = (n_ + unit - 1) / unit * unit;
        transpose_panel(b_.panel, ld_, n_, f_, b_.flipped, ld);
        for (std::ptrdiff_t e = 0; e < ld * ld; ++e) b_.A[e] = 0;
        add_gram(b_.flipped, ld, f_, n_, b_.A, ld);
        for (std::ptrdiff_t i = 0; i < n_; ++i) {
            if (bias_)
                for (std::ptrdiff_t j = i; j < n_; ++j) b_.A[i * ld + j] += 1;
            b_.A[i * (ld + 1)] += reg_;
        }
        factorise(b_.A, n_, ld, b_.inverse);
        for (std::ptrdiff_t q = 0; q < ld; ++q) b_.rhs[q] = b_.target[q];
        solve_factorised(b_.A, n_, ld, b_.inverse, b_.rhs, b_.dots);
        clear(x_);
        add_combination(b_.panel, ld_, n_, f_, b_.dots, x_);
        if (!bias_) return;
        *bias_ = 0;
        for (std::ptrdiff_t q = 0; q < n_; ++q) *bias_ += b_.dots[q];
    }

    // image = what the system's matrix makes of p.
    void apply(const T* p) {
        for (std::ptrdiff_t j = 0; j < ld_; ++j) b_.image[j] = reg_ * p[j];
        for (std::ptrdiff_t begin = 0; begin < n_; begin += b_.capacity)
            add_products(chunk(begin), p, false, b_.image);
        if (bias_) subtract_row(b_.sum, dot(b_.sum, p) * share_, 0, f_, b_.image);
    }

    // r = the right-hand side less what the matrix makes of x.
    void start_residual() {
        for (std::ptrdiff_t j = 0; j < ld_; ++j) b_.r[j] = -reg_ * x_[j];
        for (std::ptrdiff_t begin = 0; begin < n_; begin += b_.capacity)
            add_products(chunk(begin), x_, true, b_.r);
        if (bias_) subtract_row(b_.sum, best_bias(), 0, f_, b_.r);
    }

    void conjugate_gradients() {
        start_residual();
        fitted_ = whole_;
        for (std::ptrdiff_t q = 0; fitted_ && q < n_; ++q) b_.fit[q] = b_.dots[q];
        for (std::ptrdiff_t j = 0; j < ld_; ++j) b_.p[j] = b_.r[j];
        T residual = dot(b_.r, b_.r);
        constexpr T eps = std::numeric_limits<T>::epsilon();
        const T enough = residual * (eps * eps);
        for (int step = 0; step < ridge_.steps && residual > enough; ++step) {
            apply(b_.p);
            const T along = residual / dot(b_.p, b_.image);
            subtract_row(b_.p, -along, 0, f_, x_);
            subtract_row(b_.image, along, 0, f_, b_.r);
            for (std::ptrdiff_t q = 0; fitted_ && q < n_; ++q) b_.fit[q] += along * b_.dots[q];
            const T left = dot(b_.r, b_.r), turn = left / residual;
            for (std::ptrdiff_t j = 0; j < ld_; ++j) b_.p[j] = b_.r[j] + turn * b_.p[j];
            residual = left;
        }
    }

    // The best x[j0, j0 + block_width) while the others stay.
    void solve_block(std::ptrdiff_t j0) {
        const std::ptrdiff_t width = f_ - j0 < block_width ? f_ - j0 : block_width;
        clear_matrix(width);
        clear(b_.p);
        const T bias = best_bias();
        for (std::ptrdiff_t begin = 0; begin < n_; begin += b_.capacity) {
            const std::ptrdiff_t n = chunk(begin);
            panel_dots(b_.panel, ld_, n, f_, x_, b_.dots);
            for (std::ptrdiff_t q = 0; q < n; ++q) b_.dots[q] = b_.target[q] - b_.dots[q] - bias;
            add_combination(b_.panel + j0, ld_, n, width, b_.dots, b_.p);
            add_slices(n, j0, width);
        }
        complete(j0, width);
        subtract_row(x_ + j0, reg_, 0, width, b_.p);
        factorise(b_.A, width, ld_, b_.inverse);
        solve_factorised(b_.A, width, ld_, b_.inverse, b_.p, b_.image);
        for (std::ptrdiff_t j = 0; j < width; ++j) x_[j0 + j] += b_.image[j];
    }

    // Coordinates in turn, none below zero; r is the gradient.
    void descend() {
        for (std::ptrdiff_t i = 0; i < f_; ++i)
            for (std::ptrdiff_t j = 0; j < i; ++j) b_.A[i * ld_ + j] = b_.A[j * ld_ + i];
        for (std::ptrdiff_t j = 0; j < ld_; ++j) b_.r[j] = -b_.rhs[j];
        for (std::ptrdiff_t i = 0; i < f_; ++i)
            if (x_[i] != 0) subtract_row(b_.A + i * ld_, -x_[i], 0, f_, b_.r);
        for (int pass = 0; pass < ridge_.steps; ++pass) {
            T most = 0, moved = 0;
            for (std::ptrdiff_t i = 0; i < f_; ++i) {
                const T curvature = b_.A[i * (ld_ + 1)];
                if (!(curvature > 0)) continue;
                T next = x_[i] - b_.r[i] / curvature;
                next = next > 0 ? next : T(0);
                const T step = next - x_[i], size = step < 0 ? -step : step;
                if (step == 0) continue;
                x_[i] = next;
                subtract_row(b_.A + i * ld_, -step, 0, f_, b_.r);
                moved = size > moved ? size : moved;
                most = next > most ? next : most;
            }
            if (moved <= most * (16 * std::numeric_limits<T>::epsilon())) break;
        }
    }

    double squares() {
        const T bias = bias_ ? *bias_ : T(0);
        double sum = 0;
        for (std::ptrdiff_t begin = 0; begin < n_; begin += b_.capacity) {
            const std::ptrdiff_t n = chunk(begin);
            if (!fitted_) panel_dots(b_.panel, ld_, n, f_, x_, b_.dots);
            const T *t = b_.target, *q = fitted_ ? b_.fit : b_.dots;
            if (ratings_.scale) {
#pragma omp simd reduction(+ : sum)
                for (std::ptrdiff_t e = 0; e < n; ++e) sum += q[e] * (q[e] - 2 * t[e]);
            } else {
#pragma omp simd reduction(+ : sum)
                for (std::ptrdiff_t e = 0; e < n; ++e) {
                    const T left = t[e] - q[e] - bias;
                    sum += left * left;
                }
            }
        }
        return sum;
    }

    const Ratings<T>& ratings_;
    const Regressors<T>& Y_;
    const Ridge& ridge_;
    const Bench<T>& b_;
    std::ptrdiff_t f_, ld_, first_ = 0, n_ = 0;
    bool whole_ = false;   // whether the panel holds all entries of the row
    bool fitted_ = false;  // whether fit holds what x makes of them
    T reg_ = 0, share_ = 0;
    double total_ = 0;
    T *x_ = nullptr, *bias_ = nullptr;
};
