// Tells how the values of a piece of a column lie to a bracket, and writes those inside it to
// `inside`, which has room for all of them. Returns how many those are.
template <class T>
std::ptrdiff_t classify_block(const T* x, std::ptrdiff_t n, Bracket<T>& bracket, T* inside) {
    const T low = bracket.low, high = bracket.high;
    Bits<T> less = 0, at_low = 0, at_high = 0;
#pragma omp simd reduction(+ : less, at_low, at_high)
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        less += x[i] < low;
        at_low += x[i] == low;
        at_high += x[i] == high;
    }
    bracket.less += less;
    bracket.at_low += at_low;
    bracket.at_high += at_high;
    std::ptrdiff_t found = 0;
    for (std::ptrdiff_t i = 0; i < n; ++i) {  // no branch: it would be guessed wrong
        inside[found] = x[i];
        found += (x[i] > low) & (x[i] < high);
    }
    return found;
}

template <class T>
void survey_block(const T* x, std::ptrdiff_t n, std::ptrdiff_t& missing, bool& infinite) {
    Bits<T> nan = 0, inf = 0;
#pragma omp simd reduction(+ : nan, inf)
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        nan += x[i] != x[i];
        inf += std::fabs(x[i]) == std::numeric_limits<T>::infinity();
    }
    missing += nan;
    infinite |= inf != 0;
}
