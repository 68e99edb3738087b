#include "common/gemm.inl.h"
#include "neighbors/about_kth.inl.h"

#if defined(__GNUC__)
#define FML_NOINLINE __attribute__((noinline))
#else
#define FML_NOINLINE
#endif

// Rows less `shift` (or null) times `scale`, as the filter sees them, and their squared norms.
template <class T, class F>
void prepare_rows(const T* X, std::ptrdiff_t rows, std::ptrdiff_t d, const double* shift,
                  double scale, F* out, double* norms) {
    for (std::ptrdiff_t i = 0; i < rows; ++i, X += d, out += d) {
        double sum = 0;
        if (shift) {
#pragma omp simd reduction(+ : sum)
            for (std::ptrdiff_t p = 0; p < d; ++p) {
                const double t = (static_cast<double>(X[p]) - shift[p]) * scale;
                out[p] = static_cast<F>(t);
                sum += t * t;
            }
        } else {
#pragma omp simd reduction(+ : sum)
            for (std::ptrdiff_t p = 0; p < d; ++p) {
                const double t = static_cast<double>(X[p]) * scale;
                out[p] = static_cast<F>(t);
                sum += t * t;
            }
        }
        norms[i] = sum;
    }
}

template <class F>
void pack_data(const F* rows, std::ptrdiff_t n_rows, std::ptrdiff_t d, F* panel) {
    pack_panel<F, tile_cols<F>>(rows, d, n_rows, d, nullptr, panel);
}

template <class F>
void pack_queries(const F* rows, std::ptrdiff_t n_rows, std::ptrdiff_t d, F* panels) {
    for (std::ptrdiff_t i = 0; i < n_rows; i += tile_rows)
        pack_panel<F, tile_rows>(rows + i * d, d, n_rows - i < tile_rows ? n_rows - i : tile_rows,
                                 d, nullptr, panels + i * d);
}

template <class F> FML_INLINE void start_at(const F* bias, Tile<F>& tile) {
    using Vec = typename Simd<F>::Vec;
    FML_UNROLL
    for (int v = 0; v < tile_vecs; ++v) {
        const Vec start = load<Vec>(bias + v * Simd<F>::lanes);
        FML_UNROLL
        for (int i = 0; i < tile_rows; ++i) tile.at[i][v] = start;
    }
}

// Hands the entries of a tile of costs that are below the limit of their query to a sink. A rows
// are queries, B rows are data; a cost starts as the bias of its data row.
template <class F> struct Below {
    using Vec = typename Simd<F>::Vec;
    static constexpr int lanes = Simd<F>::lanes;
    const float* limits;
    const F *bias, *slack;
    std::ptrdiff_t first;  // data row
    Sink* sink;

    FML_INLINE void begin(std::ptrdiff_t, Tile<F>& tile) const { start_at(bias, tile); }
    FML_INLINE void end(std::ptrdiff_t i0, const Tile<F>& tile) const {
        unsigned rows = 0;
        FML_UNROLL
        for (int i = 0; i < tile_rows; ++i) {
            const Vec limit = broadcast<Vec>(static_cast<F>(limits[i0 + i]));
            rows |= unsigned{below<F>(least_of(tile.at[i]), limit) != 0} << i;
        }
        if (rows) {
            const Tile<F> seen = tile;  // in memory only if need be
            found(i0, rows, seen);
        }
    }
    static FML_INLINE Vec least_of(const Vec (&costs)[tile_vecs]) {
        Vec least = costs[0];
        FML_UNROLL
        for (int v = 1; v < tile_vecs; ++v) least = minimum<F>(costs[v], least);
        return least;
    }
    // Goes from find to find, without a branch for what is none.
    FML_NOINLINE void found(std::ptrdiff_t i0, unsigned rows, const Tile<F>& tile) const {
        for (; rows; rows &= rows - 1) {
            const int i = lowest_bit(rows);
            const Vec limit = broadcast<Vec>(static_cast<F>(limits[i0 + i]));
            std::uint64_t bits = 0;
            for (int v = 0; v < tile_vecs; ++v)
                bits |= std::uint64_t{below<F>(tile.at[i][v], limit)} << (v * lanes);
            for (; bits; bits &= bits - 1) {
                const int j = lowest_bit(bits);
                sink->push(sink, i0 + i, first + j, tile.at[i][j / lanes][j % lanes], slack[j]);
            }
        }
    }
};

// Keeps the costs themselves, those of a query in a row.
template <class F> struct Kept {
    using Vec = typename Simd<F>::Vec;
    const F* bias;
    F* out;
    std::ptrdiff_t ld;

    FML_INLINE void begin(std::ptrdiff_t, Tile<F>& tile) const { start_at(bias, tile); }
    FML_INLINE void end(std::ptrdiff_t i0, const Tile<F>& tile) const {
        FML_UNROLL
        for (int i = 0; i < tile_rows; ++i) {
            FML_UNROLL
            for (int v = 0; v < tile_vecs; ++v)
                store(out + (i0 + i) * ld + v * Simd<F>::lanes, tile.at[i][v]);
        }
    }
};

// From the kept costs of n data rows, `ld` of a query: limits for the queries, and what is below
// them to the sink. bounds: scratch for n.
template <class F>
void open_queries(const F* costs, std::ptrdiff_t ld, std::ptrdiff_t n_queries, const F* slack,
                  std::ptrdiff_t n, std::ptrdiff_t k, std::ptrdiff_t first, const float* limits,
                  F* bounds, Sink* sink) {
    using Vec = typename Simd<F>::Vec;
    constexpr F infinity = std::numeric_limits<F>::infinity();
    for (std::ptrdiff_t i = 0; i < n_queries; ++i, costs += ld) {
#pragma omp simd
        for (std::ptrdiff_t j = 0; j < n; ++j) {
            const F most = costs[j] + slack[j];
            bounds[j] = most < infinity ? most : infinity;  // not NaN
        }
        sink->open(sink, i, static_cast<double>(about_kth(bounds, n, k)));
        for (std::ptrdiff_t j0 = 0; j0 < n; j0 += Simd<F>::lanes) {
            unsigned bits =
                below<F>(load<Vec>(costs + j0), broadcast<Vec>(static_cast<F>(limits[i])));
            for (; bits; bits &= bits - 1) {
                const std::ptrdiff_t j = j0 + lowest_bit(bits);
                sink->push(sink, i, first + j, static_cast<double>(costs[j]),
                           static_cast<double>(slack[j]));
            }
        }
    }
}

// To `kept`, from a query to the next `ld`, or if it is null what is below the limits to the sink.
#define FML_FILTER(name, Op)                                                                      \
    template <class F>                                                                            \
    void name(const F* queries, std::ptrdiff_t n_panels, const F* panel, std::ptrdiff_t d,        \
              F* spill, const float* limits, const F* bias, const F* slack, std::ptrdiff_t first, \
              Sink* sink, F* kept, std::ptrdiff_t ld) {                                           \
        if (kept) {                                                                               \
            Kept<F> keep{bias, kept, ld};                                                         \
            return multiply_panel<Op>(queries, n_panels, panel, d, spill, keep);                  \
        }                                                                                         \
        Below<F> below{limits, bias, slack, first, sink};                                         \
        multiply_panel<Op>(queries, n_panels, panel, d, spill, below);                            \
    }
FML_FILTER(filter_products, Product)
FML_FILTER(filter_squares, SquaredDiff)
FML_FILTER(filter_magnitudes, AbsDiff)
FML_FILTER(filter_largest, MaxDiff)
#undef FML_FILTER

struct SumOfSquares {
    using Vec = Simd<double>::Vec;
    static FML_INLINE Vec add(const Vec& sum, const Vec& q, const Vec& x) {
        const Vec t = q - x;
        return sum + t * t;
    }
};
struct SumOfMagnitudes {
    using Vec = Simd<double>::Vec;
    static FML_INLINE Vec add(const Vec& sum, const Vec& q, const Vec& x) {
        return sum + absolute<double>(q - x);
    }
};
struct SumOfProducts {
    using Vec = Simd<double>::Vec;
    static FML_INLINE Vec add(const Vec& sum, const Vec& q, const Vec& x) { return sum + q * x; }
};

// The sum of the terms of one row, in as many parts as there are lanes. q has zeros behind it, to a
// whole vector. However rows are read, what they sum to is the same.
template <class Term, class T>
FML_INLINE Simd<double>::Vec parts_of_sum(const double* q, const T* x, std::ptrdiff_t d) {
    using Vec = Simd<double>::Vec;
    constexpr int lanes = Simd<double>::lanes;
    Vec sum{};
    std::ptrdiff_t p = 0;
    for (; p + lanes <= d; p += lanes)
        sum = Term::add(sum, load<Vec>(q + p), load_as<double>(x + p));
    if (p == d) return sum;
    T rest[lanes] = {};
    for (int l = 0; l < d - p; ++l) rest[l] = x[p + l];
    return Term::add(sum, load<Vec>(q + p), load_as<double>(rest));
}
FML_INLINE double sum_of_parts(const Simd<double>::Vec& parts) {
    constexpr int lanes = Simd<double>::lanes;
    double part[lanes];
    store(part, parts);
    FML_UNROLL
    for (int s = lanes / 2; s; s /= 2)
        for (int l = 0; l < s; ++l) part[l] += part[l + s];
    return part[0];
}

template <class Term, class T>
void gather_sums(const double* q, const T* X, std::ptrdiff_t d, const std::int32_t* rows,
                 std::ptrdiff_t n_rows, double* out) {
    for (std::ptrdiff_t j = 0; j < n_rows; ++j) {
        if (j + 4 < n_rows)
            for (std::ptrdiff_t p = 0; p < d; p += 64 / sizeof(T))
                FML_PREFETCH(X + rows[j + 4] * d + p);
        out[j] = sum_of_parts(parts_of_sum<Term>(q, X + rows[j] * d, d));
    }
}

// The same where values follow the row, which are read with it: `kept` has ones for those of the row
// in its last vector, and zeros.
template <class Term, class T>
FML_INLINE Simd<double>::Vec parts_of_sum(const double* q, const T* x, std::ptrdiff_t d,
                                          const Simd<double>::Vec& kept) {
    using Vec = Simd<double>::Vec;
    constexpr int lanes = Simd<double>::lanes;
    Vec sum{};
    std::ptrdiff_t p = 0;
    for (; p + lanes <= d; p += lanes)
        sum = Term::add(sum, load<Vec>(q + p), load_as<double>(x + p));
    return p == d ? sum : Term::add(sum, load<Vec>(q + p), load_as<double>(x + p) * kept);
}

// The same of rows that follow each other: as many at a time as there are lanes, to sum across all
// of them at once.
template <class Term, class T>
void stream_sums(const double* q, const T* X, std::ptrdiff_t d, std::ptrdiff_t n_rows,
                 double* out) {
    using Vec = Simd<double>::Vec;
    constexpr int lanes = Simd<double>::lanes;
    double ones[lanes];
    for (int l = 0; l < lanes; ++l) ones[l] = l < d % lanes;
    const Vec kept = load<Vec>(ones);
    std::ptrdiff_t j = 0;
    for (; (n_rows - j - lanes) * d >= lanes; j += lanes) {
        Vec sums[lanes];
        FML_UNROLL
        for (int r = 0; r < lanes; ++r) sums[r] = parts_of_sum<Term>(q, X + (j + r) * d, d, kept);
        store(out + j, sums_of<double>(sums));
    }
    for (; j + lanes <= n_rows; j += lanes) {
        Vec sums[lanes];
        FML_UNROLL
        for (int r = 0; r < lanes; ++r) sums[r] = parts_of_sum<Term>(q, X + (j + r) * d, d);
        store(out + j, sums_of<double>(sums));
    }
    for (; j < n_rows; ++j) out[j] = sum_of_parts(parts_of_sum<Term>(q, X + j * d, d));
}

template <class T>
void gather_largest(const double* q, const T* X, std::ptrdiff_t d, const std::int32_t* rows,
                    std::ptrdiff_t n_rows, double* out) {
    for (std::ptrdiff_t j = 0; j < n_rows; ++j) {
        const T* x = X + rows[j] * d;
        double most = 0;
#pragma omp simd reduction(max : most)
        for (std::ptrdiff_t p = 0; p < d; ++p) {
            const double t = std::fabs(q[p] - x[p]);
            most = t > most ? t : most;
        }
        out[j] = most;
    }
}

FML_INLINE void to_cosine_distances(std::ptrdiff_t n, double* products) {
    for (std::ptrdiff_t j = 0; j < n; ++j) {
        const double t = 1 - products[j];
        products[j] = t < 0 ? 0 : t > 2 ? 2 : t;
    }
}

// out[j] = the distance (squared, for Euclidean ones) between q and row rows[j] of X; q as doubles,
// with zeros behind it to a whole cache line.
template <class T>
void exact_distances(Metric metric, const double* q, const T* X, std::ptrdiff_t d,
                     const std::int32_t* rows, std::ptrdiff_t n_rows, double* out) {
    if (metric == Metric::chebyshev) return gather_largest(q, X, d, rows, n_rows, out);
    if (metric == Metric::manhattan)
        return gather_sums<SumOfMagnitudes>(q, X, d, rows, n_rows, out);
    if (metric != Metric::cosine) return gather_sums<SumOfSquares>(q, X, d, rows, n_rows, out);
    gather_sums<SumOfProducts>(q, X, d, rows, n_rows, out);
    to_cosine_distances(n_rows, out);
}

// As exact_distances, of rows that follow each other. Chebyshev distances are not among them.
template <class T>
void stream_distances(Metric metric, const double* q, const T* X, std::ptrdiff_t d,
                      std::ptrdiff_t n_rows, double* out) {
    if (metric == Metric::manhattan) return stream_sums<SumOfMagnitudes>(q, X, d, n_rows, out);
    if (metric != Metric::cosine) return stream_sums<SumOfSquares>(q, X, d, n_rows, out);
    stream_sums<SumOfProducts>(q, X, d, n_rows, out);
    to_cosine_distances(n_rows, out);
}

// Of n rows from `first` on, those at most `most` away go to `rows`, and to `distances` (or null)
// how far they are; their roots if so told. Returns how many they are.
inline std::ptrdiff_t keep_near(const double* apart, std::ptrdiff_t n, double most,
                                std::ptrdiff_t first, bool roots, std::int32_t* rows,
                                double* distances) {
    std::ptrdiff_t near = 0;
#pragma omp simd reduction(+ : near)
    for (std::ptrdiff_t j = 0; j < n; ++j) near += apart[j] <= most;
    if (near == 0) return 0;
    const std::int32_t start = static_cast<std::int32_t>(first);
    if (near == n) {
#pragma omp simd
        for (std::int32_t j = 0; j < static_cast<std::int32_t>(n); ++j) rows[j] = start + j;
        if (distances) std::memcpy(distances, apart, n * sizeof(double));
    } else {
        std::ptrdiff_t kept = 0;
        for (std::ptrdiff_t j = 0; kept < near; ++j) {
            rows[kept] = start + static_cast<std::int32_t>(j);
            if (distances) distances[kept] = apart[j];
            kept += apart[j] <= most;
        }
    }
    if (distances && roots) {
#pragma omp simd
        for (std::ptrdiff_t j = 0; j < near; ++j) distances[j] = std::sqrt(distances[j]);
    }
    return near;
}
