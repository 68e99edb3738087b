#include "common/simd.inl.h"
#include "common/math.inl.h"
#include "kdtree/search.inl.h"

// The sum of weighted kernels, as exp(-offset) * sum; beyond `reach` nothing matters.
template <class T, DensityKernel kernel> struct Sum {
    using Vec = typename Simd<T>::Vec;
    using Int = typename KDTree<T>::Int;
    static constexpr int lanes = Simd<T>::lanes, parts = fan / lanes;
    static constexpr bool compact =
        kernel != DensityKernel::gaussian && kernel != DensityKernel::exponential;
    const DensityJob<T>& job;
    const Int* index;
    T reach, offset = 0, total = 0;

    FML_INLINE T limit() const { return reach; }
    FML_INLINE bool admits(T, Int) const { return true; }

    FML_INLINE void leaf(const Sixteen<T>& sums, const Int* rows) {
        const T* weights = job.weights ? job.weights + (rows - index) : nullptr;
        if constexpr (compact)
            within(sums, weights);
        else
            everywhere(sums, weights);
    }

    // What the kernel is the exponential of is -x. What is absent is infinitely far.
    FML_INLINE void everywhere(Sixteen<T> sums, const T* weights) {
        T x[fan];
        for (int i = 0; i < parts; ++i) {
            if constexpr (kernel == DensityKernel::gaussian) {
                sums.part[i] = sums.part[i] * job.scale;
            } else {
                T distance[lanes];
                store(distance, sums.part[i]);
                for (int l = 0; l < lanes; ++l) distance[l] = std::sqrt(distance[l]);
                sums.part[i] = load<Vec>(distance) * job.scale;
            }
            store(x + i * lanes, sums.part[i]);
        }
        T least = x[0];
        for (int l = 1; l < fan; ++l) least = x[l] < least ? x[l] : least;
        if (!(least < std::numeric_limits<T>::infinity())) return;
        if (least < offset || total == 0) {
            total = total == 0 ? 0 : total * std::exp(least - offset);
            offset = least;
            // All the rest together is beyond the last bit of this.
            const T far = offset + job.negligible;
            const T most = kernel == DensityKernel::gaussian ? far / job.scale
                                                             : far / job.scale * (far / job.scale);
            reach = most < reach ? most : reach;
        }
        Vec sum{};
        for (int i = 0; i < parts; ++i) {
            const Vec y = vexp<T>(offset - sums.part[i]);
            sum = sum + (weights ? y * load<Vec>(weights + i * lanes) : y);
        }
        for (int l = 0; l < lanes; ++l) total += sum[l];
    }

    FML_INLINE void within(const Sixteen<T>& sums, const T* weights) {
        unsigned bits = sums.under(reach);
        for (; bits; bits &= bits - 1) {
            const int l = lowest_bit(bits);
            const T u = std::sqrt(sums.at(l)) * job.scale;  // < 1, but for rounding
            T y = 1;
            if constexpr (kernel == DensityKernel::epanechnikov) y = 1 - u * u;
            if constexpr (kernel == DensityKernel::linear) y = 1 - u;
            if constexpr (kernel == DensityKernel::cosine) y = std::cos(T(1.5707963267948966) * u);
            total += weights ? y * weights[l] : y;
        }
    }
};

template <class T, int D, DensityKernel kernel>
T log_sum_by(const KDTree<T>& tree, const T* q, const DensityJob<T>& job) {
    const Search<T, Euclidean, D> search(tree);
    Sum<T, kernel> sum{job, tree.index, job.reach};
    search.run(q, -1, sum);
    return std::log(sum.total) - sum.offset;
}

template <class T, int D> LogSum<T> log_sum_with(DensityKernel kernel) {
    switch (kernel) {
        case DensityKernel::gaussian:
            return log_sum_by<T, D, DensityKernel::gaussian>;
        case DensityKernel::exponential:
            return log_sum_by<T, D, DensityKernel::exponential>;
        case DensityKernel::tophat:
            return log_sum_by<T, D, DensityKernel::tophat>;
        case DensityKernel::epanechnikov:
            return log_sum_by<T, D, DensityKernel::epanechnikov>;
        case DensityKernel::linear:
            return log_sum_by<T, D, DensityKernel::linear>;
        default:
            return log_sum_by<T, D, DensityKernel::cosine>;
    }
}

template <class T> LogSum<T> choose_log_sum(DensityKernel kernel, std::ptrdiff_t d) {
    return d == 1   ? log_sum_with<T, 1>(kernel)
           : d == 2 ? log_sum_with<T, 2>(kernel)
           : d == 3 ? log_sum_with<T, 3>(kernel)
                    : log_sum_with<T, 0>(kernel);
}
