#pragma once
// What rows add to the Poisson deviance.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "trees/tree.h"

namespace fastml {

inline double deviance_term(double y, double mean) { return y == 0 ? 0.0 : y * std::log(y / mean); }

// The terms of targets, for one mean after another. Where all targets are small counts each is worked
// out once a mean: logarithms take longer than all else that a row needs.
class DevianceTerms {
  public:
    explicit DevianceTerms(const Growth& growth) {
        const std::ptrdiff_t count = growth.columns->n * growth.n_outputs;
        if (std::all_of(growth.y, growth.y + count,
                        [](double y) { return y >= 0 && y < most && y == std::floor(y); }))
            terms_.resize(most);
    }
    // Of so many rows. The targets of a few hardly repeat, and whether they do cannot be guessed.
    void start(double mean, std::ptrdiff_t rows) {
        mean_ = mean;
        keeps_ = rows >= 32 && !terms_.empty();
        ++number_;
    }
    double of(double y) {
        if (!keeps_) return deviance_term(y, mean_);
        Term& term = terms_[static_cast<std::size_t>(y)];
        if (term.number != number_) term = {deviance_term(y, mean_), number_};
        return term.value;
    }

  private:
    static constexpr int most = 256;
    struct Term {
        double value = 0;
        std::uint64_t number = 0;  // of its mean
    };

    std::vector<Term> terms_;  // by target, or empty
    double mean_ = 0;
    bool keeps_ = false;
    std::uint64_t number_ = 0;
};

}  // namespace fastml
