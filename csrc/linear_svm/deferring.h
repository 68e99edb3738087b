#pragma once
// Solvers that leave a problem to others. Internal to the family.
#include <memory>

#include "linear_svm/linear_svm.h"

namespace fastml {

// Looks at a problem first, and then follows the solver that it chose.
class Deferring : public Solver {
  protected:
    Status choose(Solver* other) {
        other_.reset(other);
        steps_ = n_iter;
        return other ? Status::ok : Status::no_memory;
    }
    Status follow(int n_threads) {
        const Status status = other_->advance(n_threads);
        done = other_->done;
        converged = other_->converged;
        n_iter = steps_ + other_->n_iter;
        primal = other_->primal;
        gap = other_->gap;
        w = other_->w;
        return status;
    }

    std::unique_ptr<Solver> other_;

  private:
    int steps_ = 0;  // before there was another
};

}  // namespace fastml
