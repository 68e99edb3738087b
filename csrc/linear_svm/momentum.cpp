#include "linear_svm/momentum.h"

// std headers come before any target region
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "common/isa.h"

#define FML_KERNEL "linear_svm/momentum.inl.h"
#include "common/foreach_isa.h"

namespace fastml {

// The most that a difference is carried on.
constexpr double farthest = 8;
// Rounding errors so much larger are still small.
constexpr double most_growth = 1e6;
// Pieces that the weights, and the rows, are cut into.
constexpr ptrdiff_t pieces = 8;

// Along p and q: the sums of weights_block and multipliers_block, and the slopes of epsilon |a|.
template <class T> struct Momentum<T>::Plane {
    double sums[6], corners[2];
};

template <class T> void Momentum<T>::start(const Coordinate* rows, const double* w) {
    for (double* point : {last_, past_}) std::copy_n(w, passes_.width, point);
    for (ptrdiff_t i = 0; i < passes_.n; ++i) last_a_[i] = past_a_[i] = rows[i].a;
}

template <class T>
Status Momentum<T>::plane(const Coordinate* rows, double* w, const double* other, int n_threads,
                          Plane* sum) {
    const auto weights = FML_PICK(weights_block);
    const auto multipliers = FML_PICK(multipliers_block);
    const Grid columns(passes_.width, pieces), grid(passes_.n, pieces);
    Plane parts[2 * pieces] = {};
    const Status status = parallel(columns.blocks + grid.blocks, n_threads, [&](ptrdiff_t t, int) {
        Plane& part = parts[t];
        const ptrdiff_t b = t - columns.blocks;
        if (b < 0) {
            const ptrdiff_t p = columns.begin(t), size = columns.end(t) - p;
            for (ptrdiff_t r = p; other && r < p + size; ++r) w[r] += other[r] - last_[r];
            std::copy_n(w + p, size, now_ + p);
            weights(w + p, last_ + p, past_ + p, size, part.sums);
            return;
        }
        for (ptrdiff_t i = grid.begin(b); i < grid.end(b); ++i) now_a_[i] = rows[i].a;
        multipliers(problem_, now_a_, last_a_, past_a_, grid.begin(b), grid.end(b), part.sums,
                    part.corners);
    });
    *sum = {};
    for (ptrdiff_t t = 0; t < columns.blocks + grid.blocks; ++t) {
        for (int k = 0; k < 6; ++k) sum->sums[k] += parts[t].sums[k];
        for (int k = 0; k < 2; ++k) sum->corners[k] += parts[t].corners[k];
    }
    return status;
}

template <class T>
Status Momentum<T>::move(Coordinate* rows, double* w, double* other, int n_threads) {
    if (!other) n_threads = 1;  // by now the others sleep, and waking them takes as long
    Plane s;
    Status status = plane(rows, w, other, n_threads, &s);
    if (status != Status::ok) return status;
    dual = -s.sums[5] / 2;
    if ((status = carry(rows, w, s, other, n_threads)) != Status::ok) return status;
    if (growth_ > most_growth && (status = renew(rows, w, n_threads)) != Status::ok) return status;
    std::swap(last_, past_);
    std::swap(last_a_, past_a_);
    const Grid columns(passes_.width, pieces), grid(passes_.n, pieces);
    return parallel(columns.blocks + grid.blocks, n_threads, [&](ptrdiff_t t, int) {
        const ptrdiff_t b = t - columns.blocks;
        if (b < 0) {
            const ptrdiff_t p = columns.begin(t), size = columns.end(t) - p;
            std::copy_n(w + p, size, last_ + p);
            if (other) std::copy_n(w + p, size, other + p);
            return;
        }
        for (ptrdiff_t i = grid.begin(b); i < grid.end(b); ++i) last_a_[i] = rows[i].a;
    });
}

// To the best point of the plane; of the line, where there is no plane yet.
template <class T>
Status Momentum<T>::carry(Coordinate* rows, double* w, const Plane& s, bool halves, int n_threads) {
    const double pp = s.sums[2], pq = s.sums[3], qq = s.sums[4], det = pp * qq - pq * pq;
    const double g1 = s.sums[0] + s.corners[0], g2 = s.sums[1] + s.corners[1];
    if (!(pp > 0)) return Status::ok;
    double c1 = -g1 / pp, c2 = 0;
    if (!halves && !(det > 1e-9 * pp * qq)) return Status::ok;
    if (det > 1e-9 * pp * qq) {
        c1 = (pq * g2 - qq * g1) / det;
        c2 = (pq * g1 - pp * g2) / det;
    }
    // Where the plane is nearly flat its best point is far, and rounding on the way there lasts.
    const double scale = std::min(1.0, farthest / std::max(std::fabs(c1), std::fabs(c2)));
    c1 *= scale;
    c2 *= scale;
    double change = 0;
    const Status status = place(rows, w, c1, c2, n_threads, &change);
    if (status != Status::ok) return status;
    change += c1 * s.sums[0] + c2 * s.sums[1] + (c1 * c1 * pp + c2 * c2 * qq) / 2 + c1 * c2 * pq;
    // Bounds may have taken away what the plane promised.
    if (change > 0) return stay(rows, w, halves ? 0.5 : 1, n_threads);
    growth_ *= 1 + 2 * (std::fabs(c1) + std::fabs(c2));
    return status;
}

// At the end of the sweep, or so far on the way there.
template <class T>
Status Momentum<T>::stay(Coordinate* rows, double* w, double part, int n_threads) {
    const Grid columns(passes_.width, pieces), grid(passes_.n, pieces);
    return parallel(columns.blocks + grid.blocks, n_threads, [&](ptrdiff_t t, int) {
        const ptrdiff_t b = t - columns.blocks;
        if (b < 0) {
            for (ptrdiff_t p = columns.begin(t); p < columns.end(t); ++p)
                w[p] = now_[p] - (1 - part) * (now_[p] - last_[p]);
            return;
        }
        for (ptrdiff_t i = grid.begin(b); i < grid.end(b); ++i)
            rows[i].a = now_a_[i] - (1 - part) * (now_a_[i] - last_a_[i]);
    });
}

// w = X'a, from a.
template <class T>
Status Momentum<T>::renew(const Coordinate* rows, double* w, int n_threads) {
    for (ptrdiff_t i = 0; i < passes_.n; ++i) now_a_[i] = rows[i].a;
    if (++renewed_ == 3) growth_ = 1, renewed_ = 0;
    return passes_.sweep(nullptr, nullptr, now_a_, w, n_threads,
                         [](ptrdiff_t, ptrdiff_t, ptrdiff_t) {});
}

// Moves along the plane, but a not out of its bounds; what that, and epsilon |a|, adds.
template <class T>
Status Momentum<T>::place(Coordinate* rows, double* w, double c1, double c2, int n_threads,
                          double* change) {
    const auto point = FML_PICK(point_block);
    const auto change_row = FML_PICK(change_row<T>);
    const Grid columns(passes_.width, pieces), grid(passes_.n, pieces);
    double corners[pieces] = {};
    const Status status = parallel(columns.blocks + grid.blocks, n_threads, [&](ptrdiff_t t, int) {
        const ptrdiff_t b = t - columns.blocks;
        if (b < 0) {
            const ptrdiff_t p = columns.begin(t), size = columns.end(t) - p;
            point(w + p, last_ + p, past_ + p, size, c1, c2);
            return;
        }
        for (ptrdiff_t i = grid.begin(b); i < grid.end(b); ++i) {
            Coordinate& row = rows[i];
            const double a = row.a;
            const double there = a + c1 * (a - last_a_[i]) + c2 * (last_a_[i] - past_a_[i]);
            row.a = std::clamp(there, row.low, row.high);
            corners[b] += problem_.epsilon * (std::fabs(row.a) - std::fabs(a));
            past_a_[i] = there;  // which nobody needs any more
        }
    });
    if (status != Status::ok) return status;
    for (const double corner : corners) *change += corner;
    for (ptrdiff_t i = 0; i < passes_.n; ++i) {
        const double there = past_a_[i];
        const Coordinate& row = rows[i];
        if (row.a != there)
            *change += change_row(passes_.X, passes_.bias, i, row.a - there,
                                  row.curve * there - row.b, row.Q, w);
    }
    return status;
}

template class Momentum<float>;
template class Momentum<double>;

}  // namespace fastml
