#include "eigen/product.inl.h"

// f(x) = 1 / rho + sum of z_j² / (d_j - x): what there is of it left and right of a gap.
template <class T> struct Side {
    T sum, slope;
};

// d_j less x, where x = origin + tau.
template <class T>
FML_INLINE Side<T> side(const T* d, const T* z, std::ptrdiff_t begin, std::ptrdiff_t end, T origin,
                        T tau) {
    using Vec = typename Simd<T>::Vec;
    constexpr int lanes = Simd<T>::lanes;
    Vec sum[2] = {}, slope[2] = {};
    std::ptrdiff_t j = begin;
    for (; j + 2 * lanes <= end; j += 2 * lanes) {
        FML_UNROLL
        for (int s = 0; s < 2; ++s) {
            const Vec zj = load<Vec>(z + j + s * lanes);
            const Vec part = zj / (load<Vec>(d + j + s * lanes) - origin - tau);
            sum[s] += zj * part;
            slope[s] += part * part;
        }
    }
    Side<T> found{sum_of_lanes<T>(sum[0] + sum[1]), sum_of_lanes<T>(slope[0] + slope[1])};
    for (; j < end; ++j) {
        const T part = z[j] / (d[j] - origin - tau);
        found.sum += z[j] * part;
        found.slope += part * part;
    }
    return found;
}

// The root of c x² - a x + b that is the lesser in size, or the only one.
template <class T> FML_INLINE T lesser_root(T a, T b, T c) {
    const T square = a * a - 4 * b * c, root = square > 0 ? std::sqrt(square) : T(0);
    return a > 0 ? 2 * b / (a + root) : (a - root) / (2 * c);
}

// Root i of f, of k, between d_i and d_{i+1}, or right of the last: as an offset from d[*origin], the
// nearer of the two, so that its distance to each pole is known to its last digits. `most`: the sum
// of squares of z, times rho. By rational interpolation in both neighbours (Li, LAPACK Working Note
// 89), kept between bounds.
template <class T>
T secular_root(const T* d, const T* z, std::ptrdiff_t k, std::ptrdiff_t i, T rho, T most,
               std::ptrdiff_t* origin) {
    constexpr T eps = std::numeric_limits<T>::epsilon();
    *origin = i;
    if (k == 1) return most;
    const T one = 1 / rho;
    const bool last = i + 1 == k;
    const std::ptrdiff_t p = last ? i - 1 : i, q = p + 1;
    const T gap = d[q] - d[p], zp = z[p] * z[p], zq = z[q] * z[q];
    T low = 0, high = last ? most * (1 + 4 * eps) : gap / 2;
    const T middle = high / (last ? 2 : 1);
    const T rest =
        one + side(d, z, 0, p, d[i], middle).sum + side(d, z, q + 1, k, d[i], middle).sum;
    T tau;
    if (last || rest - 2 * zp / gap + 2 * zq / gap < 0) {
        const T a = zp + zq - rest * gap, b = zq * gap;
        if (!last) {
            *origin = q;
            low = -gap / 2;
            high = 0;
            tau = lesser_root(a, -b, rest);
        } else {
            const T square = a * a + 4 * b * rest, root = square > 0 ? std::sqrt(square) : T(0);
            tau = a >= 0 ? (a + root) / (2 * rest) : 2 * b / (root - a);
        }
    } else {
        tau = lesser_root(rest * gap + zp + zq, zp * gap, rest);
    }
    const T base = d[*origin];
    if (!(tau > low && tau < high)) tau = (low + high) / 2;
    for (int step = 0; step < 80; ++step) {
        const Side<T> left = side(d, z, 0, q, base, tau), right = side(d, z, q, k, base, tau);
        const T f = one + left.sum + right.sum, slope = left.slope + right.slope;
        const T size =
            one + (left.sum < 0 ? -left.sum : left.sum) + (right.sum < 0 ? -right.sum : right.sum);
        const T error = eps * (8 * size + (tau < 0 ? -tau : tau) * slope);
        if (!(f > error || f < -error)) break;
        (f < 0 ? low : high) = tau;
        const T dp = d[p] - base - tau, dq = d[q] - base - tau;
        const T a = (dp + dq) * f - dp * dq * slope, b = dp * dq * f;
        T move;
        if (last) {
            T c = f - dp * left.slope - dq * right.slope;
            if (c < 0) c = -c;
            const T square = a * a - 4 * b * c, root = square > 0 ? std::sqrt(square) : T(0);
            move = a >= 0 ? (a + root) / (2 * c) : 2 * b / (a - root);
        } else {
            const T near = *origin == p ? z[p] / dp : z[q] / dq;
            const T c = *origin == p ? f - dq * slope + gap * near * near
                                     : f - dp * slope - gap * near * near;
            move = lesser_root(a, b, c);
        }
        if (!(f * move < 0)) move = -f / slope;
        T next = tau + move;
        if (!(next > low && next < high)) next = (low + high) / 2;
        if (next == tau || !(next > low && next < high)) break;
        tau = next;
    }
    return tau;
}

// For poles [begin, end): z² for which the roots are exact (Gu and Eisenstat), from k of them, each
// as an offset `tau` from `base`; with the sign of z.
template <class T>
void secular_weights(const T* d, const T* z, std::ptrdiff_t k, const T* base, const T* tau,
                     std::ptrdiff_t begin, std::ptrdiff_t end, T* out) {
    using Vec = typename Simd<T>::Vec;
    constexpr int lanes = Simd<T>::lanes, vecs = 2, width = vecs * lanes;
    for (std::ptrdiff_t j = begin; j < end; j += width) {
        T own[width];
        for (int l = 0; l < width; ++l) own[l] = d[j + l < end ? j + l : end - 1];
        Vec pole[vecs], product[vecs];
        FML_UNROLL
        for (int v = 0; v < vecs; ++v) {
            pole[v] = load<Vec>(own + v * lanes);
            product[v] = broadcast<Vec>(T(1));
        }
        const std::ptrdiff_t here = end - j < width ? end - j : width;
        for (std::ptrdiff_t i = 0; i < k; ++i) {
            if (i == j) i += here;
            if (i >= k) break;
            FML_UNROLL
            for (int v = 0; v < vecs; ++v)
                product[v] = product[v] * ((pole[v] - base[i] - tau[i]) / (pole[v] - d[i]));
        }
        T found[width];
        FML_UNROLL
        for (int v = 0; v < vecs; ++v) store(found + v * lanes, product[v]);
        for (std::ptrdiff_t l = 0; l < here; ++l) {
            T square = found[l];
            for (std::ptrdiff_t i = j; i < j + here; ++i) {
                square *= own[l] - base[i] - tau[i];
                if (i != j + l) square /= own[l] - d[i];
            }
            const T root = std::sqrt(square < 0 ? -square : square);
            out[j + l] = z[j + l] < 0 ? -root : root;
        }
    }
}

// The eigenvector for one root: z_j / (d_j - base - tau), of length 1.
template <class T>
FML_INLINE void secular_vector(const T* d, const T* z, std::ptrdiff_t k, T base, T tau, T* out) {
    T square = 0;
#pragma omp simd reduction(+ : square)
    for (std::ptrdiff_t j = 0; j < k; ++j) {
        const T u = z[j] / (d[j] - base - tau);
        out[j] = u;
        square += u * u;
    }
    const T factor = 1 / std::sqrt(square);
    for (std::ptrdiff_t j = 0; j < k; ++j) out[j] *= factor;
}

// Of `depth` rows of Q that begin at `from[p]`, columns [c, c + cols), tile_cols at most.
template <class T>
void pack_rows(const T* Q, std::ptrdiff_t stride, const std::ptrdiff_t* from, std::ptrdiff_t depth,
               std::ptrdiff_t c, std::ptrdiff_t cols, T* out) {
    for (std::ptrdiff_t p = 0; p < depth; ++p, out += tile_cols<T>) {
        const T* row = Q + from[p] * stride + c;
        if (cols == tile_cols<T>) {
            for (int r = 0; r < tile_cols<T>; ++r) out[r] = row[r];
        } else {
            for (std::ptrdiff_t r = 0; r < tile_cols<T>; ++r) out[r] = r < cols ? row[r] : T(0);
        }
    }
}

// out[i][0, n) = row i of U (ld) times all panels of a matrix (depth, n); zeros if depth is 0.
template <class T>
void merge_rows(const T* U, std::ptrdiff_t ld, std::ptrdiff_t rows, const T* panels,
                std::ptrdiff_t depth, std::ptrdiff_t n, T* const* out) {
    if (depth == 0)
        for (std::ptrdiff_t i = 0; i < rows; ++i) std::memset(out[i], 0, sizeof(T) * n);
    for (std::ptrdiff_t p = 0; p < depth; p += tile_depth<T>) {
        const std::ptrdiff_t here = depth - p < tile_depth<T> ? depth - p : tile_depth<T>;
        for (std::ptrdiff_t c = 0; c < n; c += tile_cols<T>) {
            const std::ptrdiff_t cols = n - c < tile_cols<T> ? n - c : tile_cols<T>;
            const T* b = panels + c * depth + p * tile_cols<T>;
            for (std::ptrdiff_t i = 0; i < rows; i += tile_rows) {
                T* to[tile_rows];
                for (int r = 0; r < tile_rows; ++r)
                    to[r] = out[i + r < rows ? i + r : rows - 1] + c;
                if (p == 0)
                    rows_times_any<T, Into::write>(U + i * ld + p, ld, rows - i, b, here, to, cols);
                else
                    rows_times_any<T, Into::add>(U + i * ld + p, ld, rows - i, b, here, to, cols);
            }
        }
    }
}

// (x, y) = (c x + s y, c y - s x)
template <class T> void turn_rows(T* x, T* y, std::ptrdiff_t n, T c, T s) {
#pragma omp simd
    for (std::ptrdiff_t j = 0; j < n; ++j) {
        const T a = x[j], b = y[j];
        x[j] = c * a + s * b;
        y[j] = c * b - s * a;
    }
}

// The eigenpair of greater size of [[a, b], [b, c]], b not 0, and the other value; (c1, s1) of length
// 1. Where a and c are equal to rounding, so are its entries in size: a step of QL is less even.
template <class T> void pair_of_two(T a, T b, T c, T* first, T* second, T* c1, T* s1) {
    T off = a - c;
    const T sum = a + c, twice = 2 * b, half = twice < 0 ? -twice : twice;
    // Not told from 0 by the rounding of what a and c come from.
    if (off * off <=
        16 * std::numeric_limits<T>::epsilon() * std::numeric_limits<T>::epsilon() * twice * twice)
        off = 0;
    const T gap = off < 0 ? -off : off, top = gap > half ? gap : half,
            less = gap > half ? half : gap;
    const T root = top * std::sqrt(1 + (less / top) * (less / top));
    const bool a_greater = (a < 0 ? -a : a) > (c < 0 ? -c : c);
    *first = sum < 0 ? (sum - root) / 2 : (sum + root) / 2;
    *second = sum == 0 ? -root / 2
                       : ((a_greater ? a : c) / *first) * (a_greater ? c : a) - (b / *first) * b;
    const T cs = off >= 0 ? off + root : off - root;
    if ((cs < 0 ? -cs : cs) > half) {
        const T ct = -twice / cs;
        *s1 = 1 / std::sqrt(1 + ct * ct);
        *c1 = ct * *s1;
    } else {
        const T tn = -cs / twice;
        *c1 = 1 / std::sqrt(1 + tn * tn);
        *s1 = tn * *c1;
    }
    if ((sum < 0) == (off < 0)) {
        const T keep = *c1;
        *c1 = -*s1;
        *s1 = keep;
    }
}

// Eigenvalues and vectors of a small tridiagonal matrix, unsorted, by implicit QL steps, which turn
// rows of Q (m, m), the identity before. e has room for m values.
template <class T> void small_tridiagonal(T* d, T* e, std::ptrdiff_t m, T* Q, std::ptrdiff_t ld) {
    constexpr T eps = std::numeric_limits<T>::epsilon();
    T size = 0;
    for (std::ptrdiff_t i = 0; i < m; ++i) {
        const T a = d[i] < 0 ? -d[i] : d[i], b = i + 1 < m ? (e[i] < 0 ? -e[i] : e[i]) : T(0);
        size = a > size ? a : size;
        size = b > size ? b : size;
    }
    for (std::ptrdiff_t l = 0; l < m; ++l) {
        for (int step = 0; step < 100; ++step) {
            std::ptrdiff_t end = l;
            for (; end + 1 < m; ++end) {
                const T here = d[end] < 0 ? -d[end] : d[end];
                const T next = d[end + 1] < 0 ? -d[end + 1] : d[end + 1];
                const T off = e[end] < 0 ? -e[end] : e[end];
                // By their product: small eigenvalues of graded matrices keep digits.
                if (off <= eps / 2 * std::sqrt(here) * std::sqrt(next) || off <= eps * eps * size)
                    break;
            }
            if (end == l) break;
            if (end == l + 1) {
                T c1, s1;
                pair_of_two(d[l], e[l], d[end], d + l, d + end, &c1, &s1);
                turn_rows(Q + l * ld, Q + end * ld, m, c1, s1);
                e[l] = 0;
                break;
            }
            T g = (d[l + 1] - d[l]) / (2 * e[l]);
            T r = std::sqrt(g * g + 1);
            g = d[end] - d[l] + e[l] / (g + (g < 0 ? -r : r));
            T s = 1, c = 1, p = 0;
            std::ptrdiff_t i = end - 1;
            for (; i >= l; --i) {
                const T f = s * e[i], b = c * e[i];
                const T af = f < 0 ? -f : f, ag = g < 0 ? -g : g, top = af > ag ? af : ag;
                r = top == 0 ? T(0)
                             : top * std::sqrt((f / top) * (f / top) + (g / top) * (g / top));
                e[i + 1] = r;
                if (r == 0) {
                    d[i + 1] -= p;
                    e[end] = 0;
                    break;
                }
                s = f / r;
                c = g / r;
                g = d[i + 1] - p;
                r = (d[i] - g) * s + 2 * c * b;
                p = s * r;
                d[i + 1] = g + p;
                g = c * r - b;
                turn_rows(Q + (i + 1) * ld, Q + i * ld, m, c, s);
            }
            if (r == 0 && i >= l) continue;
            d[l] -= p;
            e[l] = g;
            e[end] = 0;
        }
    }
}
