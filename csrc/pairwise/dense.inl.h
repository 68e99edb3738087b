// Dense rows: a block of X against panels of Y.

// Sums over long rows in single precision would lose digits: pieces are added in double.
constexpr std::ptrdiff_t piece = 256;

template <class T>
FML_INLINE double long_norm(const T* x, const T* shift, std::ptrdiff_t d) {
    double sum = 0;
    for (std::ptrdiff_t p = 0; p < d; p += piece)
        sum += squared_norm(x + p, shift ? shift + p : nullptr, d - p < piece ? d - p : piece);
    return sum;
}

template <class T> FML_INLINE T norm_of(Norm norm, const T* x, const T* shift, std::ptrdiff_t d) {
    if (norm == Norm::none) return 0;
    if (norm == Norm::squared) return static_cast<T>(long_norm(x, shift, d));
    double sum = 0;
    if (norm == Norm::inverse_root) {
        for (std::ptrdiff_t p = 0; p < d; ++p) sum += x[p];
    } else if (norm == Norm::absolute) {
        for (std::ptrdiff_t p = 0; p < d; ++p) sum += std::fabs(x[p]);
        return static_cast<T>(sum);
    } else {
        sum = long_norm<T>(x, nullptr, d);
        // Of a row that is not finite nothing is known; that of others may be infinite.
        if (sum > std::numeric_limits<double>::max())
            for (std::ptrdiff_t p = 0; p < d; ++p) sum += x[p] - x[p];
    }
    return sum <= 0 ? T(0) : static_cast<T>(1 / std::sqrt(sum));
}

// Σ x of a panel's rows, added as tiles add, so that a row is exactly 0 from itself; returns the
// largest Σ |x|.
template <class T, int width>
FML_INLINE T panel_sums(const T* panel, std::ptrdiff_t d, T* sums) {
    T sum[width] = {}, size[width] = {}, largest = 0;
    for (std::ptrdiff_t p = 0; p < d; ++p)
        for (int r = 0; r < width; ++r) {
            sum[r] += panel[p * width + r];
            size[r] += std::fabs(panel[p * width + r]);
        }
    for (int r = 0; r < width; ++r) {
        sums[r] = sum[r];
        if (size[r] <= largest) continue;
        const T infinity = std::numeric_limits<T>::infinity();
        largest = size[r] < infinity ? size[r] : infinity;  // NaN as well
    }
    return largest;
}

// Panel j of a chunk of Y.
template <class T>
void pack_chunk_panel(const Job<T>& job, std::ptrdiff_t first, std::ptrdiff_t n, std::ptrdiff_t j,
                      T* panels, T* norms, T* sizes) {
    const std::ptrdiff_t d = job.Y.d, begin = j * tile_cols<T>;
    const std::ptrdiff_t rows = n - begin < tile_cols<T> ? n - begin : tile_cols<T>;
    const T* Y = job.Y.data + (first + begin) * d;
    pack_panel<T, tile_cols<T>>(Y, d, rows, d, job.Y.shift, panels + begin * d);
    if (job.plan.norm == Norm::sum) {
        sizes[j] = panel_sums<T, tile_cols<T>>(panels + begin * d, d, norms + begin);
        return;
    }
    for (std::ptrdiff_t r = 0; r < tile_cols<T>; ++r)
        norms[begin + r] = r < rows ? norm_of(job.plan.norm, Y + r * d, job.Y.shift, d) : T(0);
}

// Tiles to a block of tile_cols columns. Where the block goes from there, and its mirror image (or
// null), is brought near meanwhile: short pieces of many rows, which the processor does not foresee.
template <class T> struct KeepTiles {
    T* out;
    const T *target = nullptr, *mirror = nullptr;
    std::ptrdiff_t ld = 0, rows = 0, cols = 0;
    FML_INLINE void begin(std::ptrdiff_t i0, Tile<T>& tile) const {
        tile = Tile<T>{};
        if (!target) return;
        for (std::ptrdiff_t i = i0; i < i0 + tile_rows && i < rows; ++i)
            for (int v = 0; v <= tile_vecs; ++v) FML_PREFETCH(target + i * ld + v * Simd<T>::lanes);
        if (!mirror) return;
        for (std::ptrdiff_t j = 0; j < cols; ++j) FML_PREFETCH(mirror + j * ld + i0);
    }
    FML_INLINE void end(std::ptrdiff_t i0, const Tile<T>& tile) const {
        FML_UNROLL
        for (int i = 0; i < tile_rows; ++i) {
            FML_UNROLL
            for (int v = 0; v < tile_vecs; ++v)
                store(out + (i0 + i) * tile_cols<T> + v * Simd<T>::lanes, tile.at[i][v]);
        }
    }
};

template <class Op, class T>
void gather_tiles(const T* A, std::ptrdiff_t panels, const T* B, std::ptrdiff_t d, T* spill,
                  KeepTiles<T> keep) {
    multiply_panel<Op>(A, panels, B, d, spill, keep);
}

// Of sums that take divisions it pays to leave out what is padding.
template <class Op, class T>
void gather_slow_tiles(const T* A, std::ptrdiff_t panels, const T* B, std::ptrdiff_t d, T* spill,
                       KeepTiles<T> keep) {
    constexpr int lanes = Simd<T>::lanes;
    if (keep.cols <= lanes) return multiply_panel<Op, 1>(A, panels, B, d, spill, keep);
    if (keep.cols <= 2 * lanes) return multiply_panel<Op, 2>(A, panels, B, d, spill, keep);
    multiply_panel<Op>(A, panels, B, d, spill, keep);
}

template <class T>
void gather(const Job<T>& job, const T* A, std::ptrdiff_t panels, const T* B, T* spill,
            const KeepTiles<T>& keep, T* second) {
    const std::ptrdiff_t d = job.X.d;
    const T power = static_cast<T>(job.degree);
    switch (job.plan.gather) {
        case Gather::product:
            return gather_tiles<Product>(A, panels, B, d, spill, keep);
        case Gather::squared_diff:
            return gather_tiles<SquaredDiff>(A, panels, B, d, spill, keep);
        case Gather::shared:
        case Gather::abs_diff:
            return gather_tiles<AbsDiff>(A, panels, B, d, spill, keep);
        case Gather::max_diff:
            return gather_tiles<MaxDiff>(A, panels, B, d, spill, keep);
        case Gather::minimum:
            return gather_tiles<Minimum>(A, panels, B, d, spill, keep);
        case Gather::chi2:
            return gather_slow_tiles<ChiSquared>(A, panels, B, d, spill, keep);
        case Gather::canberra:
            if (job.weights)
                return term_panel(A, panels * tile_rows, B, d, Weighted<Canberra, T>{job.weights},
                                  keep.out);
            return gather_slow_tiles<Canberra>(A, panels, B, d, spill, keep);
        case Gather::unequal:
            if (job.weights)
                return term_panel(A, panels * tile_rows, B, d, Weighted<Unequal, T>{job.weights},
                                  keep.out);
            return gather_tiles<Unequal>(A, panels, B, d, spill, keep);
        case Gather::braycurtis:
            gather_tiles<AbsSum>(A, panels, B, d, spill, KeepTiles<T>{second});
            return gather_tiles<AbsDiff>(A, panels, B, d, spill, keep);
        case Gather::nan_squared:
            gather_tiles<Present>(A, panels, B, d, spill, KeepTiles<T>{second});
            return gather_tiles<PresentSquaredDiff>(A, panels, B, d, spill, keep);
        case Gather::power_diff:
            if (is_whole(power))
                return term_panel(A, panels * tile_rows, B, d,
                                  WholePower<T>{static_cast<std::ptrdiff_t>(power)}, keep.out);
            return term_panel(A, panels * tile_rows, B, d, AnyPower<T>{power}, keep.out);
        case Gather::haversine:
            return haversine_panel(A, panels * tile_rows, B, keep.out);
    }
}

// |x - y|₁ = Σ x + Σ y - 2 Σ min(x, y) takes two thirds of the operations. What it loses is small
// beside one in the exponent of a kernel, as long as this many times gamma bounds Σ |x| + Σ |y|.
constexpr double harmless = 64;

template <class T> Job<T> by_differences(const Job<T>& job) {
    Job<T> other = job;
    take_differences(other.plan);
    return other;
}

template <class T> struct DensePair {
    const T *X, *Y;
    std::ptrdiff_t d;
    T operator()(std::ptrdiff_t i, std::ptrdiff_t j) const {
        const T *x = X + i * d, *y = Y + j * d;
        double sum = 0;
        for (std::ptrdiff_t p = 0; p < d; p += piece)
            sum += squared_distance(x + p, y + p, d - p < piece ? d - p : piece);
        return static_cast<T>(sum);
    }
};

// A larger matrix is written from memory on. To bring mirror images near pays from there on.
constexpr std::size_t in_caches = std::size_t{16} << 20;

// Rows [i0, i0 + rows) of X against panels [p0, p1) of a chunk. scratch: the rows as A panels,
// their norms, one block of sums, another if two are gathered, and what tiles spill.
template <class T, class Exact, class Deliver>
FML_INLINE void dense_pass(const Job<T>& job, const Chunk<T>& chunk, std::ptrdiff_t i0,
                           std::ptrdiff_t rows, std::ptrdiff_t p0, std::ptrdiff_t p1, T* scratch,
                           const Exact& exact, const Deliver& deliver) {
    const std::ptrdiff_t d = job.X.d, panels = (rows + tile_rows - 1) / tile_rows;
    const std::ptrdiff_t padded = panels * tile_rows, size = padded * tile_cols<T>;
    T *A = scratch, *norms = A + padded * d, *at = norms + padded, *second = at + size;
    T* spill = second + size;
    T largest = 0;
    for (std::ptrdiff_t i = 0; i < panels; ++i) {
        const std::ptrdiff_t first = i * tile_rows;
        const std::ptrdiff_t here = rows - first < tile_rows ? rows - first : tile_rows;
        const T* X = job.X.data + (i0 + first) * d;
        pack_panel<T, tile_rows>(X, d, here, d, job.X.shift, A + first * d);
        if (job.plan.norm == Norm::sum) {
            const T size = panel_sums<T, tile_rows>(A + first * d, d, norms + first);
            if (size > largest) largest = size;
            continue;
        }
        for (std::ptrdiff_t r = 0; r < here; ++r)
            norms[first + r] = norm_of(job.plan.norm, X + r * d, job.X.shift, d);
    }
    const Job<T> apart = by_differences(job);
    const bool is_far = job.X.n * job.ld * sizeof(T) > in_caches;
    for (std::ptrdiff_t p = p0; p < p1; ++p) {
        const std::ptrdiff_t j = p * tile_cols<T>;
        const std::ptrdiff_t cols = chunk.n - j < tile_cols<T> ? chunk.n - j : tile_cols<T>;
        // Rows below the panel's square of the diagonal are mirror images of others.
        const std::ptrdiff_t end = chunk.first + j + cols - i0;
        const std::ptrdiff_t here = job.mirrored && end < rows ? end : rows;
        if (here <= 0) continue;
        const bool cancels = job.plan.norm == Norm::sum &&
                             !(std::fabs(job.gamma) * (largest + chunk.sizes[p]) <= harmless);
        const Job<T>& way = cancels ? apart : job;
        KeepTiles<T> keep{at};
        keep.ld = job.ld, keep.rows = here, keep.cols = cols;
        if (job.sink == Sink::store) keep.target = job.out + i0 * job.ld + chunk.first + j;
        if (job.mirrored && is_far) keep.mirror = job.out + (chunk.first + j) * job.ld + i0;
        const std::ptrdiff_t tiles = (here + tile_rows - 1) / tile_rows;
        gather(way, A, tiles, chunk.values + j * d, spill, keep, second);
        const Block<T> block{at,   second,       i0,    here,           chunk.first + j,
                             cols, tile_cols<T>, norms, chunk.norms + j};
        finish(way, block, exact);
        deliver(block);
    }
}

template <class T> struct ToSink {
    const Job<T>& job;
    void operator()(const Block<T>& block) const { deliver(job, block); }
};

template <class T>
void dense_block(const Job<T>& job, const Chunk<T>& chunk, std::ptrdiff_t i0, std::ptrdiff_t rows,
                 std::ptrdiff_t p0, std::ptrdiff_t p1, T* scratch) {
    dense_pass(job, chunk, i0, rows, p0, p1, scratch, DensePair<T>{job.X.data, job.Y.data, job.X.d},
               ToSink<T>{job});
}

template <class T>
T pair_sum(Gather gather, const T* x, const T* y, std::ptrdiff_t d) {
    if (gather == Gather::squared_diff) return squared_distance(x, y, d);
    T sum = 0;
    if (gather == Gather::product) {
#pragma omp simd reduction(+ : sum)
        for (std::ptrdiff_t p = 0; p < d; ++p) sum += x[p] * y[p];
    } else {
#pragma omp simd reduction(+ : sum)
        for (std::ptrdiff_t p = 0; p < d; ++p) sum += std::fabs(x[p] - y[p]);
    }
    return sum;
}

template <class T> T long_sum(Gather gather, const T* x, const T* y, std::ptrdiff_t d) {
    double sum = 0;
    for (std::ptrdiff_t p = 0; p < d; p += piece)
        sum += pair_sum(gather, x + p, y + p, d - p < piece ? d - p : piece);
    return static_cast<T>(sum);
}

// As dense_block, for a few rows of X: packing Y would cost more than they do.
template <class T>
void thin_block(const Job<T>& job, const Chunk<T>& chunk, std::ptrdiff_t i0, std::ptrdiff_t rows,
                std::ptrdiff_t p0, std::ptrdiff_t p1, T* scratch) {
    const std::ptrdiff_t d = job.X.d;
    T *norms = scratch, *at = norms + tile_cols<T>, norms_b[tile_cols<T>] = {};
    for (std::ptrdiff_t i = 0; i < rows; ++i)
        norms[i] = norm_of<T>(job.plan.norm, job.X.data + (i0 + i) * d, nullptr, d);
    for (std::ptrdiff_t p = p0; p < p1; ++p) {
        const std::ptrdiff_t j = p * tile_cols<T>;
        const std::ptrdiff_t cols = chunk.n - j < tile_cols<T> ? chunk.n - j : tile_cols<T>;
        for (std::ptrdiff_t c = 0; c < cols; ++c) {
            const T* y = job.Y.data + (chunk.first + j + c) * d;
            norms_b[c] = norm_of<T>(job.plan.norm, y, nullptr, d);
            for (std::ptrdiff_t i = 0; i < rows; ++i)
                at[i * tile_cols<T> + c] =
                    long_sum(job.plan.gather, job.X.data + (i0 + i) * d, y, d);
        }
        const Block<T> block{at,   nullptr,      i0,    rows,   chunk.first + j,
                             cols, tile_cols<T>, norms, norms_b};
        finish(job, block, DensePair<T>{job.X.data, job.Y.data, d});
        deliver(job, block);
    }
}

// One row against a panel, in registers; sums in two halves, which do not wait for each other.
template <class Op, class T>
FML_INLINE void row_against_panel(const T* x, const T* panel, std::ptrdiff_t d, T* out) {
    using Vec = typename Simd<T>::Vec;
    constexpr int lanes = Simd<T>::lanes;
    Vec sum[2][tile_vecs];
    FML_UNROLL
    for (int v = 0; v < tile_vecs; ++v) sum[0][v] = sum[1][v] = broadcast<Vec>(T(0));
    std::ptrdiff_t p = 0;
    for (; p + 2 <= d; p += 2, panel += 2 * tile_cols<T>) {
        FML_UNROLL
        for (int v = 0; v < tile_vecs; ++v) {
            sum[0][v] = Op::step(sum[0][v], load<Vec>(panel + v * lanes), x[p]);
            sum[1][v] = Op::step(sum[1][v], load<Vec>(panel + tile_cols<T> + v * lanes), x[p + 1]);
        }
    }
    FML_UNROLL
    for (int v = 0; v < tile_vecs; ++v) {
        if (p < d) sum[0][v] = Op::step(sum[0][v], load<Vec>(panel + v * lanes), x[p]);
        store(out + v * lanes, sum[0][v] + sum[1][v]);
    }
}

// As dense_block, for a few rows of X and packed rows of Y: tiles would be mostly empty.
template <class T>
void thin_packed_block(const Job<T>& job, const Chunk<T>& chunk, std::ptrdiff_t i0,
                       std::ptrdiff_t rows, std::ptrdiff_t p0, std::ptrdiff_t p1, T* scratch) {
    const std::ptrdiff_t d = job.X.d;
    T *at = scratch, *x = scratch + tile_cols<T>;
    for (std::ptrdiff_t i = i0; i < i0 + rows; ++i) {
        for (std::ptrdiff_t p = 0; p < d; ++p)
            x[p] = job.X.data[i * d + p] - (job.X.shift ? job.X.shift[p] : T(0));
        const T norm = norm_of<T>(job.plan.norm, x, nullptr, d);
        for (std::ptrdiff_t p = p0; p < p1; ++p) {
            const std::ptrdiff_t j = p * tile_cols<T>;
            if (job.plan.gather == Gather::product)
                row_against_panel<Product>(x, chunk.values + j * d, d, at);
            else
                row_against_panel<SquaredDiff>(x, chunk.values + j * d, d, at);
            const std::ptrdiff_t cols = chunk.n - j < tile_cols<T> ? chunk.n - j : tile_cols<T>;
            const Block<T> block{at,    nullptr,        i, 1, chunk.first + j, cols, tile_cols<T>,
                                 &norm, chunk.norms + j};
            finish(job, block, DensePair<T>{job.X.data, job.Y.data, d});
            deliver(job, block);
        }
    }
}
