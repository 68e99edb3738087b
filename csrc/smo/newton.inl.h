// Newton steps with all variables of a working set that are off their bounds: where those are few and
// settled, one does what thousands of two-variable steps do. After steps.inl.h.

// The lower triangle of A (n, n) becomes that of its Cholesky factor. A pivot that rounding may have
// made gets so large that its variable stays where it is.
FML_INLINE void factor(double* A, std::ptrdiff_t n, double least) {
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        double* a = A + i * n;
        for (std::ptrdiff_t j = 0; j <= i; ++j) {
            const double* b = A + j * n;
            double sum = 0;
#pragma omp simd reduction(+ : sum)
            for (std::ptrdiff_t k = 0; k < j; ++k) sum += a[k] * b[k];
            const double left = a[j] - sum;
            if (j < i)
                a[j] = left / b[j];
            else
                a[j] = left > least ? std::sqrt(left) : 1e100;
        }
    }
}

// x = A⁻¹ x by the factor.
FML_INLINE void solve_factored(const double* A, std::ptrdiff_t n, double* x) {
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        double sum = 0;
#pragma omp simd reduction(+ : sum)
        for (std::ptrdiff_t k = 0; k < i; ++k) sum += A[i * n + k] * x[k];
        x[i] = (x[i] - sum) / A[i * n + i];
    }
    for (std::ptrdiff_t i = n; i-- > 0;) {
        const double value = x[i] /= A[i * n + i];
        for (std::ptrdiff_t k = 0; k < i; ++k) x[k] -= value * A[i * n + k];
    }
}

FML_INLINE double sum_of(const double* x, std::ptrdiff_t n) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::ptrdiff_t k = 0; k < n; ++k) sum += x[k];
    return sum;
}

// x less what makes its sum over the first and the last variables 0 (over all, if split is n).
FML_INLINE void balance(double* x, std::ptrdiff_t n, std::ptrdiff_t split) {
    const double first = split ? sum_of(x, split) / split : 0;
    const double last = split < n ? sum_of(x + split, n - split) / (n - split) : 0;
    for (std::ptrdiff_t k = 0; k < n; ++k) x[k] -= k < split ? first : last;
}

// Takes from the direction x what changes the sums that must stay: multiples of A⁻¹ times ones.
FML_INLINE void keep_sums(const double* A, std::ptrdiff_t n, std::ptrdiff_t split, double* x,
                          double* first, double* last) {
    for (std::ptrdiff_t k = 0; k < n; ++k) {
        first[k] = k < split;
        last[k] = k >= split;
    }
    const bool two = split > 0 && split < n;
    solve_factored(A, n, first);
    double a = sum_of(first, split), u = sum_of(x, split) / a, w = 0;
    if (two) {
        solve_factored(A, n, last);
        const double b = sum_of(last, split), c = sum_of(last + split, n - split);
        const double s = sum_of(x, split), t = sum_of(x + split, n - split);
        const double det = a * c - b * b;
        u = (s * c - t * b) / det;
        w = (t * a - s * b) / det;
    }
    for (std::ptrdiff_t k = 0; k < n; ++k) x[k] -= u * first[k] + (two ? w * last[k] : 0);
    balance(x, n, split);
}

// The longest step, at most 1, that `direction` may be followed; *hit is the variable that ends it.
template <class T>
double longest(const WorkingSet<T>& set, const NewtonMemory& memory, std::ptrdiff_t n,
               std::ptrdiff_t* hit) {
    double t = 1;
    *hit = -1;
    for (std::ptrdiff_t k = 0; k < n; ++k) {
        const std::ptrdiff_t s = memory.free[k];
        const double x = memory.x[k];
        const double room = x > 0 ? set.upper[s] - set.beta[s] : set.lower[s] - set.beta[s];
        if (x != 0 && room / x < t) {
            t = room / x;
            *hit = k;
        }
    }
    return t;
}

template <class T>
void follow(WorkingSet<T>& set, const NewtonMemory& memory, std::ptrdiff_t n, double t,
            std::ptrdiff_t hit) {
    for (std::ptrdiff_t k = 0; k < n; ++k) {
        const std::ptrdiff_t s = memory.free[k];
        const double x = t * memory.x[k];
        double to = set.beta[s] + x;
        if (k == hit || to > set.upper[s] || to < set.lower[s])
            to = x > 0 ? set.upper[s] : set.lower[s];
        set.beta[s] = to;
        mark(to, set.lower[s], set.upper[s], set.rise + s, set.fall + s);
        const T* row = set.K + s * set.ld;
        for (std::ptrdiff_t j = 0; j < set.n; ++j) set.v[j] -= x * static_cast<double>(row[j]);
    }
    for (std::ptrdiff_t j = 0; j < set.n; ++j) set.risen[j] = set.v[j] + set.rise[j];
}

// Returns what a Newton step gained, or 0 if there was none.
template <class T>
double newton_step(WorkingSet<T>& set, const NewtonMemory& memory, std::ptrdiff_t n,
                   std::ptrdiff_t split) {
    double largest_diagonal = 0;
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        const T* row = set.K + memory.free[i] * set.ld;
        for (std::ptrdiff_t j = 0; j <= i; ++j) memory.A[i * n + j] = row[memory.free[j]];
        const double here = memory.A[i * n + i];
        largest_diagonal = here > largest_diagonal ? here : largest_diagonal;
        memory.x[i] = set.v[memory.free[i]];
    }
    const double noise = largest_diagonal * (sizeof(T) == 4 ? 1e-7 : 1e-14);
    for (std::ptrdiff_t i = 0; i < n; ++i) memory.A[i * n + i] += noise;
    factor(memory.A, n, noise);
    balance(memory.x, n, split);
    for (std::ptrdiff_t i = 0; i < n; ++i) memory.first[i] = memory.x[i];
    solve_factored(memory.A, n, memory.x);
    double slope = 0;
    keep_sums(memory.A, n, split, memory.x, memory.first, memory.last);
    for (std::ptrdiff_t i = 0; i < n; ++i) slope += memory.x[i] * set.v[memory.free[i]];
    if (!(slope > 0 && slope < std::numeric_limits<double>::infinity())) return 0;
    std::ptrdiff_t hit;
    const double t = longest(set, memory, n, &hit);
    follow(set, memory, n, t, hit);
    return t * slope * (1 - t / 2);
}

// The free variables of a set in order; *split is how many of them belong to the first part.
template <class T>
std::ptrdiff_t free_of(const WorkingSet<T>& set, const NewtonMemory& memory,
                       std::ptrdiff_t* split) {
    std::ptrdiff_t n = 0;
    *split = 0;
    for (std::ptrdiff_t k = 0; k < set.n; ++k) {
        if (k == set.split) *split = n;
        if (set.rise[k] != 0 || set.fall[k] != 0) continue;
        if (n == memory.most) return memory.most + 1;
        memory.free[n++] = k;
    }
    if (set.split >= set.n) *split = n;
    return n;
}
