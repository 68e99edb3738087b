#pragma once
// The random numbers of scikit-learn's splitters, and the features they draw with them.
#include <cstdint>
#include <cstring>

#include "common/scratch.h"

namespace fastml {

// Marsaglia's 32-bit xorshift (13, 17, 5); numbers have 31 bits.
class Xorshift {
  public:
    static constexpr std::uint32_t largest = 2147483647;  // RAND_R_MAX

    explicit Xorshift(std::uint32_t seed) : state_(seed) {}
    std::uint32_t next() {
        if (state_ == 0) state_ = 1;
        state_ ^= state_ << 13;
        state_ ^= state_ >> 17;
        state_ ^= state_ << 5;
        return state_ & largest;
    }
    std::ptrdiff_t integer(std::ptrdiff_t low, std::ptrdiff_t high) {  // in [low, high)
        return low + next() % static_cast<std::uint32_t>(high - low);  // 64 bits take their time
    }
    double uniform(double low, double high) {
        return (high - low) * static_cast<double>(next()) / static_cast<double>(largest) + low;
    }

  private:
    std::uint32_t state_;
};

// Features of a node, drawn without replacement (Fisher-Yates) until max_features have been drawn
// and one of them was not constant. Features that an ancestor found constant are not looked at
// again, yet they are drawn: that keeps the random numbers those of scikit-learn.
class FeatureDraw {
  public:
    FeatureDraw(std::ptrdiff_t d, std::ptrdiff_t max_features)
        : d_(d), max_features_(max_features), features_(d), constants_(d) {
        if (*this) reset();
    }
    explicit operator bool() const { return features_ && constants_; }
    void reset() {
        for (std::ptrdiff_t f = 0; f < d_; ++f) features_[f] = static_cast<std::int32_t>(f);
    }

    // Calls varies(feature), which tells whether the feature does in the node, and may itself take
    // random numbers. `known` features are constant, as the parent found; returns how many are now.
    template <class Varies>
    std::ptrdiff_t each(Xorshift& random, std::ptrdiff_t known, Varies varies) {
        std::ptrdiff_t end = d_;                // behind it, features that were drawn and vary
        std::ptrdiff_t total = known;           // constant ones: known, then found
        std::ptrdiff_t visited = 0, drawn = 0;  // drawn: of the known ones
        while (end > total && (visited < max_features_ || visited <= total - known + drawn)) {
            ++visited;
            std::ptrdiff_t at = random.integer(drawn, end - (total - known));
            if (at < known) {
                swap(drawn++, at);
                continue;
            }
            at += total - known;
            if (varies(features_[at]))
                swap(--end, at);
            else
                swap(at, total++);
        }
        // Siblings and descendants find the constants first, in the order of discovery.
        std::memcpy(features_.get(), constants_.get(), sizeof(std::int32_t) * known);
        std::memcpy(constants_.get() + known, features_.get() + known,
                    sizeof(std::int32_t) * (total - known));
        return total;
    }

  private:
    void swap(std::ptrdiff_t a, std::ptrdiff_t b) {
        const std::int32_t keep = features_[a];
        features_[a] = features_[b];
        features_[b] = keep;
    }

    std::ptrdiff_t d_, max_features_;
    Scratch<std::int32_t> features_, constants_;
};

}  // namespace fastml
