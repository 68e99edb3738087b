// A metric is a term of a difference of coordinates, and how terms add up. Both grow with the
// difference, and do so after rounding: what is computed for a box by its gaps to the query is
// never more than what is computed for a point in it.

// Keeps the compiler from fusing what made v with the addition that follows: with and without
// fused multiply-adds, the same distances must come out.
template <class V> FML_INLINE void rounded(V& v) {
#if defined(__GNUC__) && defined(__x86_64__) && FML_VECTOR_BYTES == 64
    asm("" : "+v"(v));
#elif defined(__GNUC__) && defined(__x86_64__)
    asm("" : "+x"(v));
#elif defined(__GNUC__) && defined(__aarch64__)
    asm("" : "+w"(v));
#else
    (void)v;
#endif
}

template <class T> struct Euclidean {
    using Vec = typename Simd<T>::Vec;
    static constexpr T bound = 1;  // what to multiply bounds by
    explicit Euclidean(double) {}
    FML_INLINE void add(Vec& sum, const Vec& t) const {
        Vec square = t * t;
        rounded(square);
        sum = sum + square;
    }
};

template <class T> struct Manhattan {
    using Vec = typename Simd<T>::Vec;
    static constexpr T bound = 1;
    explicit Manhattan(double) {}
    FML_INLINE void add(Vec& sum, const Vec& t) const { sum = sum + absolute<T>(t); }
};

template <class T> struct Chebyshev {
    using Vec = typename Simd<T>::Vec;
    static constexpr T bound = 1;
    explicit Chebyshev(double) {}
    FML_INLINE void add(Vec& sum, const Vec& t) const { sum = maximum<T>(absolute<T>(t), sum); }
};

template <class T> struct Minkowski {
    using Vec = typename Simd<T>::Vec;
    static constexpr T bound = 1 - 8 * std::numeric_limits<T>::epsilon();  // pow may be off by one
    T p;
    explicit Minkowski(double power) : p(static_cast<T>(power)) {}
    FML_INLINE void add(Vec& sum, const Vec& t) const {
        const Vec magnitude = absolute<T>(t);
        for (int l = 0; l < Simd<T>::lanes; ++l) sum[l] += std::pow(magnitude[l], p);
    }
};
