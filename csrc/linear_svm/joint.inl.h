// Rows of the method of multipliers of all classes; see joint.h.
#include "common/simd.inl.h"

// Rows at a time, so few that what is known of them stays in the first cache.
constexpr std::ptrdiff_t joint_rows_at_once = 32;

// Of rows at once: targets of their shares, less `floor` and at least 0 the shares themselves.
struct Shares {
    double target[most_joint][joint_rows_at_once];
    double floor[joint_rows_at_once], loss[joint_rows_at_once];
};

// The shares nearest to center + stiffness v, v_m = z_m + [m != y] the score of class m at
// z + t dz: max(0, target - floor). The floor grows from below what is least for it, by Newton's
// method, until no class falls below (Michelot, 1986). Scores are less the largest one, or a
// large stiffness would leave nothing of their differences.
FML_INLINE void share_out(const Joint& s, std::ptrdiff_t begin, std::ptrdiff_t size,
                          const double* z, const double* dz, double t, Shares* at) {
    double top[joint_rows_at_once], own[joint_rows_at_once];
    for (std::ptrdiff_t r = 0; r < size; ++r) top[r] = -1e300, own[r] = 0;
    const std::int32_t* codes = s.codes + begin;
    for (std::ptrdiff_t m = 0; m < s.k; ++m) {
        const double *zm = z + m * s.n + begin, *dzm = dz + m * s.n + begin;
        double* v = at->target[m];
#pragma omp simd
        for (std::ptrdiff_t r = 0; r < size; ++r) {
            const double there = zm[r] + t * dzm[r];
            v[r] = codes[r] == m ? there : there + 1;
            own[r] = codes[r] == m ? there : own[r];
            top[r] = v[r] > top[r] ? v[r] : top[r];
        }
    }
    double *floor = at->floor, count[joint_rows_at_once];
    for (std::ptrdiff_t r = 0; r < size; ++r) {
        at->loss[r] = top[r] - own[r];
        floor[r] = 0;
        count[r] = static_cast<double>(s.k) + 1;
    }
    for (std::ptrdiff_t m = 0; m < s.k; ++m) {
        const double* center = s.center + m * s.n + begin;
        double* v = at->target[m];
#pragma omp simd
        for (std::ptrdiff_t r = 0; r < size; ++r) {
            v[r] = center[r] + s.stiffness * (v[r] - top[r]);
            floor[r] = v[r] > floor[r] ? v[r] : floor[r];
        }
    }
    for (std::ptrdiff_t r = 0; r < size; ++r) floor[r] -= 1;
    double fewer = 1;
    for (std::ptrdiff_t i = 0; i < s.k && fewer > 0; ++i) {
        double sum[joint_rows_at_once] = {}, above[joint_rows_at_once] = {};
        for (std::ptrdiff_t m = 0; m < s.k; ++m) {
            const double* v = at->target[m];
#pragma omp simd
            for (std::ptrdiff_t r = 0; r < size; ++r) {
                sum[r] += v[r] > floor[r] ? v[r] : 0.0;
                above[r] += v[r] > floor[r] ? 1.0 : 0.0;
            }
        }
        fewer = 0;
#pragma omp simd reduction(+ : fewer)
        for (std::ptrdiff_t r = 0; r < size; ++r) {
            fewer += count[r] - above[r];
            count[r] = above[r];
            floor[r] = (sum[r] - 1) / above[r];
        }
    }
}

// Takes the step: z += t dz. Then a = C ([m = y] - share); which classes have a share of a row, where
// it is not one alone; and the terms of the objectives.
inline void joint_rows(const Joint& s, std::ptrdiff_t begin, std::ptrdiff_t end, double* z,
                       const double* dz, double t, double* a, std::uint64_t* members,
                       JointSums* sums) {
    double loss = 0, dual = 0;
    Shares at;
    for (std::ptrdiff_t i = begin; i < end; i += joint_rows_at_once) {
        const std::ptrdiff_t size = end - i < joint_rows_at_once ? end - i : joint_rows_at_once;
        share_out(s, i, size, z, dz, t, &at);
        const std::int32_t* codes = s.codes + i;
        const double* C = s.C + i;
        std::uint64_t* set = members + i;
        for (std::ptrdiff_t r = 0; r < size; ++r) set[r] = 0;
        for (std::ptrdiff_t m = 0; m < s.k; ++m) {
            double *am = a + m * s.n + i, *zm = z + m * s.n + i;
            const double *dzm = dz + m * s.n + i, *v = at.target[m];
            const std::uint64_t bit = std::uint64_t{1} << m;
#pragma omp simd reduction(+ : dual)
            for (std::ptrdiff_t r = 0; r < size; ++r) {
                const double share = v[r] > at.floor[r] ? v[r] - at.floor[r] : 0.0;
                const bool own = codes[r] == m;
                am[r] = C[r] * ((own ? 1.0 : 0.0) - share);
                dual += own ? am[r] : 0.0;
                set[r] |= share > 0 ? bit : 0;
                zm[r] += t * dzm[r];
            }
        }
#pragma omp simd reduction(+ : loss)
        for (std::ptrdiff_t r = 0; r < size; ++r) {
            loss += C[r] * at.loss[r];
            set[r] = (set[r] & (set[r] - 1)) != 0 ? set[r] : 0;
        }
    }
    sums->loss += loss;
    sums->dual += dual;
}

// The derivative along dz, at z + t dz, of what rows add to the objective in w.
inline double joint_slope(const Joint& s, std::ptrdiff_t begin, std::ptrdiff_t end, const double* z,
                          const double* dz, double t) {
    double slope = 0;
    Shares at;
    for (std::ptrdiff_t i = begin; i < end; i += joint_rows_at_once) {
        const std::ptrdiff_t size = end - i < joint_rows_at_once ? end - i : joint_rows_at_once;
        share_out(s, i, size, z, dz, t, &at);
        const std::int32_t* codes = s.codes + i;
        const double* C = s.C + i;
        for (std::ptrdiff_t m = 0; m < s.k; ++m) {
            const double *dzm = dz + m * s.n + i, *v = at.target[m];
#pragma omp simd reduction(+ : slope)
            for (std::ptrdiff_t r = 0; r < size; ++r) {
                const double share = v[r] > at.floor[r] ? v[r] - at.floor[r] : 0.0;
                slope -= dzm[r] * C[r] * ((codes[r] == m ? 1.0 : 0.0) - share);
            }
        }
    }
    return slope;
}
