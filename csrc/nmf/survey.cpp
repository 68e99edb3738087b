// std headers come before any target region
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "common/isa.h"
#include "nmf/plan.h"

#define FML_KERNEL "nmf/survey.inl.h"
#include "common/foreach_isa.h"

namespace fastml {

template <class T>
Status survey(const Rows<T>& X, double* least, double* sum, int n_threads) noexcept {
    const ptrdiff_t n = X.indptr ? X.indptr[X.n] : X.n * X.d;
    const Grid grid(n ? n : 1, free_blocks);
    n_threads = threads_for(passed_over * n, n_threads);
    Scratch<double> sums(grid.blocks);
    Scratch<T> leasts(grid.blocks);
    if (!sums || !leasts) return Status::no_memory;
    const auto run = FML_PICK(survey_block<T>);
    const Status status = parallel(grid.blocks, n_threads, [&](ptrdiff_t b, int) {
        leasts[b] = std::numeric_limits<T>::infinity();
        sums[b] = run(X.data + grid.begin(b), n ? grid.end(b) - grid.begin(b) : 0, &leasts[b]);
    });
    *sum = 0;
    *least = std::numeric_limits<double>::infinity();
    for (ptrdiff_t b = 0; status == Status::ok && b < grid.blocks; ++b) {
        *sum += sums[b];
        *least = std::fmin(*least, leasts[b]);
    }
    return status;
}

template Status survey(const Rows<float>&, double*, double*, int) noexcept;
template Status survey(const Rows<double>&, double*, double*, int) noexcept;

}  // namespace fastml
