#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace fastml {

// Splits waiting to be scored together. What `left` and `right` mean is the impurity's affair;
// `place` is the caller's.
struct Queue {
    static constexpr std::ptrdiff_t room = 256;
    double w[room], left[room], right[room], proxies[room];
    std::int64_t place[room];
    std::ptrdiff_t count = 0;

    void push(double weight, double l, double r, std::int64_t at) {
        w[count] = weight;
        left[count] = l;
        right[count] = r;
        place[count++] = at;
    }
    // Those of which wanted(place) is true.
    template <class Wanted> void keep(Wanted wanted) {
        const std::ptrdiff_t all = count;
        count = 0;
        for (std::ptrdiff_t s = 0; s < all; ++s) {
            w[count] = w[s];
            left[count] = left[s];
            right[count] = right[s];
            place[count] = place[s];
            count += wanted(place[s]);
        }
    }
    bool is_full() const { return count == room; }
    // The first of the splits with this proxy.
    std::ptrdiff_t which(double proxy) const {
        return std::find(proxies, proxies + count, proxy) - proxies;
    }
    std::int64_t place_of(double proxy) const { return place[which(proxy)]; }
};

}  // namespace fastml
