#include "trees/criterion.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "trees/deviance.h"
#include "trees/screen.h"

namespace fastml {

using std::ptrdiff_t;

void Criterion::weigh(const Weights& weights) {
    weights_ = weights;
    total_weight_ = 0;
    for (ptrdiff_t i = 0; i < growth_.columns->n; ++i) total_weight_ += weights_[i];
}

double Criterion::proxy() const {
    double left, right;
    children_impurity(&left, &right);
    return -right_weight_ * right - left_weight_ * left;
}

void Criterion::clip(double* value, double lower, double upper) const {
    value[0] = value[0] < lower ? lower : value[0] > upper ? upper : value[0];
}

namespace {

// Sums that a row adds to in a few places: a class's weight, or a weighted target per output.
// Derived::add(row, w, sums) adds, with w negative it takes away.
template <class Derived> class Additive : public Criterion {
  public:
    Additive(const Growth& growth, const std::int32_t* rows)
        : Additive(growth, rows, growth.n_outputs * growth.max_n_classes) {}
    Additive(const Growth& growth, const std::int32_t* rows, ptrdiff_t size)
        : Criterion(growth, rows), size_(size), total_(size_), left_(size_), right_(size_) {}

    const double* node_sums() const override { return total_.data(); }
    void reset() override { go(start_, 0.0, node_weight_, left_, right_); }

    void update(ptrdiff_t position) override {
        const auto* self = static_cast<const Derived*>(this);
        // From whichever side has fewer rows to pass, as it decides the rounding.
        if (position - position_ <= end_ - position) {
            for (ptrdiff_t p = position_; p < position; ++p) {
                const double w = weight(p);
                self->add(target(p), w, left_.data());
                left_weight_ += w;
            }
        } else {
            go(end_, node_weight_, 0.0, right_, left_);
            for (ptrdiff_t p = end_ - 1; p >= position; --p) {
                const double w = weight(p);
                self->add(target(p), -w, left_.data());
                left_weight_ -= w;
            }
        }
        right_weight_ = node_weight_ - left_weight_;
        for (ptrdiff_t s = 0; s < size_; ++s) right_[s] = total_[s] - left_[s];
        position_ = position;
    }
    double left_value() const override { return left_[0] / left_weight_; }
    double right_value() const override { return right_[0] / right_weight_; }
    double middle_value() const override {
        return left_[0] / (2 * left_weight_) + right_[0] / (2 * right_weight_);
    }

  protected:
    // The position to an end: `none` of the rows are on one side, all on the other.
    void go(ptrdiff_t position, double left_weight, double right_weight, std::vector<double>& none,
            std::vector<double>& all) {
        position_ = position;
        left_weight_ = left_weight;
        right_weight_ = right_weight;
        std::fill(none.begin(), none.end(), 0.0);
        std::copy(total_.begin(), total_.end(), all.begin());
    }
    void begin(ptrdiff_t start, ptrdiff_t end) {
        start_ = start;
        end_ = end;
        node_weight_ = 0;
        std::fill(total_.begin(), total_.end(), 0.0);
    }

    const ptrdiff_t size_;
    std::vector<double> total_, left_, right_;
};

class Classes : public Additive<Classes> {
  public:
    using Additive::Additive;

    void add(const double* y, double w, double* sums) const {
        for (ptrdiff_t k = 0; k < growth_.n_outputs; ++k)
            sums[k * growth_.max_n_classes + static_cast<ptrdiff_t>(y[k])] += w;
    }
    void init(ptrdiff_t start, ptrdiff_t end) override {
        begin(start, end);
        for (ptrdiff_t p = start; p < end; ++p) {
            const double w = weight(p);
            add(target(p), w, total_.data());
            node_weight_ += w;
        }
        reset();
    }
    double impurity() const override { return impurity_of(total_.data(), node_weight_); }
    void children_impurity(double* left, double* right) const override {
        *left = impurity_of(left_.data(), left_weight_);
        *right = impurity_of(right_.data(), right_weight_);
    }
    void value(double* out) const override {
        for (ptrdiff_t s = 0; s < size_; ++s) out[s] = total_[s] / node_weight_;
    }
    void clip(double* value, double lower, double upper) const override {
        Criterion::clip(value, lower, upper);
        value[1] = 1 - value[0];
    }

  protected:
    // Of class weights (n_outputs, max_n_classes) that sum to w: the mean over the outputs.
    virtual double impurity_of(const double* sums, double w) const = 0;
};

class Gini final : public Classes {
  public:
    using Classes::Classes;

  private:
    double impurity_of(const double* sums, double w) const override {
        double gini = 0;
        for (ptrdiff_t k = 0; k < growth_.n_outputs; ++k, sums += growth_.max_n_classes) {
            double squares = 0;
            for (ptrdiff_t c = 0; c < growth_.n_classes[k]; ++c) squares += sums[c] * sums[c];
            gini += 1.0 - squares / (w * w);
        }
        return gini / static_cast<double>(growth_.n_outputs);
    }
};

class Entropy final : public Classes {
  public:
    using Classes::Classes;

  private:
    double impurity_of(const double* sums, double w) const override {
        double entropy = 0;
        for (ptrdiff_t k = 0; k < growth_.n_outputs; ++k, sums += growth_.max_n_classes)
            for (ptrdiff_t c = 0; c < growth_.n_classes[k]; ++c)
                if (sums[c] > 0) {
                    const double share = sums[c] / w;
                    entropy -= share * (std::log(share) / std::log(2.0));
                }
        return entropy / static_cast<double>(growth_.n_outputs);
    }
};

class Misclassification final : public Classes {
  public:
    using Classes::Classes;

  private:
    double impurity_of(const double* sums, double w) const override {
        double missed = 0;
        for (ptrdiff_t k = 0; k < growth_.n_outputs; ++k, sums += growth_.max_n_classes)
            missed += 1.0 - *std::max_element(sums, sums + growth_.n_classes[k]) / w;
        return missed / static_cast<double>(growth_.n_outputs);
    }
};

class Targets : public Additive<Targets> {
  public:
    using Additive::Additive;

    void add(const double* y, double w, double* sums) const {
        for (ptrdiff_t k = 0; k < growth_.n_outputs; ++k) sums[k] += w * y[k];
    }
    void init(ptrdiff_t start, ptrdiff_t end) override {
        begin(start, end);
        squares_ = 0;
        for (ptrdiff_t p = start; p < end; ++p) {
            const double* y = target(p);
            const double w = weight(p);
            for (ptrdiff_t k = 0; k < growth_.n_outputs; ++k) {
                const double wy = w * y[k];
                total_[k] += wy;
                squares_ += wy * y[k];
            }
            node_weight_ += w;
        }
        reset();
    }
    void value(double* out) const override {
        for (ptrdiff_t k = 0; k < growth_.n_outputs; ++k) out[k] = total_[k] / node_weight_;
    }

  protected:
    double squares_ = 0;
};

class SquaredError final : public Targets {
  public:
    using Targets::Targets;

    double impurity() const override { return variance(squares_, total_.data(), node_weight_); }
    double proxy() const override {
        double left = 0, right = 0;
        for (ptrdiff_t k = 0; k < size_; ++k) {
            left += left_[k] * left_[k];
            right += right_[k] * right_[k];
        }
        return left / left_weight_ + right / right_weight_;
    }
    void children_impurity(double* left, double* right) const override {
        double squares = 0;
        for (ptrdiff_t p = start_; p < position_; ++p) {
            const double* y = target(p);
            const double w = weight(p);
            for (ptrdiff_t k = 0; k < growth_.n_outputs; ++k) squares += w * y[k] * y[k];
        }
        *left = variance(squares, left_.data(), left_weight_);
        *right = variance(squares_ - squares, right_.data(), right_weight_);
    }

  private:
    double variance(double squares, const double* sums, double w) const {
        double result = squares / w;
        for (ptrdiff_t k = 0; k < size_; ++k) {
            const double mean = sums[k] / w;
            result -= mean * mean;
        }
        return result / static_cast<double>(growth_.n_outputs);
    }
};

class Poisson final : public Targets {
  public:
    Poisson(const Growth& growth, const std::int32_t* rows)
        : Targets(growth, rows), terms_(growth) {}

    double impurity() const override { return deviance(start_, end_, total_.data(), node_weight_); }
    double proxy() const override {
        double left = 0, right = 0;
        for (ptrdiff_t k = 0; k < size_; ++k) {
            if (left_[k] <= no_target || right_[k] <= no_target)
                return -std::numeric_limits<double>::infinity();
            left -= left_[k] * (std::log(left_[k] / left_weight_) / std::log(2.0));
            right -= right_[k] * (std::log(right_[k] / right_weight_) / std::log(2.0));
        }
        return -left - right;
    }
    void children_impurity(double* left, double* right) const override {
        *left = deviance(start_, position_, left_.data(), left_weight_);
        *right = deviance(position_, end_, right_.data(), right_weight_);
    }

  private:
    double deviance(ptrdiff_t begin, ptrdiff_t end, const double* sums, double w) const {
        double loss = 0;
        for (ptrdiff_t k = 0; k < size_; ++k) {
            if (sums[k] <= no_target) return std::numeric_limits<double>::infinity();
            terms_.start(sums[k] / w, end - begin);
            for (ptrdiff_t p = begin; p < end; ++p) loss += weight(p) * terms_.of(target(p)[k]);
        }
        return loss / (w * static_cast<double>(growth_.n_outputs));
    }

    mutable DevianceTerms terms_;
};

// An impurity of the user's, of classes' weights.
class UserClasses final : public Classes {
  public:
    using Classes::Classes;

  private:
    double impurity_of(const double* sums, double) const override {
        return growth_.impurity(sums, sums, size_);
    }
};

// Of the sums of weights, of weighted targets and of their squares.
class UserMoments final : public Additive<UserMoments> {
  public:
    UserMoments(const Growth& growth, const std::int32_t* rows) : Additive(growth, rows, 3) {}

    void add(const double* y, double w, double* sums) const {
        sums[0] += w;
        sums[1] += w * *y;
        sums[2] += w * *y * *y;
    }
    void init(ptrdiff_t start, ptrdiff_t end) override {
        begin(start, end);
        for (ptrdiff_t p = start; p < end; ++p) add(target(p), weight(p), total_.data());
        node_weight_ = total_[0];
        reset();
    }
    double impurity() const override { return of(total_); }
    void children_impurity(double* left, double* right) const override {
        *left = of(left_);
        *right = of(right_);
    }
    void value(double* out) const override { *out = total_[1] / total_[0]; }
    double left_value() const override { return left_[1] / left_[0]; }
    double right_value() const override { return right_[1] / right_[0]; }
    double middle_value() const override { return (left_value() + right_value()) / 2; }

  private:
    double of(const std::vector<double>& sums) const {
        return growth_.impurity(sums.data(), sums.data(), size_);
    }
};

}  // namespace

std::unique_ptr<Criterion> make_criterion(const Growth& growth, const std::int32_t* rows) {
    switch (growth.criterion) {
        case CriterionName::gini:
            return std::make_unique<Gini>(growth, rows);
        case CriterionName::entropy:
            return std::make_unique<Entropy>(growth, rows);
        case CriterionName::misclassification:
            return std::make_unique<Misclassification>(growth, rows);
        case CriterionName::absolute_error:
            return absolute_error(growth, rows);
        case CriterionName::user:
            if (growth.n_classes) return std::make_unique<UserClasses>(growth, rows);
            return std::make_unique<UserMoments>(growth, rows);
        case CriterionName::poisson:
            return std::make_unique<Poisson>(growth, rows);
        default:
            return std::make_unique<SquaredError>(growth, rows);
    }
}

}  // namespace fastml
