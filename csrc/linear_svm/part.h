#pragma once
// Some rows of a problem. Internal to the family.
#include <algorithm>

#include "common/scratch.h"
#include "linear_svm/linear_svm.h"

namespace fastml {

// Some of the rows, side by side.
template <class T> class Part {
  public:
    Part(const Rows<T>& X, ptrdiff_t rows, ptrdiff_t entries)
        : d_(X.d), data_(entries), indices_(X.indptr ? entries : 0),
          indptr_(X.indptr ? rows + 1 : 0), b_(rows), C_(rows) {
        if (*this && X.indptr) indptr_[0] = 0;
    }
    explicit operator bool() const { return data_ && indices_ && indptr_ && b_ && C_; }

    void add(const Rows<T>& X, const Problem& problem, ptrdiff_t i, double scale) {
        const ptrdiff_t first = X.indptr ? X.indptr[i] : i * X.d, size = entries(X, i);
        const ptrdiff_t at = X.indptr ? indptr_[n_] : n_ * X.d;
        std::copy_n(X.data + first, size, data_.get() + at);
        if (X.indptr) {
            std::copy_n(X.indices + first, size, indices_.get() + at);
            indptr_[n_ + 1] = static_cast<std::int32_t>(at + size);
        }
        b_[n_] = problem.b[i];
        C_[n_++] = scale * problem.C[i];
    }
    static ptrdiff_t entries(const Rows<T>& X, ptrdiff_t i) {
        return X.indptr ? X.indptr[i + 1] - X.indptr[i] : X.d;
    }

    Rows<T> rows(const Rows<T>& X) const {
        const bool sparse = X.indptr;
        return {data_.get(),
                sparse ? indices_.get() : nullptr,
                sparse ? indptr_.get() : nullptr,
                n_,
                d_,
                nullptr};
    }
    Problem problem(Problem of_all) const {
        of_all.b = b_.get();
        of_all.C = C_.get();
        return of_all;
    }

  private:
    const ptrdiff_t d_;
    Scratch<T> data_;
    Scratch<std::int32_t> indices_, indptr_;  // CSR only
    Scratch<double> b_, C_;
    ptrdiff_t n_ = 0;
};

}  // namespace fastml
