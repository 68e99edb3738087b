#include "common/sqdist.inl.h"
#include "common/math.inl.h"
#include "pairwise/ops.inl.h"
#include "pairwise/finish.inl.h"
#include "pairwise/sinks.inl.h"
#include "pairwise/dense.inl.h"
#include "pairwise/sparse.inl.h"

template <class T> struct Exp {
    template <class V> FML_INLINE V operator()(const V& x) const { return vexp<T>(x); }
};
template <class T> struct Log {
    template <class V> FML_INLINE V operator()(const V& x) const { return vlog<T>(x); }
};
template <class T> struct Tanh {
    template <class V> FML_INLINE V operator()(const V& x) const { return vtanh<T>(x); }
};
template <class T> struct Pow {
    T n;
    template <class V> FML_INLINE V operator()(const V& x) const { return vpow<T>(x, n); }
};
template <class T> struct Sin {
    template <class V> FML_INLINE V operator()(const V& x) const { return vsin<T>(x); }
};
template <class T> struct Asin {
    template <class V> FML_INLINE V operator()(const V& x) const { return vasin<T>(x); }
};
template <class T, class F>
void over_values(const F& f, const T* x, std::ptrdiff_t n, T* out) {
    using Vec = typename Simd<T>::Vec;
    constexpr int lanes = Simd<T>::lanes;
    std::ptrdiff_t i = 0;
    for (; i + lanes <= n; i += lanes) store(out + i, f(load<Vec>(x + i)));
    T rest[lanes] = {};
    std::memcpy(rest, x + i, (n - i) * sizeof(T));
    store(rest, f(load<Vec>(rest)));
    std::memcpy(out + i, rest, (n - i) * sizeof(T));
}
template <class T>
void elementary_block(Elementary function, const T* x, std::ptrdiff_t n, T parameter, T* out) {
    switch (function) {
        case Elementary::exp:
            return over_values(Exp<T>{}, x, n, out);
        case Elementary::log:
            return over_values(Log<T>{}, x, n, out);
        case Elementary::tanh:
            return over_values(Tanh<T>{}, x, n, out);
        case Elementary::pow:
            return over_values(Pow<T>{parameter}, x, n, out);
        case Elementary::sin:
            return over_values(Sin<T>{}, x, n, out);
        case Elementary::asin:
            return over_values(Asin<T>{}, x, n, out);
    }
}
