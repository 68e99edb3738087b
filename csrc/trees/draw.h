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
//
//     draw.start(known);
//     while (draw.more()) {
//         feature = draw.next(random);
//         if (feature < 0) continue;            // a constant one
//         constant ? draw.constant() : draw.used();
//     }
//     known = draw.finish();
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

    void start(std::ptrdiff_t known_constants) {
        known_ = total_ = known_constants;
        end_ = d_;
        visited_ = found_ = drawn_ = 0;
    }
    bool more() const {
        return end_ > total_ && (visited_ < max_features_ || visited_ <= found_ + drawn_);
    }
    std::ptrdiff_t next(Xorshift& random) {
        ++visited_;
        at_ = random.integer(drawn_, end_ - found_);
        if (at_ < known_) {
            swap(drawn_++, at_);
            return -1;
        }
        at_ += found_;
        return features_[at_];
    }
    void constant() {
        swap(at_, total_++);
        ++found_;
    }
    void used() { swap(--end_, at_); }
    // The constants known now. Siblings and descendants find them first, in the order of discovery.
    std::ptrdiff_t finish() {
        std::memcpy(features_.get(), constants_.get(), sizeof(std::int32_t) * known_);
        std::memcpy(constants_.get() + known_, features_.get() + known_,
                    sizeof(std::int32_t) * found_);
        return total_;
    }

  private:
    void swap(std::ptrdiff_t a, std::ptrdiff_t b) {
        const std::int32_t keep = features_[a];
        features_[a] = features_[b];
        features_[b] = keep;
    }

    std::ptrdiff_t d_, max_features_;
    Scratch<std::int32_t> features_, constants_;
    std::ptrdiff_t known_ = 0, total_ = 0, end_ = 0, visited_ = 0, found_ = 0, drawn_ = 0, at_ = 0;
};

}  // namespace fastml
