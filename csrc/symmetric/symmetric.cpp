#include "symmetric/symmetric.h"

// std headers come before any target region
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "common/blocks.h"
#include "common/isa.h"
#include "common/scratch.h"

#define FML_KERNEL "symmetric/symmetric.inl.h"
#include "common/foreach_isa.h"

namespace fastml {

namespace {

// Each block of rows has sums of its own: for few rows, few blocks. Multiples of 8 rows.
constexpr ptrdiff_t most_blocks = 16, least_rows = 256;
constexpr ptrdiff_t sum_rows = 256, strand_rows = 512;  // of a strip, in sums and in products

// Passes over the strips of n rows; body(strip, first row, rows). work: multiply-adds of them all.
template <class Body>
Status over_strips(ptrdiff_t n, ptrdiff_t rows, double work, int n_threads, const Body& body) {
    return parallel(ceil_div(n, rows), threads_awake(work, n_threads),
                    [&](ptrdiff_t s, int) { body(s, s * rows, std::min(rows, n - s * rows)); });
}

// The same where body(first row, rows, sums) adds to `size` sums, which are zero before the first.
template <class Body>
Status sum_over_strips(ptrdiff_t n, ptrdiff_t rows, ptrdiff_t size, double work, int n_threads,
                       double* total, const Body& body) {
    const ptrdiff_t strips = ceil_div(n, rows);
    Scratch<double> parts(strips * size);
    if (!parts) return Status::no_memory;
    const Status status =
        over_strips(n, rows, work, n_threads, [&](ptrdiff_t s, ptrdiff_t i, ptrdiff_t count) {
            std::fill_n(parts.get() + s * size, size, 0.0);
            body(i, count, parts.get() + s * size);
        });
    if (status == Status::ok) add_parts(parts.get(), strips, size, total);
    return status;
}

// K V in parts, each of a block of rows that has sums of its own.
template <class T> class Products {
    static constexpr ptrdiff_t width = symmetric_width<T>;

  public:
    Products(const T* K, ptrdiff_t n, int n_threads)
        : K_(K), n_(n), blocks_(std::min(most_blocks, ceil_div(n, least_rows))),
          work_(static_cast<double>(n) * n * width), n_threads_(n_threads),
          parts_(blocks_ * n * width) {}

    explicit operator bool() const { return static_cast<bool>(parts_); }

    Status run(const T* V) const {
        const auto block = FML_PICK(symmetric_block<T>);
        return parallel(blocks_, threads_for(work_, n_threads_), [&](ptrdiff_t b, int) {
            T* sums = parts_.get() + b * n_ * width;
            std::fill_n(sums, first(b + 1) * width, T(0));
            block(K_, n_, first(b), first(b + 1), V, sums);
        });
    }

    // out = the parts' sum less the row `less`; and the sums of its columns.
    Status finish(const double* less, T* out, double* columns) const {
        const auto add = FML_PICK(add_to_sums<T>);
        const auto close = FML_PICK(close_sums<T>);
        return sum_over_strips(n_, sum_rows, width, work_, n_threads_, columns,
                               [&](ptrdiff_t i, ptrdiff_t rows, double* of_columns) {
                                   double sums[sum_rows * width];
                                   for (ptrdiff_t r = 0; r < rows; ++r)
                                       for (ptrdiff_t c = 0; c < width; ++c)
                                           sums[r * width + c] = -less[c];
                                   for (ptrdiff_t b = blocks_ - 1; b >= 0 && first(b + 1) > i; --b)
                                       add(parts_.get() + (b * n_ + i) * width,
                                           std::min(rows, first(b + 1) - i) * width, sums);
                                   close(sums, rows, out + i * width, of_columns);
                               });
    }

  private:
    // Rows up to b of B hold b² of B² parts of the triangle.
    ptrdiff_t first(ptrdiff_t b) const {
        const double share = std::sqrt(static_cast<double>(b) / blocks_);
        return b == blocks_ ? n_ : static_cast<ptrdiff_t>(share * n_) / 8 * 8;
    }

    const T* K_;
    ptrdiff_t n_, blocks_;
    double work_;
    int n_threads_;
    Scratch<T> parts_;
};

// C (count, width, width) = B' W for V's strands B.
template <class T>
Status dots(const T* V, ptrdiff_t count, ptrdiff_t n, const T* W, double* C, int n_threads) {
    constexpr ptrdiff_t width = symmetric_width<T>, square = width * width;
    const auto dot = FML_PICK(strands_dot_block<T>);
    return sum_over_strips(n, strand_rows, count * square, 1.0 * count * n * square, n_threads, C,
                           [&](ptrdiff_t i, ptrdiff_t rows, double* sums) {
                               for (ptrdiff_t b = 0; b < count; ++b)
                                   dot(V + (b * n + i) * width, W + i * width, rows,
                                       sums + b * square);
                           });
}

// R (b, b), upper triangular, with G = R' R, and its inverse; or false, where R would be too near to
// a singular one. Below the diagonals nothing is written.
bool triangle(const double* G, ptrdiff_t b, double* R, double* inverse) {
    constexpr double near_singular = 1e-3;
    double least = std::numeric_limits<double>::infinity(), most = 0;
    for (ptrdiff_t j = 0; j < b; ++j) {
        for (ptrdiff_t i = 0; i <= j; ++i) {
            double sum = G[i * b + j];
            for (ptrdiff_t p = 0; p < i; ++p) sum -= R[p * b + i] * R[p * b + j];
            if (i == j && !(sum > 0)) return false;
            R[i * b + j] = i < j ? sum / R[i * b + i] : std::sqrt(sum);
        }
        least = std::min(least, R[j * b + j]);
        most = std::max(most, R[j * b + j]);
    }
    for (ptrdiff_t j = 0; j < b; ++j) {
        inverse[j * b + j] = 1 / R[j * b + j];
        for (ptrdiff_t i = j - 1; i >= 0; --i) {
            double sum = 0;
            for (ptrdiff_t p = i + 1; p <= j; ++p) sum += R[i * b + p] * inverse[p * b + j];
            inverse[i * b + j] = -sum / R[i * b + i];
        }
    }
    return least >= near_singular * most;
}

// W'W (b, b) of the s strands of W.
template <class T>
Status gram(const T* W, ptrdiff_t s, ptrdiff_t n, double* G, int n_threads) {
    constexpr ptrdiff_t width = symmetric_width<T>;
    const ptrdiff_t b = s * width;
    Scratch<double> C(b * width);
    if (!C) return Status::no_memory;
    for (ptrdiff_t j = 0; j < s; ++j) {
        const Status status = dots(W, s, n, W + j * n * width, C.get(), n_threads);
        if (status != Status::ok) return status;
        for (ptrdiff_t i = 0; i < b; ++i)
            std::copy_n(C.get() + i * width, width, G + i * b + j * width);
    }
    return Status::ok;
}

}  // namespace

template <class T>
Status symmetric_times(const T* K, ptrdiff_t n, const T* V, T* out, int n_threads) noexcept {
    Products<T> products(K, n, n_threads);
    if (!products) return Status::no_memory;
    const Status status = products.run(V);
    const double nothing[symmetric_width<T>] = {};
    double columns[symmetric_width<T>];
    return status == Status::ok ? products.finish(nothing, out, columns) : status;
}

template <class T>
Status centred_times(const T* K, ptrdiff_t n, const T* means, const T* V, T* out,
                     int n_threads) noexcept {
    constexpr ptrdiff_t width = symmetric_width<T>;
    Products<T> products(K, n, n_threads);
    Scratch<T> centred(n * width);
    if (!products || !centred) return Status::no_memory;
    const auto add = FML_PICK(add_columns<T>);
    const auto less = FML_PICK(less_row<T>);
    const double work = static_cast<double>(n) * width;
    double columns[width], known[width];
    Status status = sum_over_strips(n, sum_rows, width, work, n_threads, columns,
                                    [&](ptrdiff_t i, ptrdiff_t rows, double* sums) {
                                        add(V + i * width, nullptr, rows, sums);
                                    });
    if (status != Status::ok) return status;
    for (double& column : columns) column /= static_cast<double>(n);
    status = sum_over_strips(n, sum_rows, width, work, n_threads, known,
                             [&](ptrdiff_t i, ptrdiff_t rows, double* sums) {
                                 T* to = centred.get() + i * width;
                                 less(V + i * width, columns, rows, to);
                                 add(to, means + i, rows, sums);
                             });
    if (status == Status::ok) status = products.run(centred.get());
    if (status == Status::ok) status = products.finish(known, out, columns);
    if (status != Status::ok) return status;
    for (double& column : columns) column /= static_cast<double>(n);
    return over_strips(n, sum_rows, work, n_threads, [&](ptrdiff_t, ptrdiff_t i, ptrdiff_t rows) {
        less(out + i * width, columns, rows, out + i * width);
    });
}

template <class T>
Status project_out(const T* V, ptrdiff_t count, ptrdiff_t n, T* W, double* C,
                   int n_threads) noexcept {
    constexpr ptrdiff_t width = symmetric_width<T>, square = width * width;
    const Status status = dots(V, count, n, W, C, n_threads);
    if (status != Status::ok) return status;
    const auto add = FML_PICK(strands_add_block<T>);
    return over_strips(n, strand_rows, 1.0 * count * n * square, n_threads,
                       [&](ptrdiff_t, ptrdiff_t i, ptrdiff_t rows) {
                           for (ptrdiff_t b = 0; b < count; ++b)
                               add(V + (b * n + i) * width, C + b * square, width, T(-1), rows,
                                   W + i * width);
                       });
}

template <class T>
Status combine(const T* V, ptrdiff_t count, ptrdiff_t n, const double* S, ptrdiff_t s, T* out,
               int n_threads) noexcept {
    constexpr ptrdiff_t width = symmetric_width<T>, square = width * width;
    const auto add = FML_PICK(strands_add_block<T>);
    const ptrdiff_t ld = s * width;
    return over_strips(n, strand_rows, 1.0 * count * s * n * square, n_threads,
                       [&](ptrdiff_t, ptrdiff_t i, ptrdiff_t rows) {
                           for (ptrdiff_t q = 0; q < s; ++q) {
                               T* to = out + (q * n + i) * width;
                               std::fill_n(to, rows * width, T(0));
                               for (ptrdiff_t b = 0; b < count; ++b)
                                   add(V + (b * n + i) * width, S + b * width * ld + q * width, ld,
                                       T(1), rows, to);
                           }
                       });
}

template <class T>
Status orthonormalise(const T* V, ptrdiff_t count, ptrdiff_t n, T* W, ptrdiff_t s, double* R,
                      bool* independent, int n_threads) noexcept {
    constexpr ptrdiff_t width = symmetric_width<T>;
    const ptrdiff_t b = s * width, strand = n * width;
    Scratch<T> Q(s * strand);
    Scratch<double> C(count * width * width), squares(4 * b * b);
    if (!Q || !C || !squares) return Status::no_memory;
    double *G = squares.get(), *first = G + b * b, *second = first + b * b,
           *inverse = second + b * b;
    std::fill_n(inverse, b * b, 0.0);
    *independent = false;
    Status status = gram(W, s, n, G, n_threads);
    if (status != Status::ok || !triangle(G, b, first, inverse)) return status;
    status = combine(W, s, n, inverse, s, Q.get(), n_threads);
    for (ptrdiff_t j = 0; j < s && count && status == Status::ok; ++j)
        status = project_out(V, count, n, Q.get() + j * strand, C.get(), n_threads);
    if (status == Status::ok) status = gram(Q.get(), s, n, G, n_threads);
    if (status != Status::ok || !triangle(G, b, second, inverse)) return status;
    std::fill_n(R, b * b, 0.0);
    for (ptrdiff_t i = 0; i < b; ++i)
        for (ptrdiff_t p = i; p < b; ++p)
            for (ptrdiff_t j = p; j < b; ++j) R[i * b + j] += second[i * b + p] * first[p * b + j];
    *independent = true;
    return combine(Q.get(), s, n, inverse, s, W, n_threads);
}

template <class T>
Status centre(T* K, ptrdiff_t n, const T* columns, const T* rows, T every, int n_threads) noexcept {
    const auto block = FML_PICK(centre_block<T>);
    const ptrdiff_t step = std::max<ptrdiff_t>(1, (1 << 14) / n);
    const int threads = threads_for(passed_over * n * n, n_threads);
    return parallel(ceil_div(n, step), threads, [&](ptrdiff_t b, int) {
        const ptrdiff_t i = b * step;
        block(K + i * n, std::min(step, n - i), n, columns, rows + i, every);
    });
}

#define FML_INSTANTIATE(T)                                                                        \
    template Status centre(T*, ptrdiff_t, const T*, const T*, T, int) noexcept;                   \
    template Status symmetric_times(const T*, ptrdiff_t, const T*, T*, int) noexcept;             \
    template Status centred_times(const T*, ptrdiff_t, const T*, const T*, T*, int) noexcept;     \
    template Status project_out(const T*, ptrdiff_t, ptrdiff_t, T*, double*, int) noexcept;       \
    template Status orthonormalise(const T*, ptrdiff_t, ptrdiff_t, T*, ptrdiff_t, double*, bool*, \
                                   int) noexcept;                                                 \
    template Status combine(const T*, ptrdiff_t, ptrdiff_t, const double*, ptrdiff_t, T*,         \
                            int) noexcept;
FML_INSTANTIATE(float)
FML_INSTANTIATE(double)

}  // namespace fastml
