// Whether one of the values is NaN.
inline bool any_missing(const float* x, std::ptrdiff_t n) {
    int any = 0;
#pragma omp simd reduction(| : any)
    for (std::ptrdiff_t j = 0; j < n; ++j) any |= x[j] != x[j];
    return any != 0;
}
