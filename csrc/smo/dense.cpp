// std headers come before any target region
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>
#include <type_traits>

#include "common/blocks.h"
#include "common/isa.h"
#include "common/scratch.h"
#include "pairwise/plan.h"
#include "smo/set.h"
#include "smo/view.h"

#define FML_KERNEL "smo/rows.inl.h"
#include "common/foreach_isa.h"
#include "common/tiling.h"

namespace fastml {
namespace {

constexpr ptrdiff_t rows_at_once = 384, strip_columns = 16 * block_unit;

// What a row costs is d; with fewer columns than this, all rows' products with one vector cost less
// than the kernel rows of a working set do when they are only read.
constexpr ptrdiff_t linear_columns = 300;

// A row of fewer is made about as fast as it is read.
constexpr ptrdiff_t cheap_columns = 128;

template <class S> struct Data {
    Rows<S> X;
    Measure measure;
    Scratch<double> shift;
    bool shifted;
};

// The columns in panels, as the engine takes them.
template <class C, class S> class Panels {
  public:
    Panels(const Data<S>& data, ptrdiff_t n)
        : data_(data), shape_(chosen_shape<C>()), padded_(ceil_div(n, shape_.cols) * shape_.cols),
          values_(padded_ * data.X.d), norms_(padded_), sizes_(padded_ / shape_.cols) {}
    explicit operator bool() const { return values_ && norms_ && sizes_; }

    Status pack(const ptrdiff_t* ids, ptrdiff_t n, int n_threads) noexcept {
        ids_ = ids;
        n_ = n;
        const ptrdiff_t d = data_.X.d, cols = shape_.cols;
        Scratch<C> rows(n_threads * cols * d);
        if (!rows) return Status::no_memory;
        const auto take = FML_PICK(take_rows_block<C, S>);
        const auto pack = FML_PICK(pack_chunk_panel<C>);
        n_threads = threads_for(passed_over * n * d, n_threads);
        return parallel(ceil_div(n, cols), n_threads, [&](ptrdiff_t p, int worker) {
            const ptrdiff_t here = std::min(cols, n - p * cols);
            C* raw = rows.get() + worker * cols * d;
            take(data_.X.data, d, ids + p * cols, here, shift(), raw);
            pack(job(raw), 0, here, 0, values_.get() + p * cols * d, norms_.get() + p * cols,
                 sizes_.get() + p);
        });
    }

    // As View::add, for rows that are at most rows_at_once.
    Status add(const ptrdiff_t* ids, ptrdiff_t count, const double* coef, C* const* keep,
               double* sums, int n_threads) const noexcept {
        const ptrdiff_t d = data_.X.d, cols = shape_.cols;
        const ptrdiff_t height = std::min(dense_rows, ceil_div(count, shape_.rows) * shape_.rows);
        const ptrdiff_t per_thread = aligned(height * (d + 1 + 2 * cols) + cols +
                                             spill_size(shape_, d, height / shape_.rows));
        n_threads = threads_for((static_cast<double>(d) + passed_over) * count * n_, n_threads);
        Scratch<C> rows(count * d), scratch(n_threads * per_thread);
        if (!rows || !scratch) return Status::no_memory;
        FML_PICK(take_rows_block<C, S>)(data_.X.data, d, ids, count, shift(), rows.get());
        const auto run = FML_PICK(rows_block<C, S>);
        const Job<C> what = job(rows.get());
        const Chunk<C> chunk{0, n_, values_.get(), norms_.get(), sizes_.get(), 0, nullptr, nullptr};
        const ptrdiff_t count_panels = ceil_div(n_, cols), strip = strip_columns / cols;
        return parallel(ceil_div(count_panels, strip), n_threads, [&](ptrdiff_t t, int worker) {
            const ptrdiff_t p0 = t * strip, p1 = std::min(p0 + strip, count_panels);
            for (ptrdiff_t i0 = 0; i0 < count; i0 += height)
                run(what, chunk, i0, std::min(height, count - i0), p0, p1,
                    scratch.get() + worker * per_thread, {data_.X.data, ids, ids_, d},
                    {keep, coef, sums});
        });
    }

  private:
    const double* shift() const { return data_.shifted ? data_.shift.get() : nullptr; }
    Job<C> job(const C* rows) const {
        const Rows<C> some{rows, nullptr, nullptr, data_.X.n + dense_rows, data_.X.d, nullptr};
        return job_for(some, some, data_.measure, Sink::store);
    }

    const Data<S>& data_;
    TileShape shape_;
    ptrdiff_t padded_, n_ = 0;
    const ptrdiff_t* ids_ = nullptr;
    Scratch<C> values_, norms_, sizes_;
};

template <class S> class DenseView : public View {
  public:
    explicit DenseView(const Data<S>& data) : data_(data) {}

    Status set_columns(const ptrdiff_t* ids, ptrdiff_t n, int) noexcept override {
        ids_ = ids;
        n_ = n;
        panels_.reset();
        return Status::ok;
    }

    Status add(const ptrdiff_t* ids, ptrdiff_t count, const double* coef, float* const* keep,
               double* sums, int n_threads) noexcept override {
        if (!panels_) {
            panels_.reset(new (std::nothrow) Panels<float, S>(data_, n_));
            if (!panels_ || !*panels_) return Status::no_memory;
            const Status status = panels_->pack(ids_, n_, n_threads);
            if (status != Status::ok) return status;
        }
        return in_groups(*panels_, ids, count, coef, keep, sums, n_threads);
    }

    Status add_exact(const ptrdiff_t* ids, ptrdiff_t count, const double* coef, double* const* keep,
                     double* sums, int n_threads) noexcept override {
        const ptrdiff_t width = std::min<ptrdiff_t>(n_, 96 * block_unit);
        Panels<double, S> panels(data_, width);
        Scratch<double*> kept(keep ? count : 0);
        if (!panels || !kept) return Status::no_memory;
        for (ptrdiff_t first = 0; first < n_; first += width) {
            Status status = panels.pack(ids_ + first, std::min(width, n_ - first), n_threads);
            if (status != Status::ok) return status;
            for (ptrdiff_t i = 0; keep && i < count; ++i) kept[i] = keep[i] + first;
            status = in_groups(panels, ids, count, coef, keep ? kept.get() : nullptr,
                               sums ? sums + first : nullptr, n_threads);
            if (status != Status::ok) return status;
        }
        return Status::ok;
    }

    int thrift() const noexcept override { return data_.X.d > cheap_columns ? 2 : 1; }

  protected:
    template <class C>
    Status in_groups(const Panels<C, S>& panels, const ptrdiff_t* ids, ptrdiff_t count,
                     const double* coef, C* const* keep, double* sums, int n_threads) noexcept {
        for (ptrdiff_t i = 0; i < count; i += rows_at_once) {
            const Status status =
                panels.add(ids + i, std::min(rows_at_once, count - i), coef ? coef + i : nullptr,
                           keep ? keep + i : nullptr, sums, n_threads);
            if (status != Status::ok) return status;
        }
        return Status::ok;
    }

    const Data<S>& data_;
    const ptrdiff_t* ids_ = nullptr;
    ptrdiff_t n_ = 0;
    std::unique_ptr<Panels<float, S>> panels_;
};

// A linear kernel: the rows' weighted sum times every column.
template <class S> class LinearView final : public DenseView<S> {
  public:
    using DenseView<S>::DenseView;

    Status add(const ptrdiff_t* ids, ptrdiff_t count, const double* coef, float* const* keep,
               double* sums, int n_threads) noexcept override {
        if (keep) return DenseView<S>::add(ids, count, coef, keep, sums, n_threads);
        return project(ids, count, coef, sums, n_threads);
    }
    Status add_exact(const ptrdiff_t* ids, ptrdiff_t count, const double* coef, double* const* keep,
                     double* sums, int n_threads) noexcept override {
        if (keep) return DenseView<S>::add_exact(ids, count, coef, keep, sums, n_threads);
        return project(ids, count, coef, sums, n_threads);
    }
    bool exact() const noexcept override { return true; }
    bool linear() const noexcept override { return true; }
    int thrift() const noexcept override { return 0; }

  private:
    Status project(const ptrdiff_t* ids, ptrdiff_t count, const double* coef, double* sums,
                   int n_threads) noexcept {
        const Rows<S>& X = this->data_.X;
        Scratch<double> w(X.d);
        if (!w) return Status::no_memory;
        std::fill_n(w.get(), X.d, 0.0);
        FML_PICK(combine_block<S>)(X.data, X.d, ids, count, coef, w.get());
        const auto run = FML_PICK(project_block<S>);
        const Grid grid(this->n_, free_blocks);
        n_threads = threads_for(passed_over * this->n_ * X.d, n_threads);
        return parallel(grid.blocks, n_threads, [&](ptrdiff_t b, int) {
            const ptrdiff_t j = grid.begin(b);
            run(X.data, X.d, this->ids_ + j, grid.end(b) - j, w.get(), sums + j);
        });
    }
};

template <class S> class SparseView final : public View {
  public:
    explicit SparseView(const Data<S>& data)
        : data_(data), job_(job_for(data.X, data.X, data.measure, Sink::store)) {}

    Status set_columns(const ptrdiff_t* ids, ptrdiff_t n, int) noexcept override {
        ids_ = ids;
        n_ = n;
        width_ = std::min<ptrdiff_t>(1 << 15, ceil_div(ceil_div(n, 16), 16) * 16);
        width_ = std::max<ptrdiff_t>(width_, 1 << 10);
        const ptrdiff_t chunks = ceil_div(n, width_), d = data_.X.d;
        ptrdiff_t stored = 0;
        for (ptrdiff_t j = 0; j < n; ++j)
            stored += data_.X.indptr[ids[j] + 1] - data_.X.indptr[ids[j]];
        lists_.reset(new (std::nothrow) Lists(chunks * (d + 1), stored, chunks * width_));
        if (!lists_ || !*lists_) return Status::no_memory;
        for (ptrdiff_t c = 0, at = 0; c < chunks; ++c) at = sort(c, at);
        return Status::ok;
    }
    Status add(const ptrdiff_t* ids, ptrdiff_t count, const double* coef, float* const* keep,
               double* sums, int n_threads) noexcept override {
        return run(ids, count, coef, keep, sums, n_threads);
    }
    Status add_exact(const ptrdiff_t* ids, ptrdiff_t count, const double* coef, double* const* keep,
                     double* sums, int n_threads) noexcept override {
        return run(ids, count, coef, keep, sums, n_threads);
    }

  private:
    // Columns by feature, chunk by chunk.
    struct Lists {
        Scratch<ptrdiff_t> start;
        Scratch<std::int32_t> rows;
        Scratch<double> values, norms;
        Lists(ptrdiff_t starts, ptrdiff_t stored, ptrdiff_t columns)
            : start(starts), rows(stored), values(stored), norms(columns) {}
        explicit operator bool() const { return start && rows && values && norms; }
    };

    // Sorts chunk c into lists that begin at `at`; returns where they end.
    ptrdiff_t sort(ptrdiff_t c, ptrdiff_t at) noexcept {
        const Rows<S>& X = data_.X;
        const ptrdiff_t j0 = c * width_, j1 = std::min(n_, j0 + width_), d = X.d;
        ptrdiff_t* start = lists_->start.get() + c * (d + 1);
        std::fill_n(start, d + 1, ptrdiff_t{0});
        for (ptrdiff_t j = j0; j < j1; ++j)
            for (std::int32_t q = X.indptr[ids_[j]]; q < X.indptr[ids_[j] + 1]; ++q)
                ++start[X.indices[q]];
        for (ptrdiff_t p = 0; p <= d; ++p) start[p] = at += start[p];
        for (ptrdiff_t j = j1; j-- > j0;)
            for (std::int32_t q = X.indptr[ids_[j]]; q < X.indptr[ids_[j] + 1]; ++q) {
                const ptrdiff_t t = --start[X.indices[q]];
                lists_->rows[t] = static_cast<std::int32_t>(j - j0);
                lists_->values[t] = X.data[q];
            }
        const auto norm = FML_PICK(sparse_norm_of<S>);
        for (ptrdiff_t j = j0; j < j0 + width_; ++j)
            lists_->norms[j] = j < n_ ? norm(job_.plan.norm, X, ids_[j]) : 0;
        return at;
    }

    template <class K>
    Status run(const ptrdiff_t* ids, ptrdiff_t count, const double* coef, K* const* keep,
               double* sums, int n_threads) noexcept {
        const ptrdiff_t chunks = ceil_div(n_, width_), d = data_.X.d;
        Scratch<double> at(n_threads * width_);
        if (!at) return Status::no_memory;
        const auto block = FML_PICK(sparse_rows_block<S, K>);
        // Not all rows in one task: nothing looks for Ctrl-C inside.
        for (ptrdiff_t i = 0; i < count; i += rows_at_once) {
            const ptrdiff_t here = std::min(rows_at_once, count - i);
            const int threads = threads_for(passed_over * here * n_, n_threads);
            const Status status = parallel(chunks, threads, [&](ptrdiff_t c, int worker) {
                const Chunk<double> chunk{c * width_,
                                          std::min(width_, n_ - c * width_),
                                          lists_->values.get(),
                                          lists_->norms.get() + c * width_,
                                          nullptr,
                                          width_,
                                          lists_->rows.get(),
                                          lists_->start.get() + c * (d + 1)};
                block(job_, chunk, ids + i, here, ids_, at.get() + worker * width_,
                      {keep ? keep + i : nullptr, coef ? coef + i : nullptr, sums});
            });
            if (status != Status::ok) return status;
        }
        return Status::ok;
    }

    const Data<S>& data_;
    const Job<S> job_;
    const ptrdiff_t* ids_ = nullptr;
    ptrdiff_t n_ = 0, width_ = 0;
    std::unique_ptr<Lists> lists_;
};

// A linear kernel of sparse rows.
template <class S> class RowsKernel final : public Kernel {
  public:
    RowsKernel(const Rows<S>& X, const Measure& measure)
        : Kernel(X.n), data_{X, measure, Scratch<double>(X.d), false} {
        const bool sparse = X.indptr;
        data_.shifted =
            !sparse && (measure.metric == Metric::rbf || measure.metric == Metric::laplacian);
        if (data_.shifted && data_.shift) find_mean();
    }
    explicit operator bool() const { return static_cast<bool>(data_.shift); }

    std::unique_ptr<View> view() const noexcept override {
        View* made;
        if (data_.X.indptr)
            made = new (std::nothrow) SparseView<S>(data_);
        else if (data_.measure.metric == Metric::linear && data_.X.d <= linear_columns)
            made = new (std::nothrow) LinearView<S>(data_);
        else
            made = new (std::nothrow) DenseView<S>(data_);
        return std::unique_ptr<View>(made);
    }

  private:
    void find_mean() {
        const ptrdiff_t n = data_.X.n, d = data_.X.d, step = ceil_div(n, 1024);
        double* mean = data_.shift.get();
        std::fill_n(mean, d, 0.0);
        ptrdiff_t count = 0;
        for (ptrdiff_t i = 0; i < n; i += step) {
            ++count;
            for (ptrdiff_t p = 0; p < d; ++p)
                mean[p] += (static_cast<double>(data_.X.data[i * d + p]) - mean[p]) / count;
        }
    }

    Data<S> data_;
};

}  // namespace

template <class T>
std::unique_ptr<Kernel> rows_kernel(const Rows<T>& X, const Measure& measure) noexcept {
    auto* made = new (std::nothrow) RowsKernel<T>(X, measure);
    std::unique_ptr<RowsKernel<T>> kernel(made);
    if (!kernel || !*kernel) return nullptr;
    return kernel;
}

template std::unique_ptr<Kernel> rows_kernel(const Rows<float>&, const Measure&) noexcept;
template std::unique_ptr<Kernel> rows_kernel(const Rows<double>&, const Measure&) noexcept;

}  // namespace fastml
