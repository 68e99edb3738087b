// std headers come before any target region
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "common/blocks.h"
#include "common/isa.h"
#include "common/scratch.h"
#include "kdtree/query.h"

namespace fastml {

// reach: the squared distance beyond which kernels are 0; scale: what makes a distance (squared,
// for the Gaussian) the kernel's argument; weights in the order of the leaves, or null.
template <class T> struct DensityJob {
    T scale, reach, negligible;
    const T* weights;
};
template <class T> using LogSum = T (*)(const KDTree<T>&, const T* q, const DensityJob<T>&);

}  // namespace fastml

#define FML_KERNEL "kdtree/density.inl.h"
#include "common/foreach_isa.h"

namespace fastml {

template <class T>
Status log_kernel_sums(const KDTree<T>& tree, const T* Q, ptrdiff_t n_q, DensityKernel kernel,
                       double bandwidth, const double* weights, double* log_sums,
                       int n_threads) noexcept {
    constexpr ptrdiff_t fan = KDTree<T>::fan;
    Scratch<T> ordered(weights ? tree.leaves * fan : 0);
    if (!ordered) return Status::no_memory;
    double least = 1, sum = static_cast<double>(tree.n);
    if (weights) {
        least = *std::min_element(weights, weights + tree.n);
        sum = 0;
        for (ptrdiff_t i = 0; i < tree.leaves * fan; ++i) {
            const bool there = tree.index[i] < tree.n;
            ordered[i] = there ? static_cast<T>(weights[tree.index[i]]) : T(0);
            sum += ordered[i];
        }
    }
    // One point at distance r has more than eps of what all beyond this can have.
    const double negligible = std::log(sum / least) + 38;
    DensityJob<T> job{static_cast<T>(1 / bandwidth), static_cast<T>(bandwidth * bandwidth),
                      static_cast<T>(negligible), weights ? ordered.get() : nullptr};
    if (kernel == DensityKernel::gaussian) job.scale = job.scale * job.scale / 2;
    if (kernel == DensityKernel::gaussian || kernel == DensityKernel::exponential)
        job.reach = std::numeric_limits<T>::max();
    const auto log_sum = FML_PICK(choose_log_sum<T>)(kernel, tree.d);
    const ptrdiff_t rows = queries_at_once(tree);
    return parallel(ceil_div(n_q, rows), n_threads, [&](ptrdiff_t b, int) {
        for (ptrdiff_t i = b * rows; i < std::min(n_q, (b + 1) * rows); ++i)
            log_sums[i] = log_sum(tree, Q + i * tree.d, job);
    });
}

template Status log_kernel_sums(const KDTree<double>&, const double*, ptrdiff_t, DensityKernel,
                                double, const double*, double*, int) noexcept;

}  // namespace fastml
