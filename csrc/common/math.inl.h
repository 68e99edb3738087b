// Elementary functions over the lanes of a vector; after simd.inl.h.
//
// Errors, in units in the last place: vexp, vlog and vtanh at most 2 (1 or less nearly everywhere),
// vsin and vasin at most 3, vpow(x, y) at most 2 + 2 |y log x|. NaN gives NaN. The coefficients are
// minimax fits of the remainders named beside them; 1e-17 (double) or 1e-9 (float) of the function
// is what they leave.
// Where vectors are plain loops, the library's functions do.
#if defined(__GNUC__) && !defined(FML_PLAIN_VECTORS)

template <class T> struct MathConstants;
template <> struct MathConstants<double> {
    static constexpr int mantissa = 52;
    static constexpr double magic = 0x1.8p52;  // adding it rounds to an integer, in the low bits
    static constexpr double ln2_high = 0x1.62e42fefa3p-1, ln2_low = 0x1.3de6af278ece6p-42;
    static constexpr double exp_least = -708.3964185322641, exp_most = 709.782712893384;
    // (exp(r) - 1 - r) / r², |r| <= log(2) / 2
    static constexpr double exp_rest[] = {0.5000000000000012,     0.166666666666667,
                                          0.041666666666515764,   0.00833333333330718,
                                          0.0013888888946966588,  0.00019841269917462434,
                                          2.4801489961347012e-05, 2.7557216214112922e-06,
                                          2.763128270874925e-07,  2.5117892099394197e-08};
    // (tanh(x) - x) / x³ in x², x <= tanh_split
    static constexpr double tanh_rest[] = {
        -0.3333333333333293,    0.13333333333270045,    -0.053968253934349085,
        0.02186948763711012,    -0.008863221710201328,  0.003591994311941155,
        -0.0014549829318243382, 0.0005863891048800789,  -0.00022870048689629667,
        7.728929255944118e-05,  -1.6139237839806348e-05};
    // (atanh(s) - s) / s³ in s², s = (m - 1) / (m + 1), sqrt(1/2) <= m <= sqrt(2)
    static constexpr double log_rest[] = {
        0.3333333333333349,  0.1999999999980595,  0.14285714351931086, 0.11111101070001678,
        0.09091697067194773, 0.07659048802877319, 0.07378985102924708};
    // π in three parts, so that multiples of the first two are exact up to sin_most
    static constexpr double pi_high = 0x1.921fb544p+1, pi_middle = 0x1.0b4611a6p-33,
                            pi_low = 0x1.3198a2e037073p-68, sin_most = 1e6;
    // (sin(x) - x) / x³ in x², |x| <= π / 2
    static constexpr double sin_rest[] = {-0.16666666666666666,    0.008333333333333316,
                                          -0.00019841269841254974, 2.7557319219163234e-06,
                                          -2.5052107616996182e-08, 1.6058977312464087e-10,
                                          -7.643970296798572e-13,  2.7314447669863995e-15};
    // (asin(x) - x) / x³ in x², x <= 1 / 2
    static constexpr double asin_rest[] = {
        0.1666666666666665,    0.07500000000020764,  0.044642857103423646,  0.03038194736709848,
        0.02237204763174451,   0.017355259955786323, 0.013929652902326633,  0.011875494382636922,
        0.0078029494773533175, 0.01603551434914882,  -0.010749050339697808, 0.028169218060881414};
};
template <> struct MathConstants<float> {
    static constexpr int mantissa = 23;
    static constexpr float magic = 0x1.8p23f;
    static constexpr float ln2_high = 0x1.62e4p-1f, ln2_low = 0x1.7f7d1cp-20f;
    static constexpr float exp_least = -87.336544f, exp_most = 88.722831f;
    static constexpr float exp_rest[] = {0.5f, 0.166665181517601f, 0.04166620597243309f,
                                         0.00836893729865551f, 0.0013950556749477983f};
    static constexpr float tanh_rest[] = {-0.3333328366279602f, 0.13331514596939087f,
                                          -0.053745150566101074f, 0.02065523900091648f,
                                          -0.005721650552004576f};
    static constexpr float log_rest[] = {0.333333820104599f, 0.1998930126428604f,
                                         0.149239182472229f};
    static constexpr float pi_high = 0x1.92p+1f, pi_middle = 0x1.fb6p-11f,
                           pi_low = -0x1.777a5cp-24f, sin_most = 4e3f;
    static constexpr float sin_rest[] = {-0.16666665963821187f, 0.008333242135096938f,
                                         -0.00019822739488631103f, 2.634756391811781e-06f};
    static constexpr float asin_rest[] = {0.16666672414795305f, 0.07498855072600821f,
                                          0.04500138006991017f, 0.026554542206161328f,
                                          0.038085023561092654f};
};

template <class V, class T, std::size_t n>
FML_INLINE V polynomial(const V& x, const T (&c)[n]) {
    V sum = broadcast<V>(c[n - 1]);
    FML_UNROLL
    for (int k = static_cast<int>(n) - 2; k >= 0; --k) sum = sum * x + c[k];
    return sum;
}

// y where exp(x) is a normal number. What would be denormal is 0: it would cost more than it tells
// wherever it is used next.
template <class T>
FML_INLINE typename Simd<T>::Vec exp_within(const typename Simd<T>::Vec& x,
                                            const typename Simd<T>::Vec& y) {
    using C = MathConstants<T>;
    using Vec = typename Simd<T>::Vec;
    const Vec above = select(x < C::exp_least, broadcast<Vec>(T(0)), y);
    return select(x <= C::exp_most, above, x * std::numeric_limits<T>::infinity());
}

// 2^n (1 + r + ...) with x = n log 2 + r.
template <class T> FML_INLINE typename Simd<T>::Vec vexp(const typename Simd<T>::Vec& x) {
    using C = MathConstants<T>;
    using Vec = typename Simd<T>::Vec;
    using Index = typename Simd<T>::Index;
    const Vec shifted = x * T(1.4426950408889634) + C::magic;
    const Vec n = shifted - C::magic;
    const Vec r = x - n * C::ln2_high - n * C::ln2_low;
    const Vec p = (r * polynomial(r, C::exp_rest) + T(1)) * r + T(1);
    return exp_within<T>(x, (Vec)((Index)p + ((Index)shifted << C::mantissa)));
}

#if FML_X86_REGIONS && FML_VECTOR_BYTES == 64
// 2^(k / 16)
alignas(64) constexpr double sixteenth_powers[] = {0x1p+0,
                                                   0x1.0b5586cf9890fp+0,
                                                   0x1.172b83c7d517bp+0,
                                                   0x1.2387a6e756238p+0,
                                                   0x1.306fe0a31b715p+0,
                                                   0x1.3dea64c123422p+0,
                                                   0x1.4bfdad5362a27p+0,
                                                   0x1.5ab07dd485429p+0,
                                                   0x1.6a09e667f3bcdp+0,
                                                   0x1.7a11473eb0187p+0,
                                                   0x1.8ace5422aa0dbp+0,
                                                   0x1.9c49182a3f09p+0,
                                                   0x1.ae89f995ad3adp+0,
                                                   0x1.c199bdd85529cp+0,
                                                   0x1.d5818dcfba487p+0,
                                                   0x1.ea4afa2a490dap+0};

// 2^(n / 16) (1 + r + ...) with x = n log 2 / 16 + r: two registers hold the powers that are not
// whole, and r is so small that half the coefficients do.
template <>
FML_INLINE typename Simd<double>::Vec vexp<double>(const typename Simd<double>::Vec& x) {
    using C = MathConstants<double>;
    using Vec = Simd<double>::Vec;
    using Index = Simd<double>::Index;
    // (exp(r) - 1 - r) / r², |r| <= log(2) / 32
    constexpr double rest[] = {0.5000000000000006, 0.16666666664417867, 0.041666666659650256,
                               0.008333471923332397, 0.0013889129090948547};
    const Vec shifted = x * (16 * 1.4426950408889634) + C::magic;
    const Vec n = shifted - C::magic;
    const Vec r = x - n * (C::ln2_high / 16) - n * (C::ln2_low / 16);
    const Vec power = (Vec)_mm512_permutex2var_pd(
        _mm512_load_pd(sixteenth_powers), (__m512i)shifted, _mm512_load_pd(sixteenth_powers + 8));
    const Vec y = power * ((r * polynomial(r, rest) + 1.0) * r) + power;
    const Index whole = ((Index)shifted << (C::mantissa - 4)) & -(std::int64_t{1} << C::mantissa);
    return exp_within<double>(x, (Vec)((Index)y + whole));
}
#endif

template <class T> FML_INLINE typename Simd<T>::Vec vtanh(const typename Simd<T>::Vec& x) {
    using Vec = typename Simd<T>::Vec;
    using Index = typename Simd<T>::Index;
    const Vec size = absolute<T>(x), z = x * x;
    const Vec small = z * size * polynomial(z, MathConstants<T>::tanh_rest) + size;
    const Vec large = T(1) - T(2) / (vexp<T>(size * T(2)) + T(1));
    const Index sign = (Index)x & std::numeric_limits<typename Simd<T>::Int>::min();
    return (Vec)((Index)select(size < T(0.625), small, large) | sign);
}

// n log 2 + log(m), m within sqrt(1/2) and sqrt(2).
template <class T> FML_INLINE typename Simd<T>::Vec vlog(const typename Simd<T>::Vec& x) {
    using C = MathConstants<T>;
    using Vec = typename Simd<T>::Vec;
    using Index = typename Simd<T>::Index;
    using Int = typename Simd<T>::Int;
    constexpr T least = std::numeric_limits<T>::min(), lift = T(Int(1) << C::mantissa);
    const auto denormal = x < least;
    const Vec lifted = select(denormal, x * lift, x);
    const Index root = (Index)broadcast<Vec>(T(0.7071067811865476));
    const Index n = ((Index)lifted - root) >> C::mantissa;
    const Vec f = (Vec)((Index)lifted - (n << C::mantissa)) - T(1);
    const Vec e = (Vec)(n + (Index)broadcast<Vec>(C::magic)) - C::magic -
                  select(denormal, broadcast<Vec>(T(C::mantissa)), broadcast<Vec>(T(0)));
    // 2 atanh(s) = f - f²/2 + s (f²/2 + 2 s² (...)): f is exact, the rest small beside it.
    const Vec s = f / (f + T(2)), z = s * s, half = f * f * T(0.5);
    const Vec rest = z * T(2) * polynomial(z, C::log_rest);
    const Vec y = e * C::ln2_high - ((half - (s * (half + rest) + e * C::ln2_low)) - f);
    const Vec infinite = broadcast<Vec>(std::numeric_limits<T>::infinity());
    const Vec outside =
        select(x >= T(0), -infinite, broadcast<Vec>(std::numeric_limits<T>::quiet_NaN()));
    return select(x > T(0), select(x < infinite, y, x), outside);
}

// sin(x - n π), with its sign where n is odd; of large values the library's.
template <class T> FML_INLINE typename Simd<T>::Vec vsin(const typename Simd<T>::Vec& x) {
    using C = MathConstants<T>;
    using Vec = typename Simd<T>::Vec;
    using Index = typename Simd<T>::Index;
    const Vec shifted = x * T(0.3183098861837907) + C::magic;
    const Vec n = shifted - C::magic;
    const Vec r = x - n * C::pi_high - n * C::pi_middle - n * C::pi_low;
    Vec y = r * r * r * polynomial(r * r, C::sin_rest) + r;
    y = (Vec)((Index)y ^ ((Index)shifted << (8 * static_cast<int>(sizeof(T)) - 1)));
    if (below<T>(broadcast<Vec>(C::sin_most), absolute<T>(x)))
        for (int l = 0; l < Simd<T>::lanes; ++l) y[l] = std::sin(x[l]);
    return y;
}

// 0 <= x <= 1. Above 1/2, π/2 - 2 asin(((1 - x) / 2)^(1/2)).
template <class T> FML_INLINE typename Simd<T>::Vec vasin(const typename Simd<T>::Vec& x) {
    using Vec = typename Simd<T>::Vec;
    const auto large = x > T(0.5);
    const Vec z = select(large, (T(1) - x) * T(0.5), x * x);
    T root[Simd<T>::lanes];
    store(root, z);
    for (int l = 0; l < Simd<T>::lanes; ++l) root[l] = std::sqrt(root[l]);
    const Vec s = select(large, load<Vec>(root), x);
    const Vec y = s * z * polynomial(z, MathConstants<T>::asin_rest) + s;
    return select(large, T(1.5707963267948966) - y * T(2), y);
}

#else

template <class T> inline Lanes<T> vexp(Lanes<T> v) {
    for (int l = 0; l < Lanes<T>::size; ++l) v[l] = std::exp(v[l]);
    return v;
}
template <class T> inline Lanes<T> vtanh(Lanes<T> v) {
    for (int l = 0; l < Lanes<T>::size; ++l) v[l] = std::tanh(v[l]);
    return v;
}
template <class T> inline Lanes<T> vlog(Lanes<T> v) {
    for (int l = 0; l < Lanes<T>::size; ++l) v[l] = std::log(v[l]);
    return v;
}
template <class T> inline Lanes<T> vsin(Lanes<T> v) {
    for (int l = 0; l < Lanes<T>::size; ++l) v[l] = std::sin(v[l]);
    return v;
}
template <class T> inline Lanes<T> vasin(Lanes<T> v) {
    for (int l = 0; l < Lanes<T>::size; ++l) v[l] = std::asin(v[l]);
    return v;
}

#endif

// x >= 0 and y > 0; below 0, NaN.
template <class T>
FML_INLINE typename Simd<T>::Vec vpow(const typename Simd<T>::Vec& x, T y) {
    return vexp<T>(vlog<T>(x) * y);
}

// x^n by squaring, n >= 1.
template <class V> FML_INLINE V vpowi(V x, std::ptrdiff_t n) {
    for (; !(n & 1); n >>= 1) x = x * x;
    V y = x;
    while (n >>= 1) {
        x = x * x;
        if (n & 1) y = y * x;
    }
    return y;
}
