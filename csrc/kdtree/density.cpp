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
    const bool weighted = weights || tree.copies;
    Scratch<T> ordered(weighted ? tree.leaves * fan : 0);
    if (!ordered) return Status::no_memory;
    double least = 1, sum = static_cast<double>(tree.n);
    if (weighted) {
        const auto weight = [=](ptrdiff_t row) { return weights ? weights[row] : 1; };
        sum = 0;
        for (ptrdiff_t i = 0; i < tree.leaves * fan; ++i) {
            ordered[i] = 0;
            if (tree.index[i] == absent<typename KDTree<T>::Int>) continue;
            double total = weight(tree.index[i]);
            for (const auto* c = tree.copies_begin(i); c != tree.copies_end(i); ++c)
                total += weight(*c);
            least = std::min(sum > 0 ? least : total, total);
            ordered[i] = static_cast<T>(total);
            sum += total;
        }
    }
    // One point at distance r has more than eps of what all beyond this can have.
    const double negligible = std::log(sum / least) + 38;
    DensityJob<T> job{static_cast<T>(1 / bandwidth), static_cast<T>(bandwidth * bandwidth),
                      static_cast<T>(negligible), weighted ? ordered.get() : nullptr};
    if (kernel == DensityKernel::gaussian) job.scale = job.scale * job.scale / 2;
    if (kernel == DensityKernel::gaussian || kernel == DensityKernel::exponential)
        job.reach = std::numeric_limits<T>::max();
    const auto log_sum = FML_PICK(choose_log_sum<T>)(kernel, tree.d);
    const ptrdiff_t rows = queries_at_once(tree, n_q);
    return parallel(ceil_div(n_q, rows), n_threads, [&](ptrdiff_t b, int) {
        for (ptrdiff_t i = b * rows; i < std::min(n_q, (b + 1) * rows); ++i)
            log_sums[i] = log_sum(tree, Q + i * tree.d, job);
    });
}

template Status log_kernel_sums(const KDTree<double>&, const double*, ptrdiff_t, DensityKernel,
                                double, const double*, double*, int) noexcept;

}  // namespace fastml
