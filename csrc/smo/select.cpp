#include <algorithm>
#include <limits>

#include "smo/solver.h"

namespace fastml {

double Extremes::gap() const {
    double widest = top[0] - bottom[0];
    if (parts == 2 && !(top[1] - bottom[1] <= widest)) widest = top[1] - bottom[1];
    return widest;
}

Extremes extremes(const Variables& x, const SvmProblem& problem, const SvmOptions& options) {
    const double infinity = std::numeric_limits<double>::infinity();
    // Without the constraint a variable moves alone: as if against one that is always free.
    const double start = options.bias ? infinity : 0;
    Extremes e{{-start, -start}, {start, start}, options.nu ? 2 : 1};
    for (ptrdiff_t s = 0; s < x.m; ++s) {
        const int part = options.nu && problem.signs[s] < 0;
        const double force = x.force(s);
        if (x.may_rise(s) && !(force <= e.top[part])) e.top[part] = force;
        if (x.may_fall(s) && !(force >= e.bottom[part])) e.bottom[part] = force;
    }
    return e;
}

Selector::Selector(ptrdiff_t m, ptrdiff_t most)
    : chosen(most), queue_(most), in_(m), order_(m), keys_(m) {
    for (ptrdiff_t s = 0; in_ && s < m; ++s) in_[s] = -1;
}

void Selector::choose(const Variables& x, const SvmProblem& problem, const Extremes& ends, bool nu,
                      ptrdiff_t most) {
    parts_ = nu ? 2 : 1;
    if (x.m <= most) {  // all of them, always
        if (n == x.m) return;
        n = 0;
        for (int part = 0; part < parts_; ++part) {
            for (ptrdiff_t s = 0; s < x.m; ++s)
                if (in_part(problem, s, part)) chosen[n++] = static_cast<std::int32_t>(s);
            if (part == 0) split = n;
        }
        return;
    }
    if (n == x.m) n = 0;  // precise sets may be smaller than those before
    // The newer half stays: what comes in is listed last.
    const ptrdiff_t kept = std::min(n, most / 2);
    std::copy(queue_.get() + n - kept, queue_.get() + n, queue_.get());
    n = kept;
    ++now_;
    for (ptrdiff_t k = 0; k < n; ++k) in_[queue_[k]] = now_;
    for (int part = 0; part < parts_; ++part) {
        const ptrdiff_t share = (most - kept) / (2 * parts_);
        take(x, problem, ends.bottom[part], true, part, share);
        take(x, problem, ends.top[part], false, part, share);
    }
    std::copy(queue_.get(), queue_.get() + n, chosen.get());
    const auto first = [&](std::int32_t s) { return in_part(problem, s, 0); };
    split = std::partition(chosen.get(), chosen.get() + n, first) - chosen.get();
}

void Selector::take(const Variables& x, const SvmProblem& problem, double limit, bool rising,
                    int part, ptrdiff_t most) {
    ptrdiff_t count = 0;
    for (ptrdiff_t s = 0; s < x.m; ++s) {
        const double force = x.force(s);
        const bool violates =
            rising ? x.may_rise(s) && force > limit : x.may_fall(s) && force < limit;
        if (!violates || in_[s] == now_ || !in_part(problem, s, part)) continue;
        keys_[s] = rising ? -force : force;
        order_[count++] = static_cast<std::int32_t>(s);
    }
    const auto before = [this](std::int32_t a, std::int32_t b) {
        return keys_[a] < keys_[b] || (keys_[a] == keys_[b] && a < b);
    };
    most = std::min(most, count);
    if (most < count)
        std::nth_element(order_.get(), order_.get() + most, order_.get() + count, before);
    std::sort(order_.get(), order_.get() + most);
    for (ptrdiff_t k = 0; k < most; ++k) {
        in_[order_[k]] = now_;
        queue_[n++] = order_[k];
    }
}

}  // namespace fastml
