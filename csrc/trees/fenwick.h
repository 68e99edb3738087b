#pragma once
// Sums of weights, and of weighted targets, of the rows up to a rank.
#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace fastml {

// How many bits it takes to count to `most`.
inline int bits_of(std::uint64_t most) {
#if defined(__GNUC__)
    return most ? 64 - __builtin_clzll(most) : 0;
#else
    int bits = 0;
    for (; most; most >>= 1) ++bits;
    return bits;
#endif
}

// Adds and searches with the operations of scikit-learn's tree, in another layout: the node above
// rank i at level l, if there is one, has the number i >> (l + 1) there, and nodes of one level lie
// side by side.
class Fenwick {
  public:
    // Of `size` ranks; w and wy: memory for size + 64 sums each.
    Fenwick(std::ptrdiff_t size, double* w, double* wy)
        : size_(size), levels_(bits_of(static_cast<std::uint64_t>(size))) {
        lay_out(w, w_);
        lay_out(wy, wy_);
    }
    void add(std::uint32_t rank, double w, double wy) {
        for (int l = 0; l < levels_; ++l) {
            if (rank >> l & 1) continue;
            w_[l][rank >> (l + 1)] += w;
            wy_[l][rank >> (l + 1)] += wy;
        }
    }

    // The rank up to which there is `wanted`; if exactly so much, `before` is where it is reached
    // and `rank` the next one that was added. Otherwise they are the same.
    struct Found {
        std::ptrdiff_t before, rank;
        double w, wy;  // below the rank
    };
    Found find(double wanted) const {
        Found found{0, 0, 0.0, 0.0};
        int l = levels_ - 1;
        for (; l >= 0; --l) {
            const std::ptrdiff_t at = found.rank + (std::ptrdiff_t{1} << l);
            if (at > size_) continue;
            const double w = w_[l][at >> (l + 1)];
            if (wanted == w) break;
            if (wanted > w) take(found, wanted, l, at);
        }
        found.before = found.rank;
        double left = wanted;
        for (int b = l; b >= 0; --b) {
            const std::ptrdiff_t at = found.before + (std::ptrdiff_t{1} << b);
            if (at > size_) continue;
            const double w = w_[b][at >> (b + 1)];
            if (!(left > w)) continue;
            left -= w;
            found.before = at;
        }
        for (; l >= 0; --l) {
            const std::ptrdiff_t at = found.rank + (std::ptrdiff_t{1} << l);
            if (at <= size_ && wanted >= w_[l][at >> (l + 1)]) take(found, wanted, l, at);
        }
        return found;
    }

  private:
    static constexpr int most_levels = 33;

    void lay_out(double* nodes, double** level) const {
        double* const first = nodes;
        for (int l = 0; l < levels_; ++l) {
            level[l] = nodes;
            nodes += (size_ >> (l + 1)) + 1;
        }
        std::fill(first, nodes, 0.0);
    }
    void take(Found& found, double& wanted, int l, std::ptrdiff_t at) const {
        const double w = w_[l][at >> (l + 1)];
        wanted -= w;
        found.rank = at;
        found.w += w;
        found.wy += wy_[l][at >> (l + 1)];
    }

    const std::ptrdiff_t size_;
    const int levels_;
    double *w_[most_levels], *wy_[most_levels];
};

}  // namespace fastml
