// The least of n values so far apart; adds to others how many are not finite.
template <class T>
T least_of(const T* x, std::ptrdiff_t n, std::ptrdiff_t apart, std::ptrdiff_t& others) {
    constexpr T most = std::numeric_limits<T>::max();
    T least = most;
    std::ptrdiff_t count = 0;
    if (apart == 1) {
#pragma omp simd reduction(min : least) reduction(+ : count)
        for (std::ptrdiff_t i = 0; i < n; ++i) {
            least = x[i] < least ? x[i] : least;
            count += !(std::fabs(x[i]) <= most);
        }
    } else {
        for (std::ptrdiff_t i = 0; i < n; ++i) {
            least = x[i * apart] < least ? x[i * apart] : least;
            count += !(std::fabs(x[i * apart]) <= most);
        }
    }
    others += count;
    return least;
}
