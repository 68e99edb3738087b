// CSR rows of X against a chunk of Y, in double: rows are short, so the time is in the memory that
// their columns lead to, and not in the arithmetic.

struct SharedStep {
    // min(|x|, |y|) where the signs agree: |x - y| = |x| + |y| - 2 of these.
    template <class V> static FML_INLINE V step(const V& sum, const V& y, double x) {
        const double size = x < 0 ? -x : x;
        const V same = y * (x < 0 ? -1.0 : 1.0), zero = broadcast<V>(0.0);
        return sum + minimum<double>(select(same < zero, zero, same), broadcast<V>(size));
    }
};

FML_INLINE double term_of(Norm norm, double x) {
    return norm == Norm::absolute ? std::fabs(x) : norm == Norm::inverse_root ? x : x * x;
}
FML_INLINE double norm_of_sum(Norm norm, double sum) {
    if (norm == Norm::squared || norm == Norm::absolute) return sum;
    return sum > 0 ? 1 / std::sqrt(sum) : 0;
}
template <class T> double sparse_norm_of(Norm norm, const Rows<T>& X, std::ptrdiff_t i) {
    double sum = 0;
    for (std::int32_t q = X.indptr[i]; q < X.indptr[i + 1]; ++q) sum += term_of(norm, X.data[q]);
    return norm_of_sum(norm, sum);
}

// Rows [r0, r1) of a chunk of Y, which begins at `first`, as columns (d, stride).
template <class T>
void spread_rows(const Rows<T>& Y, std::ptrdiff_t first, std::ptrdiff_t r0, std::ptrdiff_t r1,
                 std::ptrdiff_t stride, double* columns) {
    if (!Y.indptr) {
        for (std::ptrdiff_t p = 0; p < Y.d; ++p)
            for (std::ptrdiff_t r = r0; r < r1; ++r)
                columns[p * stride + r] = Y.data[(first + r) * Y.d + p];
        return;
    }
    for (std::ptrdiff_t p = 0; p < Y.d; ++p)
        std::memset(columns + p * stride + r0, 0, (r1 - r0) * sizeof(double));
    for (std::ptrdiff_t r = r0; r < r1; ++r)
        for (std::int32_t q = Y.indptr[first + r]; q < Y.indptr[first + r + 1]; ++q)
            columns[Y.indices[q] * stride + r] = Y.data[q];
}

template <class T>
void sparse_norms(const Rows<T>& Y, Norm norm, std::ptrdiff_t first, std::ptrdiff_t n,
                  double* norms) {
    for (std::ptrdiff_t r = 0; r < n; ++r) {
        if (Y.indptr) {
            norms[r] = sparse_norm_of(norm, Y, first + r);
            continue;
        }
        double sum = 0;
        for (std::ptrdiff_t p = 0; p < Y.d; ++p)
            sum += term_of(norm, Y.data[(first + r) * Y.d + p]);
        norms[r] = norm_of_sum(norm, sum);
    }
}

template <class Step, class T>
void gather_columns(const Rows<T>& X, std::ptrdiff_t i, const double* columns,
                    std::ptrdiff_t stride, std::ptrdiff_t j0, double* out) {
    using Vec = typename Simd<double>::Vec;
    constexpr int lanes = Simd<double>::lanes, vecs = 8;
    for (std::ptrdiff_t j = j0 / lanes * lanes; j < stride; j += vecs * lanes) {
        // The last strip starts early enough to be whole: it gathers some columns again.
        const std::ptrdiff_t at = j + vecs * lanes <= stride ? j : stride - vecs * lanes;
        Vec sum[vecs];
        FML_UNROLL
        for (int v = 0; v < vecs; ++v) sum[v] = broadcast<Vec>(0.0);
        for (std::int32_t q = X.indptr[i]; q < X.indptr[i + 1]; ++q) {
            const double* column = columns + X.indices[q] * stride + at;
            const double x = X.data[q];
            FML_UNROLL
            for (int v = 0; v < vecs; ++v)
                sum[v] = Step::step(sum[v], load<Vec>(column + v * lanes), x);
        }
        for (int v = 0; v < vecs; ++v) store(out + at + v * lanes, sum[v]);
    }
}

// The chunk sorted by column: each value of x meets the values of its column.
template <bool shared, class T>
void gather_lists(const Rows<T>& X, std::ptrdiff_t i, const Chunk<double>& chunk, double* out) {
    for (std::ptrdiff_t j = 0; j < chunk.n; ++j) out[j] = 0;
    for (std::int32_t q = X.indptr[i]; q < X.indptr[i + 1]; ++q) {
        const double x = X.data[q];
        const std::ptrdiff_t p = X.indices[q];
        for (std::ptrdiff_t t = chunk.start[p]; t < chunk.start[p + 1]; ++t) {
            const double y = chunk.values[t];
            if (!shared)
                out[chunk.rows[t]] += x * y;
            else if ((x < 0) == (y < 0))
                out[chunk.rows[t]] += std::fmin(std::fabs(x), std::fabs(y));
        }
    }
}

// Row i of X, met by the values of another row in the order of their columns: sum.add(x, y) of each
// column in which either is stored.
template <class T, class Sum> struct Meeting {
    const Rows<T>& X;
    std::ptrdiff_t q, end;
    Sum sum;

    Meeting(const Rows<T>& rows, std::ptrdiff_t i, const Sum& start)
        : X(rows), q(rows.indptr[i]), end(rows.indptr[i + 1]), sum(start) {}
    void alone(std::ptrdiff_t before) {
        for (; q < end && X.indices[q] < before; ++q) sum.add(X.data[q], 0);
    }
    void meet(std::ptrdiff_t p, double y) {
        alone(p);
        sum.add(q < end && X.indices[q] == p ? X.data[q++] : 0, y);
    }
};

// only_rises: whether no further column makes value() less.
struct SquaresApart {
    double sum = 0;
    void add(double x, double y) { sum += (x - y) * (x - y); }
    double value() const { return sum; }
};
struct LargestApart {
    static constexpr bool only_rises = true;
    double sum = 0;
    void add(double x, double y) { sum = std::max(sum, std::fabs(x - y)); }
    double value() const { return sum; }
};
struct PowersApart {
    static constexpr bool only_rises = true;
    double degree, sum = 0;
    void add(double x, double y) { sum += std::pow(std::fabs(x - y), degree); }
    double value() const { return sum; }
};
struct CanberraTerms {
    static constexpr bool only_rises = true;
    double sum = 0;
    void add(double x, double y) {
        const double size = std::fabs(x) + std::fabs(y);
        if (size > 0) sum += std::fabs(x - y) / size;  // a zero may be stored
    }
    double value() const { return sum; }
};
struct RelativeSums {
    static constexpr bool only_rises = false;
    double apart = 0, size = 0;
    void add(double x, double y) {
        apart += std::fabs(x - y);
        size += std::fabs(x) + std::fabs(y);
    }
    double value() const { return size > 0 ? apart / size : 0; }
};

// The nearest row of Y to each of rows [i0, i1) of X, the first of equals. Both are CSR.
template <class Sum, class T>
void nearest_stored_by(const Job<T>& job, std::ptrdiff_t i0, std::ptrdiff_t i1, const Sum& start) {
    const Rows<T>&X = job.X, &Y = job.Y;
    for (std::ptrdiff_t i = i0; i < i1; ++i)
        for (std::ptrdiff_t j = 0; j < Y.n; ++j) {
            Meeting<T, Sum> x{X, i, start};
            double& least = job.distance[i];
            std::ptrdiff_t t = Y.indptr[j];
            const std::ptrdiff_t end = Y.indptr[j + 1];
            for (; t < end && !(Sum::only_rises && x.sum.value() >= least); ++t)
                x.meet(Y.indices[t], Y.data[t]);
            if (t < end) continue;
            x.alone(X.d);
            if (!(x.sum.value() < least)) continue;
            least = x.sum.value();
            job.index[i] = j;
        }
}
template <class T>
void nearest_stored(const Job<T>& job, std::ptrdiff_t i0, std::ptrdiff_t i1) {
    switch (job.plan.gather) {
        case Gather::max_diff:
            return nearest_stored_by(job, i0, i1, LargestApart{});
        case Gather::power_diff:
            nearest_stored_by(job, i0, i1, PowersApart{job.degree});
            for (std::ptrdiff_t i = i0; i < i1; ++i)
                job.distance[i] = std::pow(job.distance[i], 1 / job.degree);
            return;
        case Gather::canberra:
            return nearest_stored_by(job, i0, i1, CanberraTerms{});
        default:
            return nearest_stored_by(job, i0, i1, RelativeSums{});
    }
}

// By differences: rows are sorted by column.
template <class T> struct SparsePair {
    const Rows<T>&X, &Y;
    double operator()(std::ptrdiff_t i, std::ptrdiff_t j) const {
        Meeting<T, SquaresApart> x{X, i, {}};
        if (Y.indptr)
            for (std::ptrdiff_t t = Y.indptr[j]; t < Y.indptr[j + 1]; ++t)
                x.meet(Y.indices[t], Y.data[t]);
        else
            for (std::ptrdiff_t p = 0; p < Y.d; ++p) x.meet(p, Y.data[j * Y.d + p]);
        x.alone(X.d);
        return x.sum.value();
    }
};

// Rows [i0, i0 + rows) of X, at most sparse_rows, against a chunk.
// scratch: their norms, then the sums, (rows, stride).
template <class T>
void sparse_block(const Job<T>& job, const Chunk<double>& chunk, std::ptrdiff_t i0,
                  std::ptrdiff_t rows, double* scratch) {
    const std::ptrdiff_t last = chunk.first + chunk.n;
    if (job.symmetric && last <= i0) return;
    const bool products = job.plan.gather == Gather::product;
    const std::ptrdiff_t j0 = job.symmetric && i0 > chunk.first ? i0 - chunk.first : 0;
    double *norms = scratch, *at = scratch + sparse_rows;
    for (std::ptrdiff_t r = 0; r < rows; ++r) {
        double* out = at + r * chunk.stride;
        norms[r] = sparse_norm_of(job.plan.norm, job.X, i0 + r);
        if (chunk.start && products)
            gather_lists<false>(job.X, i0 + r, chunk, out);
        else if (chunk.start)
            gather_lists<true>(job.X, i0 + r, chunk, out);
        else if (products)
            gather_columns<Product>(job.X, i0 + r, chunk.values, chunk.stride, j0, out);
        else
            gather_columns<SharedStep>(job.X, i0 + r, chunk.values, chunk.stride, j0, out);
    }
    const Block<double> block{at + j0,          nullptr,      i0,           rows,
                              chunk.first + j0, chunk.n - j0, chunk.stride, norms,
                              chunk.norms + j0};
    finish(job, block, SparsePair<T>{job.X, job.Y});
    deliver(job, block);
}
