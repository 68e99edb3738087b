#pragma once
#include <cstddef>
#include <cstdint>

#include "common/pool.h"
#include "common/rows.h"

// A quantity of every pair of a row of X (n, d) and a row of Y (m, d): Gram matrices, distances, and
// what is made of them without their being formed. Valid input means: n, m, d >= 1; CSR rows sorted
// by column, without duplicates; X and Y both dense, or X in CSR and Y of either kind. Sparse rows, in either precision,
// are gathered in double; dense ones in T.
//
// Results do not depend on n_threads. Ties go to the lower row of Y. NaN gives NaN where the
// formula has it so; nan_euclidean leaves coordinates out, and so does chebyshev, as SciPy does.
namespace fastml {

enum class Metric : int {
    // kernels
    linear,
    polynomial,     // (gamma x·y + coef0)^degree; by multiplication if the degree is whole
    sigmoid,        // tanh(gamma x·y + coef0)
    cosine,         // x·y / (|x| |y|); 0 if either is 0
    rbf,            // exp(-gamma |x - y|²)
    laplacian,      // exp(-gamma |x - y|₁)
    chi2,           // exp(-gamma Σ (x - y)² / (x + y)), x and y >= 0
    additive_chi2,  // -Σ (x - y)² / (x + y)
    intersection,   // Σ min(x, y), x and y >= 0
    normalized_intersection,  // the same over the root of its values at (x, x) and (y, y)
    // distances
    euclidean,
    sqeuclidean,
    manhattan,
    chebyshev,
    minkowski,  // (Σ |x - y|^degree)^(1 / degree)
    cosine_distance,
    haversine,      // d = 2: latitude and longitude
    nan_euclidean,  // over what neither lacks, scaled up to d; NaN if that is nothing
    nan_sqeuclidean,
    braycurtis,  // Σ |x - y| / Σ |x + y|
    relative,    // Σ |x - y| / Σ (|x| + |y|): the same without negative values; 0 if both are 0
    canberra,
    hamming,  // what is unequal weighs, of the weight of all coordinates
};

struct Measure {
    Metric metric;
    double gamma, coef0, degree;
    const double* weights;  // hamming, canberra: of the d coordinates; or null
    bool
        by_differences;  // (sq)euclidean: even where dots are faster, for rows with NaN or infinity
};

// Whether CSR rows will do. `nearest` takes them as well by chebyshev, minkowski, relative and
// canberra, if they are CSR on both sides and in order of columns.
bool takes_sparse(Metric metric) noexcept;

// out (n, m). With symmetric, Y is X: half the work, an exactly symmetric result, and on the
// diagonal exactly 1 (rbf, laplacian, chi2) or 0 (distances). With transposed, out is (m, n).
template <class T>
Status gram(const Rows<T>& X, const Rows<T>& Y, const Measure& measure, bool symmetric,
            bool transposed, T* out, int n_threads) noexcept;

// For every row of X the nearest row of Y, and how far it is.
template <class T>
Status nearest(const Rows<T>& X, const Rows<T>& Y, const Measure& measure, std::int64_t* index,
               double* distance, int n_threads) noexcept;

// out (n, r) = K V, V (m, r), one block of K at a time.
template <class T>
Status gram_apply(const Rows<T>& X, const Rows<T>& Y, const Measure& measure, const T* V,
                  std::ptrdiff_t r, double* out, int n_threads) noexcept;

// Y as the kernels read it, laid out once for many calls. Whose memory it is does not matter.
template <class T> struct Packed {
    Rows<T> Y;
    Measure measure;
    T *panels, *norms, *sizes, *shift;  // dense
    double *values, *long_norms;        // CSR
    std::int32_t* rows;
    std::ptrdiff_t* starts;
};

// How many of each that is: of panels, norms, sizes and shift, or of values, norms, rows and starts.
struct PackedSizes {
    std::ptrdiff_t of[4];
};
template <class T> PackedSizes packed_sizes(const Rows<T>& Y, const Measure& measure) noexcept;

// Fills the arrays; X will be dense or CSR as Y is. The rows of Y are still read afterwards.
template <class T> Status pack(Packed<T>& packed, int n_threads) noexcept;

// out (n, segments, r): K V for each segment of the rows of Y apart, of which segment s ends before
// row ends[s]; V (m, r). Faster where r is 1 or whole vectors.
template <class T>
Status packed_apply(const Rows<T>& X, const Packed<T>& packed, const T* V, std::ptrdiff_t r,
                    const std::ptrdiff_t* ends, std::ptrdiff_t segments, double* out,
                    int n_threads) noexcept;

// out = exp, log, tanh, x^parameter, sin or asin of n values: for tests.
enum class Elementary : int { exp, log, tanh, pow, sin, asin };
template <class T>
void elementary(Elementary function, const T* x, std::ptrdiff_t n, T parameter, T* out) noexcept;

}  // namespace fastml
