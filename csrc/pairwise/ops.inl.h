// What tiles gather beyond the sums of common/gemm.inl.h. Padding (zeros) adds nothing to them.

// x = y = 0 adds 0 because the divisor is never 0; where it is not tiny, least changes nothing.
struct ChiSquared {
    template <class V, class T> static FML_INLINE V step(const V& sum, const V& b, T a) {
        const V t = b - a;
        return sum + t * (t / (b + a + std::numeric_limits<T>::min()));
    }
};
struct Canberra {
    template <class V, class T> static FML_INLINE V step(const V& sum, const V& b, T a) {
        const V size = absolute<T>(b) + absolute<T>(broadcast<V>(a));
        return sum + absolute<T>(b - a) / (size + std::numeric_limits<T>::min());
    }
};
struct AbsSum {
    template <class V, class T> static FML_INLINE V step(const V& sum, const V& b, T a) {
        return sum + absolute<T>(b + a);
    }
};
// 0 if both are equal; NaN equals nothing, infinity itself.
struct Unequal {
    template <class V, class T> static FML_INLINE V step(const V& sum, const V& b, T a) {
        const V zero = broadcast<V>(T(0)), one = broadcast<V>(T(1)), x = broadcast<V>(a);
        return sum + select(b >= x, select(x >= b, zero, one), one);
    }
};
struct PresentSquaredDiff {
    template <class V, class T> static FML_INLINE V step(const V& sum, const V& b, T a) {
        const V t = b - a, zero = broadcast<V>(T(0));
        return sum + select(t * t >= zero, t * t, zero);
    }
};
struct Present {
    template <class V, class T> static FML_INLINE V step(const V& sum, const V& b, T a) {
        const V t = b - a, zero = broadcast<V>(T(0));
        return sum + select(t * t >= zero, broadcast<V>(T(1)), zero);
    }
};

// Sums of term(p, x, y) over the coordinates p.
template <class T, class Term>
FML_INLINE void term_panel(const T* A, std::ptrdiff_t rows, const T* B, std::ptrdiff_t d,
                           const Term& term, T* out) {
    using Vec = typename Simd<T>::Vec;
    constexpr int lanes = Simd<T>::lanes;
    for (std::ptrdiff_t i = 0; i < rows; ++i) {
        const T* a = A + i / tile_rows * tile_rows * d + i % tile_rows;
        Vec sum[tile_vecs];
        for (int v = 0; v < tile_vecs; ++v) sum[v] = broadcast<Vec>(T(0));
        for (std::ptrdiff_t p = 0; p < d; ++p) {
            FML_UNROLL
            for (int v = 0; v < tile_vecs; ++v)
                sum[v] += term(p, load<Vec>(B + p * tile_cols<T> + v * lanes), a[p * tile_rows]);
        }
        for (int v = 0; v < tile_vecs; ++v) store(out + i * tile_cols<T> + v * lanes, sum[v]);
    }
}
// |x - y|^n: with a whole n by multiplication.
template <class T> struct WholePower {
    std::ptrdiff_t n;
    template <class V> FML_INLINE V operator()(std::ptrdiff_t, const V& b, T a) const {
        return vpowi(absolute<T>(b - a), n);
    }
};
template <class T> struct AnyPower {
    T n;
    template <class V> FML_INLINE V operator()(std::ptrdiff_t, const V& b, T a) const {
        return vpow<T>(absolute<T>(b - a), n);
    }
};
// What a tile gathers, times the weight of the coordinate.
template <class Op, class T> struct Weighted {
    const double* weights;
    template <class V> FML_INLINE V operator()(std::ptrdiff_t p, const V& b, T a) const {
        return Op::step(broadcast<V>(T(0)), b, a) * static_cast<T>(weights[p]);
    }
};

// sin²((x0 - y0) / 2) + cos(x0) cos(y0) sin²((x1 - y1) / 2)
template <class T> void haversine_panel(const T* A, std::ptrdiff_t rows, const T* B, T* out) {
    using Vec = typename Simd<T>::Vec;
    constexpr int lanes = Simd<T>::lanes;
    T cosine[tile_cols<T>];
    for (int j = 0; j < tile_cols<T>; ++j) cosine[j] = std::cos(B[j]);
    for (std::ptrdiff_t i = 0; i < rows; ++i) {
        const T* a = A + i / tile_rows * tile_rows * 2 + i % tile_rows;
        const T c = std::cos(a[0]);
        for (int j = 0; j < tile_cols<T>; j += lanes) {
            const Vec u = vsin<T>((load<Vec>(B + j) - a[0]) * T(0.5));
            const Vec v = vsin<T>((load<Vec>(B + tile_cols<T> + j) - a[tile_rows]) * T(0.5));
            store(out + i * tile_cols<T> + j, u * u + load<Vec>(cosine + j) * c * v * v);
        }
    }
}
