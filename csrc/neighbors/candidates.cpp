#include "neighbors/candidates.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace fastml {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

#include "neighbors/about_kth.inl.h"

// Somewhat beyond what a float can tell, at the price of a few instructions.
float rounded_up(double x) {
    const float y = static_cast<float>(x);
    return y + (std::fabs(y) * 2e-7f + 1e-44f);
}
float rounded_down(double x) {
    const float y = static_cast<float>(x);
    return y - (std::fabs(y) * 2e-7f + 1e-44f);
}

void keep_below(const Candidates& c) {
    const float limit = *c.limit;
    std::int32_t kept = 0;
    for (std::int32_t i = 0; i < *c.count; ++i) {
        c.lower[kept] = c.lower[i];
        c.upper[kept] = c.upper[i];
        c.row[kept] = c.row[i];
        kept += c.lower[i] < limit;
    }
    *c.count = kept;
}

}  // namespace

float limit_of(double t, const Costs& costs) noexcept {
    if (!(t < std::numeric_limits<double>::infinity())) return infinity;
    return rounded_up(t + costs.relative * std::fabs(t) + 2 * costs.error);
}

void clear(const Candidates& c, ptrdiff_t k) noexcept {
    *c.count = 0;
    *c.limit = infinity;
    for (ptrdiff_t i = 0; c.smallest && i < k; ++i) c.smallest[i] = infinity;
}

void limit_to(const Candidates& c, const Costs& costs, double bound) noexcept {
    *c.limit = std::min(*c.limit, limit_of(bound, costs));
}

void add(const Candidates& c, ptrdiff_t k, const Costs& costs, std::int32_t row, double cost,
         double slack) noexcept {
    const std::int32_t at = (*c.count)++;
    const float upper = slack < infinity ? rounded_up(cost + slack) : infinity;
    c.lower[at] = rounded_down(cost);
    c.upper[at] = upper;
    c.row[at] = row;
    if (!c.smallest || !(upper < c.smallest[k - 1])) return;
    ptrdiff_t i = k - 1;
    for (; i > 0 && upper < c.smallest[i - 1]; --i) c.smallest[i] = c.smallest[i - 1];
    c.smallest[i] = upper;
    *c.limit = std::min(*c.limit, limit_of(c.smallest[k - 1], costs));
}

void tighten(const Candidates& c, ptrdiff_t k, const Costs& costs) noexcept {
    if (*c.count <= k) return;
    if (!c.smallest)
        *c.limit = std::min(*c.limit, limit_of(about_kth(c.upper, *c.count, k), costs));
    keep_below(c);
}

void reset(const Candidates& c, ptrdiff_t k, const Costs& costs, const double* distances) noexcept {
    const std::int32_t n = *c.count;
    const float limit = *c.limit;
    clear(c, k);
    for (std::int32_t i = 0; i < n; ++i)
        add(c, k, costs, c.row[i], costs.rate * distances[i] + costs.offset, 0);
    if (limit == -infinity) *c.limit = limit;  // whatever the costs
}

void settle(const Candidates& c, ptrdiff_t k, const Costs& costs, const double* distances,
            Neighbor* nearest) noexcept {
    const ptrdiff_t n = *c.count;
    if (n <= k) return;
    for (std::int32_t i = 0; i < n; ++i) nearest[i] = {distances[i], c.row[i], i};
    std::nth_element(nearest, nearest + k - 1, nearest + n);
    const double kth = nearest[k - 1].distance;
    // Rows come in ascending order: none that follows is nearer than 0.
    const double t = costs.rate * kth + costs.offset;
    const float limit = kth == 0 ? -infinity : limit_of(t, costs);
    *c.limit = std::min(*c.limit, limit);
    std::sort(nearest, nearest + k,
              [](const Neighbor& a, const Neighbor& b) { return a.slot < b.slot; });
    for (ptrdiff_t i = 0; i < k; ++i) {
        const std::int32_t slot = nearest[i].slot;  // i at least
        c.lower[i] = c.lower[slot];
        c.upper[i] = c.upper[slot];
        c.row[i] = c.row[slot];
    }
    *c.count = static_cast<std::int32_t>(k);
}

}  // namespace fastml
