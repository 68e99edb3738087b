// A value that at least k of n bounds reach or stay below, and by bisection not many more; infinity
// if fewer are finite.
template <class F>
F about_kth(const F* bounds, std::ptrdiff_t n, std::ptrdiff_t k) {
    constexpr F infinity = std::numeric_limits<F>::infinity();
    F low = infinity, high = -infinity;
    std::int32_t finite = 0;
#pragma omp simd reduction(min : low) reduction(max : high) reduction(+ : finite)
    for (std::ptrdiff_t j = 0; j < n; ++j) {
        low = bounds[j] < low ? bounds[j] : low;
        const F known = bounds[j] < infinity ? bounds[j] : -infinity;
        high = known > high ? known : high;
        finite += bounds[j] < infinity;
    }
    if (finite < k) return infinity;
    for (int step = 0; step < 12; ++step) {
        const F middle = low + (high - low) * F(0.5);
        std::int32_t count = 0;
#pragma omp simd reduction(+ : count)
        for (std::ptrdiff_t j = 0; j < n; ++j) count += bounds[j] <= middle;
        if (count < k) {
            low = middle;
        } else {
            high = middle;
            if (count <= k + k / 8) break;
        }
    }
    return high;
}
