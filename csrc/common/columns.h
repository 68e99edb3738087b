#pragma once
#include "common/blocks.h"
#include "common/scratch.h"

namespace fastml {

// The rows of a C-ordered (k, d) matrix as the columns of a padded (d, stride) one.
template <class T> struct Columns {
    ptrdiff_t stride;
    Scratch<T> at;
    Columns(const T* rows, ptrdiff_t k, ptrdiff_t d)
        : stride(ceil_div(k, 16) * 16), at(d * stride) {
        if (!at) return;
        for (ptrdiff_t p = 0; p < d; ++p)
            for (ptrdiff_t j = 0; j < stride; ++j)
                at[p * stride + j] = j < k ? rows[j * d + p] : T(0);
    }
};

template <class T>
void exact_norms(const T* rows, ptrdiff_t k, ptrdiff_t d, double* norms) {
    for (ptrdiff_t j = 0; j < k; ++j) {
        double sum = 0;
        for (ptrdiff_t p = 0; p < d; ++p)
            sum += static_cast<double>(rows[j * d + p]) * rows[j * d + p];
        norms[j] = sum;
    }
}

}  // namespace fastml
