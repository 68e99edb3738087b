// What becomes of gathered sums: the norms of both rows, then the function of the kernel. Blocks
// lie in cache; a pass over them is worth sparing before an exponential only.

// Calls f(entry, i, j) on every vector of row i, j its first column, and keeps what it returns.
// Rows of dense blocks are as long as a tile: all of it is gone through, without a loop.
template <class C, class F>
FML_INLINE void in_row(const Block<C>& block, std::ptrdiff_t i, const F& f) {
    using Vec = typename Simd<C>::Vec;
    constexpr int lanes = Simd<C>::lanes;
    C* row = block.at + i * block.ld;
    if (block.ld == tile_cols<C>) {
        Vec part[tile_vecs];
        FML_UNROLL
        for (int v = 0; v < tile_vecs; ++v)
            part[v] = f(load<Vec>(row + v * lanes), i, std::ptrdiff_t{v} * lanes);
        FML_UNROLL
        for (int v = 0; v < tile_vecs; ++v) store(row + v * lanes, part[v]);
    } else {
        for (std::ptrdiff_t j = 0; j < block.cols; j += lanes)
            store(row + j, f(load<Vec>(row + j), i, j));
    }
}
template <class C, class F> FML_INLINE void each(const Block<C>& block, const F& f) {
    for (std::ptrdiff_t i = 0; i < block.rows; ++i) in_row(block, i, f);
}

template <class F, class G> struct Then {
    F f;
    G g;
    template <class V> FML_INLINE V operator()(const V& s, std::ptrdiff_t i,
                                               std::ptrdiff_t j) const {
        return g(f(s, i, j), i, j);
    }
};

// -- norms

template <class C> struct Unshared {
    const C *a, *b;
    template <class V> FML_INLINE V operator()(const V& s, std::ptrdiff_t i,
                                               std::ptrdiff_t j) const {
        return maximum<C>(broadcast<V>(C(0)), load<V>(b + j) + a[i] - s * C(2));  // NaN stays
    }
};
template <class C> struct Scaled {
    const C *a, *b;
    template <class V> FML_INLINE V operator()(const V& s, std::ptrdiff_t i,
                                               std::ptrdiff_t j) const {
        // One after the other, since their product may be infinite; the same for (x, y) and (y, x).
        const V one = load<V>(b + j), other = broadcast<V>(a[i]), zero = broadcast<V>(C(0));
        const V less = minimum<C>(one, other);
        // A row whose square is infinite is orthogonal to all, and what was gathered means nothing.
        return select(zero >= less, zero, s * maximum<C>(one, other) * less);
    }
};
template <class C> struct Share {
    const C *a, *b;
    template <class V> FML_INLINE V operator()(const V& s, std::ptrdiff_t i,
                                               std::ptrdiff_t j) const {
        const V whole = load<V>(b + j) + a[i], zero = broadcast<V>(C(0));
        // Never above 1, however sums are rounded.
        return select(zero >= whole, zero, minimum<C>(broadcast<V>(C(1)), s / whole));
    }
};
template <class C> struct Ratio {
    const C* second;
    std::ptrdiff_t ld;
    C factor;
    template <class V> FML_INLINE V operator()(const V& s, std::ptrdiff_t i,
                                               std::ptrdiff_t j) const {
        return s * factor / load<V>(second + i * ld + j);
    }
};

// Below this share of the norms, what is left of dots and norms is too inexact. In double so little
// is lost that it may be less than in common/sqdist.inl.h.
template <class C> constexpr C too_close = cancels<C>;
template <> constexpr double too_close<double> = 1e-3;

template <class C> struct Apart {
    const C *a, *b;
    template <class V> FML_INLINE V operator()(const V& s, std::ptrdiff_t i,
                                               std::ptrdiff_t j) const {
        return load<V>(b + j) + a[i] - s * C(2);
    }
};

// f of squared distances from dots; exact(i, j) is one by differences.
template <class C, class Exact, class F>
void each_sqdist(const Block<C>& block, const Exact& exact, const F& f) {
    using Vec = typename Simd<C>::Vec;
    const Apart<C> apart{block.norms_a, block.norms_b};
    const Then<Apart<C>, F> at_once{apart, f};
    for (std::ptrdiff_t i = 0; i < block.rows; ++i) {
        C* row = block.at + i * block.ld;
        const C norm = block.norms_a[i];
        unsigned lost = 0;
        for (std::ptrdiff_t j = 0; j < block.cols; j += Simd<C>::lanes) {
            const Vec norms = load<Vec>(block.norms_b + j) + norm;
            lost |= below<C>(apart(load<Vec>(row + j), i, j), norms * too_close<C>);
        }
        if (!lost) {
            in_row(block, i, at_once);
            continue;
        }
        in_row(block, i, apart);
        for (std::ptrdiff_t j = 0; j < block.cols; ++j)
            if (row[j] < (block.norms_b[j] + norm) * too_close<C>)
                row[j] = exact(block.i0 + i, block.j0 + j);
        in_row(block, i, f);
    }
}

// -- functions

struct Itself {
    template <class V> FML_INLINE V operator()(const V& s, std::ptrdiff_t, std::ptrdiff_t) const {
        return s;
    }
};
template <class C> struct Times {
    C factor;
    template <class V> FML_INLINE V operator()(const V& s, std::ptrdiff_t, std::ptrdiff_t) const {
        return s * factor;
    }
};
template <class C> struct Exponential {
    C gamma;
    template <class V> FML_INLINE V operator()(const V& s, std::ptrdiff_t, std::ptrdiff_t) const {
        return vexp<C>(s * gamma);
    }
};
template <class C> struct Sigmoid {
    C gamma, coef0;
    template <class V> FML_INLINE V operator()(const V& s, std::ptrdiff_t, std::ptrdiff_t) const {
        return vtanh<C>(s * gamma + coef0);
    }
};
// usual: a degree that the loop is to be without branches for, or 0.
template <class C, int usual> struct Whole {
    C gamma, coef0;
    std::ptrdiff_t degree;
    template <class V> FML_INLINE V operator()(const V& s, std::ptrdiff_t, std::ptrdiff_t) const {
        return vpowi(s * gamma + coef0, usual ? usual : degree);
    }
};
template <class C>
void whole_powers(const Block<C>& block, C gamma, C coef0, std::ptrdiff_t degree) {
    if (degree == 2)
        each(block, Whole<C, 2>{gamma, coef0, degree});
    else if (degree == 3)
        each(block, Whole<C, 3>{gamma, coef0, degree});
    else
        each(block, Whole<C, 0>{gamma, coef0, degree});
}
template <class C> struct Power {
    C gamma, coef0, degree;
    template <class V> FML_INLINE V operator()(const V& s, std::ptrdiff_t, std::ptrdiff_t) const {
        return vpow<C>(s * gamma + coef0, degree);
    }
};
template <class C> struct OneMinus {
    template <class V> FML_INLINE V operator()(const V& s, std::ptrdiff_t, std::ptrdiff_t) const {
        const V y = s * C(-1) + C(1), zero = broadcast<V>(C(0)), two = broadcast<V>(C(2));
        return select(y < zero, zero, select(y > two, two, y));
    }
};

template <class C> void roots(const Block<C>& block) {
    for (std::ptrdiff_t i = 0; i < block.rows; ++i) {
        C* row = block.at + i * block.ld;
        for (std::ptrdiff_t j = 0; j < block.cols; ++j) row[j] = std::sqrt(row[j]);
    }
}
template <class C> void arcs(const Block<C>& block) {
    for (std::ptrdiff_t i = 0; i < block.rows; ++i) {
        C* row = block.at + i * block.ld;
        for (std::ptrdiff_t j = 0; j < block.cols; ++j) row[j] = std::sqrt(row[j]);
        for (std::ptrdiff_t j = 0; j < block.cols; j += Simd<C>::lanes)
            store(row + j, vasin<C>(load<typename Simd<C>::Vec>(row + j)) * C(2));
    }
}

template <class C> bool is_whole(C x) { return x == std::floor(x) && x <= C(1 << 20); }

template <class T, class C> void map_block(const Job<T>& job, const Block<C>& block) {
    const C gamma = static_cast<C>(job.gamma), coef0 = static_cast<C>(job.coef0);
    const C degree = static_cast<C>(job.degree);
    switch (job.plan.map) {
        case Map::none:
            break;
        case Map::times:
            each(block, Times<C>{gamma});
            break;
        case Map::exp:
            each(block, Exponential<C>{-gamma});
            break;
        case Map::tanh:
            each(block, Sigmoid<C>{gamma, coef0});
            break;
        case Map::polynomial:
            if (is_whole(degree))
                whole_powers(block, gamma, coef0, static_cast<std::ptrdiff_t>(degree));
            else
                each(block, Power<C>{gamma, coef0, degree});
            break;
        case Map::root:
            each(block, Power<C>{C(1), C(0), C(1) / degree});
            break;
        case Map::sqrt:
            roots(block);
            break;
        case Map::cosine_distance:
            each(block, OneMinus<C>{});
            break;
        case Map::arc:
            arcs(block);
            break;
    }
}

template <class C> void set_diagonal(const Block<C>& block, C value) {
    for (std::ptrdiff_t i = 0; i < block.rows; ++i) {
        const std::ptrdiff_t j = block.i0 + i - block.j0;
        if (j >= 0 && j < block.cols) block.at[i * block.ld + j] = value;
    }
}

template <class T, class C, class Exact>
void finish(const Job<T>& job, const Block<C>& block, const Exact& exact) {
    const Unshared<C> unshared{block.norms_a, block.norms_b};
    const Exponential<C> exponential{-static_cast<C>(job.gamma)};
    const bool exponentials = job.plan.map == Map::exp;
    bool mapped = false;
    switch (job.plan.combine) {
        case Combine::none:
            break;
        case Combine::sqdist:
            if (exponentials)
                each_sqdist(block, exact, exponential);
            else
                each_sqdist(block, exact, Itself{});
            mapped = exponentials;
            break;
        case Combine::unshared:
            if (exponentials)
                each(block, Then<Unshared<C>, Exponential<C>>{unshared, exponential});
            else
                each(block, unshared);
            mapped = exponentials;
            break;
        case Combine::scale:
            each(block, Scaled<C>{block.norms_a, block.norms_b});
            break;
        case Combine::share:
            each(block, Share<C>{block.norms_a, block.norms_b});
            break;
        case Combine::ratio:
            each(block, Ratio<C>{block.second, block.ld, C(1)});
            break;
        case Combine::present:
            each(block, Ratio<C>{block.second, block.ld, static_cast<C>(job.X.d)});
            break;
    }
    if (!mapped) map_block(job, block);
    if (job.symmetric && job.plan.fixed_diagonal)
        set_diagonal(block, static_cast<C>(job.plan.diagonal));
}
