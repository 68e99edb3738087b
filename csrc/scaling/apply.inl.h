// What is done to values, row by row. x may be out.
template <class T> using Bits = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;

template <class T, class P>
bool standardize_row(const T* x, const P* shift, const P* scale, T* out, std::ptrdiff_t n) {
    Bits<T> infinite = 0;
    const T inf = std::numeric_limits<T>::infinity();
#pragma omp simd reduction(| : infinite)
    for (std::ptrdiff_t j = 0; j < n; ++j) {
        infinite |= std::fabs(x[j]) == inf;
        const T centred = static_cast<T>(x[j] - shift[j]);
        out[j] = static_cast<T>(centred / scale[j]);
    }
    return infinite;
}

// In two loops: in one, the compiler would make a single rounding of the two.
template <class T, class P>
bool stretch_row(const T* x, const P* shift, const P* scale, T* out, std::ptrdiff_t n) {
    Bits<T> infinite = 0;
    const T inf = std::numeric_limits<T>::infinity();
#pragma omp simd reduction(| : infinite)
    for (std::ptrdiff_t j = 0; j < n; ++j) {
        infinite |= std::fabs(x[j]) == inf;
        out[j] = static_cast<T>(x[j] * scale[j]);
    }
#pragma omp simd
    for (std::ptrdiff_t j = 0; j < n; ++j) out[j] = static_cast<T>(out[j] + shift[j]);
    return infinite;
}

template <class T> void limit_row(T floor, T ceiling, T* out, std::ptrdiff_t n) {
#pragma omp simd
    for (std::ptrdiff_t j = 0; j < n; ++j) {
        const T low = out[j] < floor ? floor : out[j];
        out[j] = low > ceiling ? ceiling : low;
    }
}

template <class Map, class T = typename Map::Value>
bool apply_block(const T* x, std::ptrdiff_t rows, std::ptrdiff_t width, std::ptrdiff_t stride,
                 const Map& f, T* out, std::ptrdiff_t out_stride) {
    const bool limited = f.floor > -std::numeric_limits<T>::infinity() ||
                         f.ceiling < std::numeric_limits<T>::infinity();
    bool infinite = false;
    for (std::ptrdiff_t i = 0; i < rows; ++i, x += stride, out += out_stride) {
        infinite |= f.form == Form::standardize ? standardize_row(x, f.shift, f.scale, out, width)
                                                : stretch_row(x, f.shift, f.scale, out, width);
        if (limited) limit_row(f.floor, f.ceiling, out, width);
    }
    return infinite;
}

// The norm of n values, added up in double: in pieces of norm_piece values, each in eight sums,
// value j going to sum j % 8. NaN stays NaN.
template <Norm kind, class T> inline void add_to_norm(double& sum, T x) {
    const double v = x, size = std::fabs(v);
    if constexpr (kind == Norm::l2)
        sum += v * v;
    else if constexpr (kind == Norm::l1)
        sum += size;
    else
        sum = size > sum || size != size ? size : sum;
}
template <Norm kind> inline double join(double a, double b) {
    if constexpr (kind == Norm::largest) return a > b || a != a ? a : b;
    return a + b;
}
template <Norm kind> inline double joined(const double* sum, std::ptrdiff_t stride) {
    double half[4];
    for (int t = 0; t < 4; ++t) half[t] = join<kind>(sum[t * stride], sum[(t + 4) * stride]);
    return join<kind>(join<kind>(half[0], half[2]), join<kind>(half[1], half[3]));
}

template <Norm kind, class T> inline double norm_of_piece(const T* x, std::ptrdiff_t n) {
    double sum[norm_lanes] = {};
    std::ptrdiff_t j = 0;
    for (; j + norm_lanes <= n; j += norm_lanes) {
#pragma omp simd
        for (std::ptrdiff_t t = 0; t < norm_lanes; ++t) add_to_norm<kind>(sum[t], x[j + t]);
    }
    for (std::ptrdiff_t t = 0; j + t < n; ++t) add_to_norm<kind>(sum[t], x[j + t]);
    return joined<kind>(sum, 1);
}

// Divides rows by their norms, and writes those; returns whether they are finite.
template <Norm kind, class T>
bool normalize_rows_by(const T* x, std::ptrdiff_t rows, std::ptrdiff_t d, std::ptrdiff_t stride,
                       T tiny, T* norm, T* out, std::ptrdiff_t out_stride) {
    bool finite = true;
    for (std::ptrdiff_t i = 0; i < rows; ++i, x += stride, out += out_stride) {
        double sum = 0;
        for (std::ptrdiff_t j = 0; j < d; j += norm_piece)
            sum = join<kind>(sum,
                             norm_of_piece<kind>(x + j, d - j < norm_piece ? d - j : norm_piece));
        const T found = static_cast<T>(kind == Norm::l2 ? std::sqrt(sum) : sum);
        finite &= found <= std::numeric_limits<T>::max();
        norm[i] = found < tiny ? T(1) : found;
        const T by = norm[i];
#pragma omp simd
        for (std::ptrdiff_t j = 0; j < d; ++j) out[j] = x[j] / by;
    }
    return finite;
}
template <class T>
bool normalize_rows_block(Norm kind, const T* x, std::ptrdiff_t rows, std::ptrdiff_t d,
                          std::ptrdiff_t stride, T tiny, T* norm, T* out,
                          std::ptrdiff_t out_stride) {
    const auto run = kind == Norm::l1   ? normalize_rows_by<Norm::l1, T>
                     : kind == Norm::l2 ? normalize_rows_by<Norm::l2, T>
                                        : normalize_rows_by<Norm::largest, T>;
    return run(x, rows, d, stride, tiny, norm, out, out_stride);
}

// What a piece of d values (columns `stride` apart) adds to the norms of `rows` rows of a matrix
// in Fortran order. `work` holds 8 * rows values.
template <Norm kind, class T>
void norms_across_by(const T* x, std::ptrdiff_t rows, std::ptrdiff_t d, std::ptrdiff_t stride,
                     double* sum, double* work) {
    for (std::ptrdiff_t i = 0; i < norm_lanes * rows; ++i) work[i] = 0;
    std::ptrdiff_t j = 0;
    if (stride == rows)
        for (; j + norm_lanes <= d; j += norm_lanes, x += norm_lanes * rows) {
#pragma omp simd
            for (std::ptrdiff_t i = 0; i < norm_lanes * rows; ++i) add_to_norm<kind>(work[i], x[i]);
        }
    for (; j < d; ++j, x += stride) {
        double* to = work + j % norm_lanes * rows;
#pragma omp simd
        for (std::ptrdiff_t i = 0; i < rows; ++i) add_to_norm<kind>(to[i], x[i]);
    }
    for (std::ptrdiff_t i = 0; i < rows; ++i) sum[i] = joined<kind>(work + i, rows);
}
template <class T>
void norms_across_block(Norm kind, const T* x, std::ptrdiff_t rows, std::ptrdiff_t d,
                        std::ptrdiff_t stride, double* sum, double* work) {
    const auto run = kind == Norm::l1   ? norms_across_by<Norm::l1, T>
                     : kind == Norm::l2 ? norms_across_by<Norm::l2, T>
                                        : norms_across_by<Norm::largest, T>;
    run(x, rows, d, stride, sum, work);
}
