#include "common/simd.inl.h"

// Row i of a symmetric A (n, n), C order, as a work matrix has it: zero up to the block on the
// diagonal and from n to `stride`. The greatest entry in size from the diagonal on; NaN if one is NaN
// or infinite.
template <class T>
T copy_row(const T* A, std::ptrdiff_t n, std::ptrdiff_t i, std::ptrdiff_t stride, T* out) {
    using Vec = typename Simd<T>::Vec;
    constexpr int lanes = Simd<T>::lanes;
    const std::ptrdiff_t block = i / diagonal_block<T> * diagonal_block<T>;
    const T* row = A + i * n;
    for (std::ptrdiff_t j = 0; j < block; ++j) out[j] = 0;
    for (std::ptrdiff_t j = block; j < i; ++j) out[j] = A[j * n + i];
    Vec most = {}, wrong = {};
    std::ptrdiff_t j = i;
    for (; j + lanes <= n; j += lanes) {
        const Vec here = load<Vec>(row + j);
        store(out + j, here);
        most = maximum<T>(absolute<T>(here), most);
        wrong += here * T(0);  // NaN for NaN and infinity
    }
    T greatest = 0, sum = 0;
    for (int l = 0; l < lanes; ++l) {
        greatest = most[l] > greatest ? most[l] : greatest;
        sum += wrong[l];
    }
    for (; j < n; ++j) {
        out[j] = row[j];
        greatest = std::abs(row[j]) > greatest ? std::abs(row[j]) : greatest;
        sum += row[j] * 0;
    }
    for (; j < stride; ++j) out[j] = 0;
    return sum == 0 ? greatest : std::numeric_limits<T>::quiet_NaN();
}
