#pragma once
#include <cstddef>

#include "common/pool.h"

namespace fastml {

// A user's function f(x, y) of two rows in a loop over several y, compiled at run time:
// out[k] = f(x, row k of Y) for k < count; both have d values. Returns count, or the first k for
// which f raised; what is in out from there on is not defined. `params` is handed through.
using RowFunction = std::ptrdiff_t (*)(const void* x, const void* Y, std::ptrdiff_t count,
                                       std::ptrdiff_t d, void* out, const void* params);

struct PairTask {
    RowFunction f;
    const void* params;
    const char *X, *Y;                 // C order, n and m rows
    std::ptrdiff_t n, m, d, row_size;  // row_size: in bytes
    bool symmetric;                    // X is Y and f(x, y) = f(y, x): only i <= j is computed
};

// out (n, m) = f(x_i, y_j), a tile a task. Entries do not depend on one another, so that no result
// depends on the tiles, whose size comes from how long f takes. n, m, d >= 1.
// *failed is -1, or i * m + j of a pair for which f raised: then out is not complete.
template <class T>
Status pair_matrix(const PairTask& task, T* out, int n_threads, std::ptrdiff_t* failed) noexcept;

}  // namespace fastml
