#pragma once
#include <cstddef>
#include <memory>

#include "common/pool.h"
#include "common/rows.h"
#include "pairwise/pairwise.h"

// Kernel values between any rows and a choice of columns, in single precision to be kept and in
// double to be sure.
namespace fastml {

class View {
  public:
    virtual ~View() = default;

    // Columns are the rows `ids` (n) from now on; they are borrowed.
    virtual Status set_columns(const std::ptrdiff_t* ids, std::ptrdiff_t n,
                               int n_threads) noexcept = 0;

    // For i < count, of K(ids[i], column j) for all j: goes to keep[i][j] if neither keep nor keep[i] is null, and
    // coef[i] times it is added to sums[j] if sums is not null. add_exact does it in double.
    virtual Status add(const std::ptrdiff_t* ids, std::ptrdiff_t count, const double* coef,
                       float* const* keep, double* sums, int n_threads) noexcept = 0;
    virtual Status add_exact(const std::ptrdiff_t* ids, std::ptrdiff_t count, const double* coef,
                             double* const* keep, double* sums, int n_threads) noexcept = 0;

    // Whether `add` gives what add_exact gives.
    virtual bool exact() const noexcept { return false; }
    // Whether sums over all rows cost no more than those over a few.
    virtual bool linear() const noexcept { return false; }
    // When rows are worth keeping: 0 never, 1 from the second time they are made (to make them costs
    // about what it costs to read them from memory), 2 at once.
    virtual int thrift() const noexcept { return 2; }
};

// Null means that there was no memory.
class Kernel {
  public:
    explicit Kernel(std::ptrdiff_t n_rows) : n(n_rows) {}
    virtual ~Kernel() = default;
    virtual std::unique_ptr<View> view() const noexcept = 0;
    // Whether views may be used on any thread.
    virtual bool anywhere() const noexcept { return true; }
    const std::ptrdiff_t n;
};

// K(i, j) of a matrix in memory, with any strides (in entries).
template <class T>
std::unique_ptr<Kernel> gram_kernel(const T* K, std::ptrdiff_t n, std::ptrdiff_t row_stride,
                                    std::ptrdiff_t column_stride) noexcept;

// Of rows in memory. With few enough columns a linear kernel keeps nothing, and costs O(n d).
template <class T>
std::unique_ptr<Kernel> rows_kernel(const Rows<T>& X, const Measure& measure) noexcept;

// Asks for rows of the whole matrix: rows(context, ids, count, out (count, n)). Not 0 is an error.
using RowsFunction = int (*)(void* context, const std::ptrdiff_t* ids, std::ptrdiff_t count,
                             double* out);
std::unique_ptr<Kernel> function_kernel(std::ptrdiff_t n, RowsFunction rows,
                                        void* context) noexcept;

}  // namespace fastml
