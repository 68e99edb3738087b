// Hinges, row by row; see interior.h.
#include "common/simd.inl.h"

struct Hinge {
    double sign, m;
};
FML_INLINE Hinge hinge_of(const Problem& p, std::ptrdiff_t i, bool second) {
    if (!p.regression) return {p.b[i], 1};
    return second ? Hinge{-1, -p.b[i] - p.epsilon} : Hinge{1, p.b[i] - p.epsilon};
}

// What a hinge's alpha changes by when z does: scale (rest - sign dz); the products that alpha slack
// and beta over are led to, and the reciprocals of alpha and beta.
struct Response {
    double scale, rest, to_alpha, to_beta, by_alpha, by_beta;
};
FML_INLINE Response response(const Hinges& h, std::ptrdiff_t k, const Hinge& g, double z, double mu,
                             bool corrected) {
    const double to_alpha = corrected ? mu - h.by_alpha[k] : mu;
    const double to_beta = corrected ? mu - h.by_beta[k] : mu;
    const double by_alpha = 1 / h.alpha[k], by_beta = 1 / h.beta[k];
    return {1 / (h.slack[k] * by_alpha + h.over[k] * by_beta),
            g.m - g.sign * z + to_alpha * by_alpha - to_beta * by_beta,
            to_alpha,
            to_beta,
            by_alpha,
            by_beta};
}

struct Change {
    double alpha, slack, over;
    double rate;  // of the one that goes to zero fastest: -change / value, if positive
};
FML_INLINE Change change(const Hinges& h, std::ptrdiff_t k, const Hinge& g, double z, double dz,
                         double mu, bool corrected) {
    const Response r = response(h, k, g, z, mu, corrected);
    const double alpha = r.scale * (r.rest - g.sign * dz);
    const double slack = (r.to_alpha - h.slack[k] * alpha) * r.by_alpha - h.slack[k];
    const double over = (r.to_beta + h.over[k] * alpha) * r.by_beta - h.over[k];
    const double one = -alpha * r.by_alpha, two = alpha * r.by_beta;
    const double three = -slack / h.slack[k], four = -over / h.over[k];
    const double first = one > two ? one : two, second = three > four ? three : four;
    return {alpha, slack, over, first > second ? first : second};
}

// First values at z: all products of the size of `wide` C / 2.
inline void hinges_start(const Hinges& h, std::ptrdiff_t begin, std::ptrdiff_t end, const double* z,
                         double wide) {
    for (std::ptrdiff_t side = 0; side < 1 + h.problem.regression; ++side)
        for (std::ptrdiff_t i = begin; i < end; ++i) {
            const std::ptrdiff_t k = side * h.n + i;
            const Hinge g = hinge_of(h.problem, i, side);
            const double gap = g.sign * z[i] - g.m;
            h.alpha[k] = h.beta[k] = h.problem.C[i] / 2;
            h.slack[k] = wide + (gap > 0 ? gap : 0);
            h.over[k] = wide + (gap < 0 ? -gap : 0);
        }
}

// The right-hand side X'a of the step's system, and its weights kappa.
inline void hinges_system(const Hinges& h, std::ptrdiff_t begin, std::ptrdiff_t end,
                          const double* z, double mu, bool corrected, double* a, double* kappa) {
    for (std::ptrdiff_t i = begin; i < end; ++i) a[i] = kappa[i] = 0;
    for (std::ptrdiff_t side = 0; side < 1 + h.problem.regression; ++side)
#pragma omp simd
        for (std::ptrdiff_t i = begin; i < end; ++i) {
            const std::ptrdiff_t k = side * h.n + i;
            const Hinge g = hinge_of(h.problem, i, side);
            const Response r = response(h, k, g, z[i], mu, corrected);
            a[i] += g.sign * (h.alpha[k] + r.scale * r.rest);
            kappa[i] += r.scale;
        }
}

// How far the step dz may go, and where it leads; the predictor notes what it leaves out.
inline void hinges_try(const Hinges& h, std::ptrdiff_t begin, std::ptrdiff_t end, const double* z,
                       const double* dz, double mu, bool corrected, HingeSums* sums) {
    double product = 0, slope = 0, curve = 0, fastest = sums->fastest;
    for (std::ptrdiff_t side = 0; side < 1 + h.problem.regression; ++side)
#pragma omp simd reduction(+ : product, slope, curve) reduction(max : fastest)
        for (std::ptrdiff_t i = begin; i < end; ++i) {
            const std::ptrdiff_t k = side * h.n + i;
            const Hinge g = hinge_of(h.problem, i, side);
            const Change c = change(h, k, g, z[i], dz[i], mu, corrected);
            product += h.alpha[k] * h.slack[k] + h.beta[k] * h.over[k];
            slope += h.alpha[k] * c.slack + h.slack[k] * c.alpha + h.beta[k] * c.over -
                     h.over[k] * c.alpha;
            curve += c.alpha * c.slack - c.alpha * c.over;
            fastest = c.rate > fastest ? c.rate : fastest;
            if (!corrected) {
                h.by_alpha[k] = c.alpha * c.slack;
                h.by_beta[k] = -c.alpha * c.over;
            }
        }
    sums->product += product;
    sums->slope += slope;
    sums->curve += curve;
    sums->fastest = fastest;
}

// Takes the step: z += t dz.
inline void hinges_move(const Hinges& h, std::ptrdiff_t begin, std::ptrdiff_t end, double* z,
                        const double* dz, double mu, double t) {
    for (std::ptrdiff_t side = 0; side < 1 + h.problem.regression; ++side)
#pragma omp simd
        for (std::ptrdiff_t i = begin; i < end; ++i) {
            const std::ptrdiff_t k = side * h.n + i;
            const Hinge g = hinge_of(h.problem, i, side);
            const Change c = change(h, k, g, z[i], dz[i], mu, true);
            h.alpha[k] += t * c.alpha;
            h.beta[k] -= t * c.alpha;
            h.slack[k] += t * c.slack;
            h.over[k] += t * c.over;
        }
    for (std::ptrdiff_t i = begin; i < end; ++i) z[i] += t * dz[i];
}

// The objectives' terms of rows; a = sum of sign alpha.
inline void hinges_value(const Hinges& h, std::ptrdiff_t begin, std::ptrdiff_t end, const double* z,
                         double* a, HingeSums* sums) {
    double loss = 0, dual = 0;
    for (std::ptrdiff_t i = begin; i < end; ++i) a[i] = 0;
    for (std::ptrdiff_t side = 0; side < 1 + h.problem.regression; ++side)
#pragma omp simd reduction(+ : loss, dual)
        for (std::ptrdiff_t i = begin; i < end; ++i) {
            const std::ptrdiff_t k = side * h.n + i;
            const Hinge g = hinge_of(h.problem, i, side);
            const double v = g.m - g.sign * z[i];
            loss += h.problem.C[i] * (v > 0 ? v : 0);
            dual += g.m * h.alpha[k];
            a[i] += g.sign * h.alpha[k];
        }
    sums->loss += loss;
    sums->dual += dual;
}
