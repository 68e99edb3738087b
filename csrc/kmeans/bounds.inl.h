// Lloyd's iterations on rows whose distances are known within bounds: the blocks.
#include "kmeans/nearest.inl.h"
#include "kmeans/sums.inl.h"

// Adds to each row's upper bound how far its own center moved, takes from its lower bound how far
// any other did, and lists the rows of [begin, end) whose label may have changed.
template <class T>
std::ptrdiff_t drift_block(std::ptrdiff_t begin, std::ptrdiff_t end, const std::int32_t* labels,
                           const Drift& drift, const Bounds& bounds, std::int32_t* open) {
    constexpr std::ptrdiff_t strip = 64;
    std::ptrdiff_t n_open = 0;
    for (std::ptrdiff_t i0 = begin; i0 < end; i0 += strip) {
        const std::ptrdiff_t rows = end - i0 < strip ? end - i0 : strip;
        float *upper = bounds.upper + i0, *lower = bounds.lower + i0;
        const std::int32_t* label = labels + i0;
        const float* near = drift.near ? drift.near + i0 : nullptr;
        std::int32_t fails[strip];
        std::int32_t any = 0;
#pragma omp simd reduction(| : any)
        for (std::ptrdiff_t r = 0; r < rows; ++r) {
            const float u = (upper[r] + drift.moved[label[r]]) * bound_up;
            float l = (lower[r] - drift.rest) * bound_down;
            if (near) l = near[r] < l ? near[r] : l;
            const float apart = (drift.apart[label[r]] - u) * bound_down;
            l = apart > l ? apart : l;
            l = l > 0 ? l : 0.0f;
            upper[r] = u;
            lower[r] = l;
            fails[r] = !((l - u) * (l + u) > drift.slope * u + drift.offset);
            any |= fails[r];
        }
        if (!any) continue;
        for (std::ptrdiff_t r = 0; r < rows; ++r) {
            open[n_open] = static_cast<std::int32_t>(i0 + r);
            n_open += fails[r];
        }
    }
    return n_open;
}

// Squared, by differences.
template <class T>
FML_INLINE T distance_to_center(const Rows<T>& X, std::ptrdiff_t i, const T* center) {
    const T* x = X.data + i * X.d;
    if (!X.shift) return squared_distance(x, center, X.d);
    T sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::ptrdiff_t p = 0; p < X.d; ++p) {
        const T t = x[p] - X.shift[p] - center[p];
        sum += t * t;
    }
    return sum;
}

// Of the rows listed, those whose label may have changed even when the distance to their own center
// is taken again. Keeps the list in place.
template <class T>
std::ptrdiff_t tighten_block(const Rows<T>& X, const T* centers, const std::int32_t* labels,
                             const Drift& drift, T gamma, const Bounds& bounds, std::int32_t* open,
                             std::ptrdiff_t n_open) {
    std::ptrdiff_t kept = 0;
    for (std::ptrdiff_t r = 0; r < n_open; ++r) {
        const std::ptrdiff_t i = open[r];
        if (r + 8 < n_open) FML_PREFETCH(X.data + open[r + 8] * X.d);
        const T sqdist = distance_to_center(X, i, centers + labels[i] * X.d);
        const float exact = upper_bound<T>(sqdist, sqdist * gamma);
        const float u = exact < bounds.upper[i] ? exact : bounds.upper[i];
        float l = bounds.lower[i];
        const float apart = (drift.apart[labels[i]] - u) * bound_down;
        l = apart > l ? apart : l;
        bounds.upper[i] = u;
        bounds.lower[i] = l;
        const bool fails = !((l - u) * (l + u) > drift.slope * u + drift.offset);
        open[kept] = static_cast<std::int32_t>(i);
        kept += fails;
    }
    return kept;
}

// Rows of [begin, end) whose label is not the one before; makes that the one before.
inline std::ptrdiff_t changes_block(std::ptrdiff_t begin, std::ptrdiff_t end,
                                    const std::int32_t* labels, const std::int32_t* before,
                                    std::int32_t* changed) {
    constexpr std::ptrdiff_t strip = 64;
    std::ptrdiff_t n = 0;
    for (std::ptrdiff_t i0 = begin; i0 < end; i0 += strip) {
        const std::ptrdiff_t rows = end - i0 < strip ? end - i0 : strip;
        std::int32_t any = 0;
#pragma omp simd reduction(| : any)
        for (std::ptrdiff_t r = 0; r < rows; ++r) any |= labels[i0 + r] ^ before[i0 + r];
        if (!any) continue;
        for (std::ptrdiff_t i = i0; i < i0 + rows; ++i) {
            changed[n] = static_cast<std::int32_t>(i);
            n += labels[i] != before[i];
        }
    }
    return n;
}
