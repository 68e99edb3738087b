// Kernel matrices that are given: in memory, or row by row by a function.
#include <algorithm>
#include <new>
#include <utility>

#include "common/blocks.h"
#include "common/scratch.h"
#include "smo/view.h"

namespace fastml {
namespace {

constexpr ptrdiff_t block_columns = 4096;

// Row i of the matrix begins at rows[i * row_stride].
template <class T> struct Matrix {
    const T* rows;
    ptrdiff_t row_stride, column_stride;
};

// As View::add, of rows first, first + 1, ... of K if ids is null.
template <class T, class C>
Status add_matrix(const Matrix<T>& K, const ptrdiff_t* ids, ptrdiff_t count, const double* coef,
                  C* const* keep, const ptrdiff_t* columns, ptrdiff_t n, double* sums,
                  int n_threads) noexcept {
    n_threads = threads_for(passed_over * count * n, n_threads);
    return parallel(ceil_div(n, block_columns), n_threads, [&](ptrdiff_t b, int) {
        const ptrdiff_t j0 = b * block_columns, j1 = std::min(n, j0 + block_columns);
        bool whole = K.column_stride == 1;
        for (ptrdiff_t j = j0; j < j1; ++j) whole &= columns[j] - columns[j0] == j - j0;
        for (ptrdiff_t i = 0; i < count; ++i) {
            const T* row = K.rows + (ids ? ids[i] : i) * K.row_stride;
            const double w = coef ? coef[i] : 0;
            C* kept = keep ? keep[i] : nullptr;
            if (whole) {
                const T* from = row + columns[j0] - j0;
                if (kept)
                    for (ptrdiff_t j = j0; j < j1; ++j) kept[j] = static_cast<C>(from[j]);
                if (sums)
                    for (ptrdiff_t j = j0; j < j1; ++j) sums[j] += w * static_cast<double>(from[j]);
                continue;
            }
            for (ptrdiff_t j = j0; j < j1; ++j) {
                const T value = row[columns[j] * K.column_stride];
                if (kept) kept[j] = static_cast<C>(value);
                if (sums) sums[j] += w * static_cast<double>(value);
            }
        }
    });
}

template <class T> class GramView final : public View {
  public:
    explicit GramView(const Matrix<T>& K) : K_(K) {}
    Status set_columns(const ptrdiff_t* ids, ptrdiff_t n, int) noexcept override {
        columns_ = ids;
        n_ = n;
        return Status::ok;
    }
    Status add(const ptrdiff_t* ids, ptrdiff_t count, const double* coef, float* const* keep,
               double* sums, int n_threads) noexcept override {
        return add_matrix(K_, ids, count, coef, keep, columns_, n_, sums, n_threads);
    }
    Status add_exact(const ptrdiff_t* ids, ptrdiff_t count, const double* coef, double* const* keep,
                     double* sums, int n_threads) noexcept override {
        return add_matrix(K_, ids, count, coef, keep, columns_, n_, sums, n_threads);
    }
    bool exact() const noexcept override { return true; }
    int thrift() const noexcept override { return 0; }

  private:
    const Matrix<T> K_;
    const ptrdiff_t* columns_ = nullptr;
    ptrdiff_t n_ = 0;
};

template <class T> class GramKernel final : public Kernel {
  public:
    GramKernel(const Matrix<T>& K, ptrdiff_t n_rows) : Kernel(n_rows), K_(K) {}
    std::unique_ptr<View> view() const noexcept override {
        return std::unique_ptr<View>(new (std::nothrow) GramView<T>(K_));
    }

  private:
    const Matrix<T> K_;
};

class FunctionView final : public View {
  public:
    FunctionView(ptrdiff_t n_rows, RowsFunction rows, void* context)
        : all_(n_rows), rows_(rows), context_(context) {}
    Status set_columns(const ptrdiff_t* ids, ptrdiff_t n, int) noexcept override {
        columns_ = ids;
        n_ = n;
        return Status::ok;
    }
    Status add(const ptrdiff_t* ids, ptrdiff_t count, const double* coef, float* const* keep,
               double* sums, int n_threads) noexcept override {
        return ask(ids, count, coef, keep, sums, n_threads);
    }
    Status add_exact(const ptrdiff_t* ids, ptrdiff_t count, const double* coef, double* const* keep,
                     double* sums, int n_threads) noexcept override {
        return ask(ids, count, coef, keep, sums, n_threads);
    }

  private:
    template <class C>
    Status ask(const ptrdiff_t* ids, ptrdiff_t count, const double* coef, C* const* keep,
               double* sums, int n_threads) noexcept {
        const ptrdiff_t most = std::max<ptrdiff_t>(1, std::min(count, (1 << 22) / all_));
        Scratch<double> rows(most * all_);
        if (!rows) return Status::no_memory;
        for (ptrdiff_t i = 0; i < count; i += most) {
            const ptrdiff_t here = std::min(most, count - i);
            if (rows_(context_, ids + i, here, rows.get())) return Status::interrupted;
            const Status status = add_matrix(Matrix<double>{rows.get(), all_, 1}, nullptr, here,
                                             coef ? coef + i : nullptr, keep ? keep + i : nullptr,
                                             columns_, n_, sums, n_threads);
            if (status != Status::ok) return status;
        }
        return Status::ok;
    }

    const ptrdiff_t all_;
    const RowsFunction rows_;
    void* const context_;
    const ptrdiff_t* columns_ = nullptr;
    ptrdiff_t n_ = 0;
};

class FunctionKernel final : public Kernel {
  public:
    FunctionKernel(ptrdiff_t n_rows, RowsFunction rows, void* context)
        : Kernel(n_rows), rows_(rows), context_(context) {}
    std::unique_ptr<View> view() const noexcept override {
        return std::unique_ptr<View>(new (std::nothrow) FunctionView(n, rows_, context_));
    }
    bool anywhere() const noexcept override { return false; }

  private:
    const RowsFunction rows_;
    void* const context_;
};

}  // namespace

template <class T>
std::unique_ptr<Kernel> gram_kernel(const T* K, ptrdiff_t n, ptrdiff_t row_stride,
                                    ptrdiff_t column_stride) noexcept {
    const Matrix<T> matrix{K, row_stride, column_stride};
    return std::unique_ptr<Kernel>(new (std::nothrow) GramKernel<T>(matrix, n));
}

std::unique_ptr<Kernel> function_kernel(ptrdiff_t n, RowsFunction rows, void* context) noexcept {
    return std::unique_ptr<Kernel>(new (std::nothrow) FunctionKernel(n, rows, context));
}

template std::unique_ptr<Kernel> gram_kernel(const float*, ptrdiff_t, ptrdiff_t,
                                             ptrdiff_t) noexcept;
template std::unique_ptr<Kernel> gram_kernel(const double*, ptrdiff_t, ptrdiff_t,
                                             ptrdiff_t) noexcept;

}  // namespace fastml
