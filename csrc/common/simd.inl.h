// Fixed-width vectors of T, compiled once per instruction set: Simd<T>::Vec holds
// FML_VECTOR_BYTES of T, Simd<T>::Mask and Simd<T>::Index integers of the same width.
// GCC and clang have such types; elsewhere a struct of plain loops stands in for them.
#if defined(__GNUC__) && !defined(FML_PLAIN_VECTORS)

#if defined(FML_INSTRUMENTED)  // sanitizers: what is inlined and unrolled takes forever to compile
#define FML_INLINE inline
#define FML_UNROLL
#else
#define FML_INLINE inline __attribute__((always_inline))
#define FML_UNROLL _Pragma("GCC unroll 16")
#endif
#define FML_PREFETCH(p) __builtin_prefetch(p, 0, 2)
#define FML_PREFETCH_NEXT(p) __builtin_prefetch(p, 0, 3)  // at once, to L1

template <class T> struct Simd;
template <> struct Simd<float> {
    typedef float Vec __attribute__((vector_size(FML_VECTOR_BYTES)));
    typedef std::int32_t Index __attribute__((vector_size(FML_VECTOR_BYTES)));
    typedef std::int32_t Int;
    static constexpr int lanes = FML_VECTOR_BYTES / 4;
};
template <> struct Simd<double> {
    typedef double Vec __attribute__((vector_size(FML_VECTOR_BYTES)));
    typedef std::int64_t Index __attribute__((vector_size(FML_VECTOR_BYTES)));
    typedef std::int64_t Int;
    static constexpr int lanes = FML_VECTOR_BYTES / 8;
};

// `mask` lanes are all ones or all zeros, as comparisons give them.
template <class V, class M> FML_INLINE V select(const M& mask, const V& yes, const V& no) {
    return mask ? yes : no;
}

template <class T>
FML_INLINE typename Simd<T>::Vec absolute(const typename Simd<T>::Vec& v) {
    typedef typename Simd<T>::Index Index;
    constexpr auto magnitude = std::numeric_limits<typename Simd<T>::Int>::max();
    return (typename Simd<T>::Vec)((Index)v & magnitude);
}

// Bit l tells that a is below b in lane l.
template <class T>
FML_INLINE unsigned below(const typename Simd<T>::Vec& a, const typename Simd<T>::Vec& b) {
#if FML_X86_REGIONS && FML_VECTOR_BYTES == 64
    if constexpr (sizeof(T) == 4)
        return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_LT_OQ);
    else
        return _mm512_cmp_pd_mask((__m512d)a, (__m512d)b, _CMP_LT_OQ);
#elif FML_X86_REGIONS && FML_VECTOR_BYTES == 32
    if constexpr (sizeof(T) == 4)
        return static_cast<unsigned>(_mm256_movemask_ps((__m256)(a < b)));
    else
        return static_cast<unsigned>(_mm256_movemask_pd((__m256d)(a < b)));
#else
    unsigned bits = 0;
    for (int l = 0; l < Simd<T>::lanes; ++l) bits |= unsigned{a[l] < b[l]} << l;
    return bits;
#endif
}

// `lanes` bytes as floats. GCC takes a generic conversion apart into scalars, at a tenth of the
// speed of the two instructions that x86 has for it.
FML_INLINE Simd<float>::Vec widen(const std::int8_t* p) {
#if FML_X86_REGIONS && FML_VECTOR_BYTES == 64
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i*)p)));
#elif FML_X86_REGIONS && FML_VECTOR_BYTES == 32
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i*)p)));
#else
    Simd<float>::Vec v;
    for (int l = 0; l < Simd<float>::lanes; ++l) v[l] = p[l];
    return v;
#endif
}

FML_INLINE Simd<double>::Vec widen(const float* p) {
#if FML_X86_REGIONS && FML_VECTOR_BYTES == 64
    return _mm512_cvtps_pd(_mm256_loadu_ps(p));
#elif FML_X86_REGIONS && FML_VECTOR_BYTES == 32
    return _mm256_cvtps_pd(_mm_loadu_ps(p));
#else
    Simd<double>::Vec v;
    for (int l = 0; l < Simd<double>::lanes; ++l) v[l] = p[l];
    return v;
#endif
}

// Bit l tells that a is above b, or that either is NaN, in lane l.
FML_INLINE unsigned not_below(const Simd<float>::Vec& a, const Simd<float>::Vec& b) {
#if FML_X86_REGIONS && FML_VECTOR_BYTES == 64
    return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_NLE_UQ);
#elif FML_X86_REGIONS && FML_VECTOR_BYTES == 32
    return static_cast<unsigned>(
        _mm256_movemask_ps(_mm256_cmp_ps((__m256)a, (__m256)b, _CMP_NLE_UQ)));
#else
    unsigned bits = 0;
    for (int l = 0; l < Simd<float>::lanes; ++l) bits |= unsigned{!(a[l] <= b[l])} << l;
    return bits;
#endif
}

// One step of a transposition: of each pair (a, b), the lanes whose bit s is set in a change
// places with those whose bit s is clear in b.
template <class T, int s> FML_INLINE void exchange(typename Simd<T>::Vec& a,
                                                   typename Simd<T>::Vec& b) {
    constexpr int lanes = Simd<T>::lanes;
#if defined(__clang__)  // has no run-time shuffle; makes one of these moves
    FML_UNROLL
    for (int l = 0; l < lanes; ++l)
        if (l & s) {
            const T swap = a[l];
            a[l] = b[l - s];
            b[l - s] = swap;
        }
#else
    typename Simd<T>::Index low, high;
    FML_UNROLL
    for (int l = 0; l < lanes; ++l) {
        low[l] = l & s ? lanes + l - s : l;
        high[l] = l & s ? lanes + l : l + s;
    }
    const typename Simd<T>::Vec keep = a;
    a = __builtin_shuffle(keep, b, low);
    b = __builtin_shuffle(keep, b, high);
#endif
}

#else

#if defined(_MSC_VER)
#define FML_INLINE __forceinline
#else
#define FML_INLINE inline
#endif
#define FML_UNROLL
#define FML_PREFETCH(p)
#define FML_PREFETCH_NEXT(p)

template <class S> struct Lanes {
    static constexpr int size = FML_VECTOR_BYTES / sizeof(S);
    S lane[size];
    S& operator[](int i) { return lane[i]; }
    const S& operator[](int i) const { return lane[i]; }
};
#define FML_LANEWISE(OP)                                                                    \
    template <class S> inline Lanes<S> operator OP(Lanes<S> a, const Lanes<S>& b) {         \
        for (int i = 0; i < Lanes<S>::size; ++i) a.lane[i] = a.lane[i] OP b.lane[i];        \
        return a;                                                                           \
    }                                                                                       \
    template <class S> inline Lanes<S> operator OP(Lanes<S> a, S b) {                       \
        for (int i = 0; i < Lanes<S>::size; ++i) a.lane[i] = a.lane[i] OP b;                \
        return a;                                                                           \
    }                                                                                       \
    template <class S> inline Lanes<S>& operator OP## = (Lanes<S> & a, const Lanes<S>& b) { \
        return a = a OP b;                                                                  \
    }
FML_LANEWISE(+)
FML_LANEWISE(-)
FML_LANEWISE(*)
FML_LANEWISE(/)
#undef FML_LANEWISE
template <class S> struct Truth {
    bool lane[Lanes<S>::size];
};
#define FML_COMPARE(OP)                                                                    \
    template <class S> inline Truth<S> operator OP(const Lanes<S>& a, const Lanes<S>& b) { \
        Truth<S> m;                                                                        \
        for (int i = 0; i < Lanes<S>::size; ++i) m.lane[i] = a.lane[i] OP b.lane[i];       \
        return m;                                                                          \
    }
FML_COMPARE(<)
FML_COMPARE(>)
FML_COMPARE(>=)
#undef FML_COMPARE
template <class S, class M>
inline Lanes<S> select(const M& mask, const Lanes<S>& yes, const Lanes<S>& no) {
    Lanes<S> out;
    for (int i = 0; i < Lanes<S>::size; ++i) out.lane[i] = mask.lane[i] ? yes.lane[i] : no.lane[i];
    return out;
}
template <class T> struct Simd;
template <> struct Simd<float> {
    typedef Lanes<float> Vec;
    typedef Lanes<std::int32_t> Index;
    typedef std::int32_t Int;
    static constexpr int lanes = Vec::size;
};
template <> struct Simd<double> {
    typedef Lanes<double> Vec;
    typedef Lanes<std::int64_t> Index;
    typedef std::int64_t Int;
    static constexpr int lanes = Vec::size;
};
template <class T> inline Lanes<T> absolute(Lanes<T> v) {
    for (int l = 0; l < Lanes<T>::size; ++l) v[l] = v[l] < 0 ? -v[l] : v[l];
    return v;
}
template <class T> inline unsigned below(const Lanes<T>& a, const Lanes<T>& b) {
    unsigned bits = 0;
    for (int l = 0; l < Lanes<T>::size; ++l) bits |= unsigned{a[l] < b[l]} << l;
    return bits;
}
inline Simd<float>::Vec widen(const std::int8_t* p) {
    Simd<float>::Vec v;
    for (int l = 0; l < Simd<float>::lanes; ++l) v[l] = p[l];
    return v;
}
inline Simd<double>::Vec widen(const float* p) {
    Simd<double>::Vec v;
    for (int l = 0; l < Simd<double>::lanes; ++l) v[l] = p[l];
    return v;
}
inline unsigned not_below(const Simd<float>::Vec& a, const Simd<float>::Vec& b) {
    unsigned bits = 0;
    for (int l = 0; l < Simd<float>::lanes; ++l) bits |= unsigned{!(a[l] <= b[l])} << l;
    return bits;
}
template <class T, int s> inline void exchange(typename Simd<T>::Vec& a, typename Simd<T>::Vec& b) {
    for (int l = 0; l < Simd<T>::lanes; ++l)
        if (l & s) {
            const T swap = a[l];
            a[l] = b[l - s];
            b[l - s] = swap;
        }
}

#endif

// As x86 has them: the second operand, if either is NaN. GCC makes a comparison and a blend of the
// generic forms.
template <class T>
FML_INLINE typename Simd<T>::Vec maximum(const typename Simd<T>::Vec& a,
                                         const typename Simd<T>::Vec& b) {
#if FML_X86_REGIONS && FML_VECTOR_BYTES == 64
    if constexpr (sizeof(T) == 4)
        return (typename Simd<T>::Vec)_mm512_max_ps((__m512)a, (__m512)b);
    else
        return (typename Simd<T>::Vec)_mm512_max_pd((__m512d)a, (__m512d)b);
#else
    return select(b < a, a, b);
#endif
}
template <class T>
FML_INLINE typename Simd<T>::Vec minimum(const typename Simd<T>::Vec& a,
                                         const typename Simd<T>::Vec& b) {
#if FML_X86_REGIONS && FML_VECTOR_BYTES == 64
    if constexpr (sizeof(T) == 4)
        return (typename Simd<T>::Vec)_mm512_min_ps((__m512)a, (__m512)b);
    else
        return (typename Simd<T>::Vec)_mm512_min_pd((__m512d)a, (__m512d)b);
#else
    return select(a < b, a, b);
#endif
}

// Loads and stores go through memcpy: any alignment, no aliasing trouble, one instruction.
template <class V, class T> FML_INLINE V load(const T* p) {
    V v;
    std::memcpy(&v, p, sizeof v);
    return v;
}
template <class V, class T> FML_INLINE void store(T* p, const V& v) {
    std::memcpy(p, &v, sizeof v);
}
// What is used a few times GCC would read from memory as often, at the cost of as many loads.
template <class V> FML_INLINE void in_register(V& v) {
#if FML_X86_REGIONS && defined(__GNUC__) && !defined(FML_PLAIN_VECTORS)
    asm("" : "+v"(v));
#else
    (void)v;
#endif
}
// Less zero, which changes nothing: of a lane after the other GCC makes a masked move each.
template <class V, class T> FML_INLINE V broadcast(T x) {
#if defined(__GNUC__) && !defined(FML_PLAIN_VECTORS)
    return x - V{};
#else
    V v;
    for (int i = 0; i < static_cast<int>(sizeof(V) / sizeof(T)); ++i) v[i] = x;
    return v;
#endif
}
// sum + x, the same to the last bit by units that multiply: of those that add, what is around such a
// sum has better use.
template <class T>
FML_INLINE typename Simd<T>::Vec plus(const typename Simd<T>::Vec& sum,
                                      const typename Simd<T>::Vec& x) {
#if FML_X86_REGIONS && FML_VECTOR_BYTES == 64
    typename Simd<T>::Vec one = broadcast<typename Simd<T>::Vec>(T(1));
    asm("" : "+v"(one));  // or GCC leaves the product out
    return sum + x * one;
#else
    return sum + x;
#endif
}

template <class T, class B> FML_INLINE typename Simd<T>::Vec load_as(const B* p) {
    if constexpr (std::is_same_v<T, B>)
        return load<typename Simd<T>::Vec>(p);
    else
        return widen(p);
}

template <class T, int s = 1> FML_INLINE void transpose(typename Simd<T>::Vec* block) {
    constexpr int lanes = Simd<T>::lanes;
    if constexpr (s < lanes) {
        FML_UNROLL
        for (int i = 0; i < lanes; ++i)
            if (!(i & s)) exchange<T, s>(block[i], block[i + s]);
        transpose<T, 2 * s>(block);
    }
}

// Lane l of what comes back: the sum of the lanes of block[l], of which there are as many. Halves are
// added while they change places: of a transposition that leaves out what is added up already.
template <class T, int s = Simd<T>::lanes / 2>
FML_INLINE typename Simd<T>::Vec sums_of(typename Simd<T>::Vec* block) {
    if constexpr (s > 0) {
        FML_UNROLL
        for (int i = 0; i < s; ++i) {
            exchange<T, s>(block[i], block[i + s]);
            block[i] = block[i] + block[i + s];
        }
        return sums_of<T, s / 2>(block);
    } else {
        return block[0];
    }
}

// The number of the lowest set bit; bits is not 0.
FML_INLINE int lowest_bit(std::uint64_t bits) {
#if defined(__GNUC__)
    return __builtin_ctzll(bits);
#else
    int i = 0;
    while (!(bits >> i & 1)) ++i;
    return i;
#endif
}
FML_INLINE int count_bits(unsigned bits) {
#if defined(__GNUC__)
    return __builtin_popcount(bits);
#else
    int n = 0;
    for (; bits; bits &= bits - 1) ++n;
    return n;
#endif
}
