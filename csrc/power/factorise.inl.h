// Cholesky's factor of a small matrix and its inverse, row by row: both are sums of rows. Not by LAPACK,
// whose threads go on spinning, and take a processor from ours, for longer than this takes.
inline void add_row(double* to, const double* from, double times, std::ptrdiff_t n) {
#pragma omp simd
    for (std::ptrdiff_t j = 0; j < n; ++j) to[j] += from[j] * times;
}

inline bool factorise_block(std::ptrdiff_t k, double* R, double* inverse) {
    for (std::ptrdiff_t p = 0; p < k; ++p) {
        double* const row = R + p * k;
        if (!(row[p] > 0)) return false;
        const double scale = 1 / std::sqrt(row[p]);
        for (std::ptrdiff_t j = 0; j < k; ++j) row[j] = j < p ? 0 : row[j] * scale;
        for (std::ptrdiff_t i = p + 1; i < k; ++i) add_row(R + i * k + i, row + i, -row[i], k - i);
    }
    for (std::ptrdiff_t p = k; p-- > 0;) {
        double* const row = inverse + p * k;
        row[p] = 1;
        for (std::ptrdiff_t j = p + 1; j < k; ++j)
            add_row(row + j, inverse + j * k + j, -R[p * k + j], k - j);
        for (std::ptrdiff_t j = p; j < k; ++j) row[j] /= R[p * k + p];
    }
    return true;
}
