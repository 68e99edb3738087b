// The least of n values is kept in *least; returns their sum. NaN and infinity make that NaN or infinite.
template <class T> double survey_block(const T* x, std::ptrdiff_t n, T* least) {
    T below = *least;
    double sum = 0;
#pragma omp simd reduction(min : below) reduction(+ : sum)
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        below = x[i] < below ? x[i] : below;
        sum += x[i];
    }
    *least = below;
    return sum;
}
