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

// Along p and q: the sums of plane_block for what is quadratic, [0, 2) with its linear part, and
// the slopes of epsilon |a|.
template <class T> struct Momentum<T>::Plane {
    double sums[5], corners[2];
};

template <class T> void Momentum<T>::start(const Coordinate* rows, const double* w) {
    for (double* point : {last_, past_}) std::copy_n(w, passes_.width, point);
    for (ptrdiff_t i = 0; i < passes_.n; ++i) last_a_[i] = past_a_[i] = rows[i].a;
}

template <class T>
typename Momentum<T>::Plane Momentum<T>::plane(const Coordinate* rows, const double* w) const {
    Plane plane{};
    FML_PICK(plane_block)(w, last_, past_, passes_.width, plane.sums);
    for (ptrdiff_t i = 0; i < passes_.n; ++i) {
        const Coordinate& row = rows[i];
        const double p = row.a - last_a_[i], q = last_a_[i] - past_a_[i];
        const double slope = row.curve * row.a - row.b;
        const double corner = row.a > 0 ? epsilon_ : row.a < 0 ? -epsilon_ : 0.0;
        plane.sums[0] += slope * p;
        plane.sums[1] += slope * q;
        plane.sums[2] += row.curve * p * p;
        plane.sums[3] += row.curve * p * q;
        plane.sums[4] += row.curve * q * q;
        plane.corners[0] += corner * p;
        plane.corners[1] += corner * q;
    }
    return plane;
}

template <class T> Status Momentum<T>::move(Coordinate* rows, double* w, int n_threads) {
    const Plane s = plane(rows, w);
    const double pp = s.sums[2], pq = s.sums[3], qq = s.sums[4], det = pp * qq - pq * pq;
    Status status = Status::ok;
    for (ptrdiff_t i = 0; i < passes_.n; ++i) now_a_[i] = rows[i].a;
    if (det > 1e-9 * pp * qq) {
        const double g1 = s.sums[0] + s.corners[0], g2 = s.sums[1] + s.corners[1];
        double c1 = (pq * g2 - qq * g1) / det, c2 = (pq * g1 - pp * g2) / det;
        // Where the plane is nearly flat its best point is far, and rounding on the way there lasts.
        const double scale = std::min(1.0, farthest / std::max(std::fabs(c1), std::fabs(c2)));
        c1 *= scale;
        c2 *= scale;
        FML_PICK(point_block)(w, last_, past_, passes_.width, c1, c2);
        const double change = c1 * s.sums[0] + c2 * s.sums[1] + (c1 * c1 * pp + c2 * c2 * qq) / 2 +
                              c1 * c2 * pq + place(rows, w, c1, c2);
        if (!(change <= 0)) {  // bounds took away what the plane promised
            for (ptrdiff_t i = 0; i < passes_.n; ++i) rows[i].a = now_a_[i];
            status = passes_.sweep(nullptr, nullptr, now_a_, w, n_threads,
                                   [](ptrdiff_t, ptrdiff_t, ptrdiff_t) {});
        }
    }
    std::swap(last_, past_);
    std::swap(last_a_, past_a_);
    std::copy_n(w, passes_.width, last_);
    for (ptrdiff_t i = 0; i < passes_.n; ++i) last_a_[i] = rows[i].a;
    return status;
}

// Moves a along the plane, but not out of its bounds; what that, and epsilon |a|, adds.
template <class T> double Momentum<T>::place(Coordinate* rows, double* w, double c1, double c2) {
    const auto change_row = FML_PICK(change_row<T>);
    double change = 0;
    for (ptrdiff_t i = 0; i < passes_.n; ++i) {
        Coordinate& row = rows[i];
        const double a = row.a;
        const double there = a + c1 * (a - last_a_[i]) + c2 * (last_a_[i] - past_a_[i]);
        row.a = std::clamp(there, row.low, row.high);
        change += epsilon_ * (std::fabs(row.a) - std::fabs(a));
        if (row.a == there) continue;
        change += change_row(passes_.X, passes_.bias, i, row.a - there, row.curve * there - row.b,
                             row.Q, w);
    }
    return change;
}

template class Momentum<float>;
template class Momentum<double>;

}  // namespace fastml
