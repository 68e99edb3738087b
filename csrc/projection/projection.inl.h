#include "common/sqdist.inl.h"

#include "common/sparse.inl.h"

template <class T> void lanes_of(std::ptrdiff_t* lanes) { *lanes = Simd<T>::lanes; }

// What `width` rows (n of which are) and all rows of S have in common, for as many rows of S at once
// as a vector has lanes: then the block of results turns around in registers.
template <class T, int vecs>
FML_INLINE void project_panel(const T* panel, std::ptrdiff_t n, const Rows<T>& S, T* out) {
    using Vec = typename Simd<T>::Vec;
    constexpr int lanes = Simd<T>::lanes, width = vecs * lanes;
    const std::ptrdiff_t m = S.n;
    T dots[lanes * width];
    for (std::ptrdiff_t j = 0; j < m; j += lanes) {
        const std::ptrdiff_t here = m - j < lanes ? m - j : lanes;
        for (std::ptrdiff_t i = 0; i < here; ++i)
            row_dots_block<T, vecs>(S, j + i, panel, width, dots + i * width);
        for (std::ptrdiff_t r = 0; r < n; r += lanes) {
            const std::ptrdiff_t rows = n - r < lanes ? n - r : lanes;
            if (here == lanes && rows == lanes) {
                Vec block[lanes];
                FML_UNROLL
                for (int i = 0; i < lanes; ++i) block[i] = load<Vec>(dots + i * width + r);
                transpose<T>(block);
                FML_UNROLL
                for (int i = 0; i < lanes; ++i) store(out + (r + i) * m + j, block[i]);
            } else {
                for (std::ptrdiff_t k = 0; k < rows; ++k)
                    for (std::ptrdiff_t i = 0; i < here; ++i)
                        out[(r + k) * m + j + i] = dots[i * width + r + k];
            }
        }
    }
}

// The same for results by rows of S, `ld` apart.
template <class T, int vecs>
FML_INLINE void project_panel_back(const T* panel, std::ptrdiff_t n, const Rows<T>& S, T* out,
                                   std::ptrdiff_t ld) {
    constexpr int width = vecs * Simd<T>::lanes;
    T dots[width];
    for (std::ptrdiff_t j = 0; j < S.n; ++j, out += ld) {
        if (n == width) {
            row_dots_block<T, vecs>(S, j, panel, width, out);
        } else {
            row_dots_block<T, vecs>(S, j, panel, width, dots);
            for (std::ptrdiff_t r = 0; r < n; ++r) out[r] = dots[r];
        }
    }
}

// Rows [begin, begin + n) of X, n <= vecs * lanes; panel: room for them.
template <class T, int vecs>
void project_block(const Rows<T>& X, std::ptrdiff_t begin, std::ptrdiff_t n, const Rows<T>& S,
                   bool transposed, T* panel, T* out) {
    constexpr int width = vecs * Simd<T>::lanes;
    pack_panel<T, width>(X.data + begin * X.d, X.d, n, X.d, X.shift, panel);
    if (transposed)
        project_panel_back<T, vecs>(panel, n, S, out + begin, X.n);
    else
        project_panel<T, vecs>(panel, n, S, out + begin * S.n);
}
