// Numbers for rows, equal where rows are; see merging.cpp.

// The halves of a number together, since small whole ones differ in the upper half alone.
inline std::uint64_t folded(double x) {
    std::uint64_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    return static_cast<std::uint32_t>(bits ^ bits >> 32);
}
inline std::uint64_t folded(float x) {
    std::uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits;
}

// out[i - begin] of rows [begin, end) with their targets b: the sum of entries times the number of
// their columns, and of b times the last one. keys (d + 1). Zeros count nothing.
template <class T>
void keys_block(const Rows<T>& X, const double* b, const std::uint32_t* keys, std::ptrdiff_t begin,
                std::ptrdiff_t end, std::uint64_t* out) {
    for (std::ptrdiff_t i = begin; i < end; ++i) {
        std::uint64_t sum = folded(b[i]) * keys[X.d];
        if (X.indptr) {
            for (std::int32_t q = X.indptr[i]; q < X.indptr[i + 1]; ++q)
                sum += folded(X.data[q]) * keys[X.indices[q]];
        } else {
            const T* x = X.data + i * X.d;
#pragma omp simd reduction(+ : sum)
            for (std::ptrdiff_t p = 0; p < X.d; ++p) sum += folded(x[p]) * keys[p];
        }
        out[i - begin] = sum;
    }
}
