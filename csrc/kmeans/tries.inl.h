// What candidates of k-means++ would gain where rows have codes: the rows that may be nearer to a
// candidate are listed by their codes, and only their distances are taken. After seeding.inl.h.

template <class T> FML_INLINE void prefetch_row(const T* data, std::ptrdiff_t d, std::ptrdiff_t i) {
    const char* row = reinterpret_cast<const char*>(data + i * d);
    const std::ptrdiff_t size = d * sizeof(T) < 1024 ? d * sizeof(T) : 1024;
    for (std::ptrdiff_t b = 0; b < size; b += 64) FML_PREFETCH(row + b);
}

// Row `row` of a block may be nearer to candidate number `candidate`.
struct Try {
    std::int32_t row, candidate;
};

// out[l] = |x - y|², x and y the rows of R that tries[l] names, for as many tries as there are lanes.
template <class R>
FML_INLINE void try_distances(const R* rows, const R* block, const std::ptrdiff_t* candidates,
                              std::ptrdiff_t d, const Try* tries, R* out) {
    using Vec = typename Simd<R>::Vec;
    constexpr int lanes = Simd<R>::lanes, at_once = lanes < 4 ? lanes : 4;
    if (d < lanes) {
        for (int l = 0; l < lanes; ++l)
            out[l] = squared_distance(rows + candidates[tries[l].candidate] * d,
                                      block + tries[l].row * d, d);
        return;
    }
    // The last entries are loaded as a whole vector, less what came before.
    const std::ptrdiff_t rest = d % lanes, whole = d - rest;
    Vec last, sums[lanes];
    for (int l = 0; l < lanes; ++l) last[l] = l < lanes - rest ? R(0) : R(1);
    FML_UNROLL
    for (int l0 = 0; l0 < lanes; l0 += at_once) {
        const R *x[at_once], *y[at_once];
        Vec sum[at_once];
        FML_UNROLL
        for (int l = 0; l < at_once; ++l) {
            x[l] = block + tries[l0 + l].row * d;
            y[l] = rows + candidates[tries[l0 + l].candidate] * d;
            sum[l] = broadcast<Vec>(R(0));
        }
        for (std::ptrdiff_t p = 0; p < whole; p += lanes) {
            FML_UNROLL
            for (int l = 0; l < at_once; ++l) {
                const Vec t = load<Vec>(x[l] + p) - load<Vec>(y[l] + p);
                sum[l] += t * t;
            }
        }
        if (rest) {
            FML_UNROLL
            for (int l = 0; l < at_once; ++l) {
                const Vec t = (load<Vec>(x[l] + d - lanes) - load<Vec>(y[l] + d - lanes)) * last;
                sum[l] += t * t;
            }
        }
        FML_UNROLL
        for (int l = 0; l < at_once; ++l) sums[l0 + l] = sum[l];
    }
    store(out, sums_of<R>(sums));
}

// The tries of a block of rows, and what they come to.
template <class T> struct Tries {
    const Rows<T>& X;
    const T *w, *closest;
    const Sketch& sketch;
    const std::ptrdiff_t* candidates;
    std::ptrdiff_t n_candidates, begin;
    double* gain;  // and, n_candidates behind it, what it may be off
    double off
        [max_sketched];  // what the square of a distance to it may be off in single precision, and relative

    FML_INLINE void nearer(const Try& t, bool is) const {
        const std::ptrdiff_t i = begin + t.row, cols = tile_cols<float>;
        sketch.nearer[t.candidate * sketch.panels + i / cols] |= std::uint64_t{is} << i % cols;
    }
    FML_INLINE double weight(std::ptrdiff_t i) const { return w ? static_cast<double>(w[i]) : 1.0; }

    // In single precision. With rows x and y rounded by the part e, and sums of d terms, a square is
    // off by at most (d + 8) e times itself and 4 e times |y| times its root; the mean of squares
    // bounds the latter.
    static constexpr double e = 0x1.1p-24;
    FML_INLINE void bound_single() {
        for (std::ptrdiff_t c = 0; c < n_candidates; ++c) {
            const std::ptrdiff_t j = candidates[c];
            const double norm = std::sqrt(2.0 * sketch.half_norm[j]) + sketch.error[j];
            off[c] = 2 * e * norm * norm;
        }
    }
    FML_INLINE void take_single(const Try* tries, int n) const {
        constexpr float most = 1e30f;  // beyond it squares may overflow
        const double unit = sketch.per_step * sketch.per_step, relative = (X.d + 10) * e;
        float squares[Simd<float>::lanes];
        try_distances(sketch.rows, sketch.rows + begin * sketch.row, candidates, sketch.row, tries,
                      squares);
        for (int l = 0; l < n; ++l) {
            const std::ptrdiff_t i = begin + tries[l].row, c = tries[l].candidate;
            double square = squares[l];
            if (!(square < most))
                square =
                    unit * squared_distance(X.data + candidates[c] * X.d, X.data + i * X.d, X.d);
            const double error = relative * square + off[c];
            const double gained = closest[i] * unit - square;
            const bool less = gained > -error;
            nearer(tries[l], less);
            gain[c] += gained > 0 ? weight(i) * gained : 0.0;
            gain[n_candidates + c] += less ? weight(i) * error : 0.0;
        }
    }

    FML_INLINE void take(const Try* tries, int n) const {
        T squares[Simd<T>::lanes];
        try_distances(X.data, X.data + begin * X.d, candidates, X.d, tries, squares);
        for (int l = 0; l < n; ++l) {
            const std::ptrdiff_t i = begin + tries[l].row;
            // No branch, which would be guessed wrong as often as not.
            const bool less = squares[l] < closest[i];
            const double gained = static_cast<double>(closest[i]) - squares[l];
            nearer(tries[l], less);
            gain[tries[l].candidate] += less ? weight(i) * gained : 0.0;
        }
    }
};

// Lists which rows of the panel at i, and for which candidates, have codes so near that the distance
// may be below the closest, and asks for the rows. error: that of any candidate's code. Returns how
// many they are.
template <class T>
FML_INLINE int list_tries(const Rows<T>& X, std::ptrdiff_t i, std::ptrdiff_t begin,
                          const Sketch& sketch, std::ptrdiff_t n_candidates, const float* panels,
                          const float* bias, float error, Try* tries) {
    using Vec = typename Simd<float>::Vec;
    constexpr int lanes = Simd<float>::lanes;
    const std::ptrdiff_t words = code_words(X.d);
    const float slack = code_slack(X.d);
    Vec floor[tile_vecs];
    for (int v = 0; v < tile_vecs; ++v) {
        const Vec reach = load<Vec>(sketch.reach + i + v * lanes) + error;
        const Vec half = load<Vec>(sketch.half_norm + i + v * lanes) - slack;
        floor[v] = half - reach * reach * (0.5f * (1 + 2e-6f));
    }
    std::uint64_t above[max_sketched], any = 0;
    for (std::ptrdiff_t c0 = 0; c0 < n_candidates; c0 += tile_rows) {
        Tile<float> tile;
        code_scores(panels + c0 * words, bias + c0, sketch.codes + i * words * codes_a_word, words,
                    tile);
        for (int a = 0; a < tile_rows && c0 + a < n_candidates; ++a) {
            std::uint64_t rows = 0;
            FML_UNROLL
            for (int v = 0; v < tile_vecs; ++v)
                rows |= std::uint64_t{not_below(tile.at[a][v], floor[v])} << v * lanes;
            above[c0 + a] = rows;
            any |= rows;
        }
    }
    int n = 0;
    for (; any; any &= any - 1) {
        const int r = lowest_bit(any);
        if (i + r >= X.n) break;
        if (sketch.rows)
            prefetch_row(sketch.rows, sketch.row, i + r);
        else
            prefetch_row(X.data, X.d, i + r);
        for (int c = 0; c < static_cast<int>(n_candidates); ++c) {
            tries[n] = {static_cast<std::int32_t>(i - begin + r), c};
            n += above[c] >> r & 1;
        }
    }
    return n;
}

// The sketched form of gains_small_block: scores x̂·ĉ - |ĉ|²/2 of codes, and only where a score is
// high enough the distance itself. panels: the candidates, with their biases; error: the largest of
// theirs. sketch.nearer says for which candidates a row may have something to gain. gain: as many
// again follow, what each may be off.
template <class T>
void gains_sketched_block(const Rows<T>& X, std::ptrdiff_t begin, std::ptrdiff_t end, const T* w,
                          const T* closest, const Sketch& sketch, const std::ptrdiff_t* candidates,
                          std::ptrdiff_t n_candidates, const float* panels, const float* bias,
                          float error, double* gain) {
    constexpr int cols = tile_cols<float>;
    const int group = sketch.rows ? Simd<float>::lanes : Simd<T>::lanes;
    for (std::ptrdiff_t c = 0; c < 2 * n_candidates; ++c) gain[c] = 0;
    for (std::ptrdiff_t c = 0; c < n_candidates; ++c)
        for (std::ptrdiff_t i = begin; i < end; i += cols)
            sketch.nearer[c * sketch.panels + i / cols] = 0;
    Tries<T> all{X, w, closest, sketch, candidates, n_candidates, begin, gain, {}};
    if (sketch.rows) all.bound_single();
    const auto take = [&](const Try* tries, int n) {
        if (sketch.rows)
            all.take_single(tries, n);
        else
            all.take(tries, n);
    };
    // A panel's rows are read one panel later: by then they have come from memory.
    Try tries[(2 * max_sketched + 1) * cols];  // of two panels, and some to fill a group
    int old = 0;
    for (std::ptrdiff_t i = begin; i < end; i += cols) {
        const int n =
            old + list_tries(X, i, begin, sketch, n_candidates, panels, bias, error, tries + old);
        int taken = 0;
        for (; taken < old && taken + group <= n; taken += group) take(tries + taken, group);
        for (old = 0; taken + old < n; ++old) tries[old] = tries[taken + old];
    }
    for (int l = old; l < old + group; ++l) tries[l] = old ? tries[0] : Try{};
    for (int taken = 0; taken < old; taken += group)
        take(tries + taken, old - taken < group ? old - taken : group);
    const double unit = sketch.rows ? sketch.per_step * sketch.per_step : 1;
    for (std::ptrdiff_t c = 0; c < 2 * n_candidates; ++c) gain[c] /= unit;
}

// Makes row `center` a center for the rows of [begin, end), a multiple of the panel width, that
// sketch.nearer has for `candidate` (-1: for all rows), if it is nearer.
template <class T>
void accept_block(const Rows<T>& X, std::ptrdiff_t begin, std::ptrdiff_t end, T* closest,
                  const Sketch& sketch, std::ptrdiff_t center, std::ptrdiff_t candidate) {
    constexpr int cols = tile_cols<float>;
    const auto listed = [&](std::ptrdiff_t i) {
        const std::uint64_t rows =
            candidate < 0 ? ~std::uint64_t{0} : sketch.nearer[candidate * sketch.panels + i / cols];
        const std::ptrdiff_t n = end - i < cols ? end - i : cols;
        return rows & ~std::uint64_t{0} >> (64 - n);
    };
    std::uint64_t next = listed(begin);
    for (std::ptrdiff_t i = begin; i < end; i += cols) {
        std::uint64_t rows = next;
        next = i + cols < end ? listed(i + cols) : 0;
        for (std::uint64_t ahead = next; ahead; ahead &= ahead - 1)
            prefetch_row(X.data, X.d, i + cols + lowest_bit(ahead));
        for (; rows; rows &= rows - 1) {
            const std::ptrdiff_t r = i + lowest_bit(rows);
            const T sqdist = squared_distance(X.data + center * X.d, X.data + r * X.d, X.d);
            if (!(sqdist < closest[r])) continue;
            closest[r] = sqdist;
            set_reach(sketch, r, sqdist);
        }
    }
}
