#pragma once
// How data rows are compared with queries at the speed of a tile kernel: by a cost that is cheap and
// not quite right. A driver includes this after foreach_isa.h.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "common/scratch.h"
#include "common/tiling.h"
#include "neighbors/candidates.h"
#include "neighbors/neighbors.h"

namespace fastml {

template <class F>
using FilterPanel = void (*)(const F*, ptrdiff_t, const F*, ptrdiff_t, F*, const float*, const F*,
                             const F*, ptrdiff_t, Sink*, F*, ptrdiff_t);

// A query as exact distances take it: doubles, with zeros behind it to a whole cache line.
template <class T> void widened(const T* query, ptrdiff_t d, double* to) {
    for (ptrdiff_t p = 0; p < d; ++p) to[p] = static_cast<double>(query[p]);
    std::fill(to + d, to + aligned(d), 0.0);
}

// Distances themselves; squared, for Euclidean ones.
template <class T> struct Exact {
    static constexpr ptrdiff_t step = 256;
    const Neighborhood<T>& in;
    decltype(&baseline::exact_distances<T>) gathered = FML_PICK(exact_distances<T>);
    decltype(&baseline::stream_distances<T>) streamed = FML_PICK(stream_distances<T>);

    explicit Exact(const Neighborhood<T>& of) : in(of) {}

    // From a query to some rows.
    void gather(const double* q, const std::int32_t* rows, ptrdiff_t n, double* distances) const {
        gathered(in.metric, q, in.data, in.d, rows, n, distances);
    }
    // From a query to rows [first, first + n), n <= step.
    void stream(const double* q, ptrdiff_t first, ptrdiff_t n, double* distances) const {
        if (in.metric != Metric::chebyshev)
            return streamed(in.metric, q, in.data + first * in.d, in.d, n, distances);
        std::int32_t rows[step];
        for (ptrdiff_t j = 0; j < n; ++j) rows[j] = static_cast<std::int32_t>(first + j);
        gather(q, rows, n, distances);
    }
};

// How the work is cut. None of it changes the result.
struct Plan {
    ptrdiff_t block, parts;     // queries of a task, and in how many parts the data is searched
    ptrdiff_t capacity, batch;  // candidates of a query and part; queries at a time
    ptrdiff_t segment;          // data rows of a task at most
    ptrdiff_t opening;          // rows whose costs are kept until there are limits; may be 0

    Plan(ptrdiff_t n_queries, ptrdiff_t n, ptrdiff_t d, ptrdiff_t k, int n_threads) {
        // Queries in L2 if they can be, since all of them pass for each panel of data, but enough
        // of them that laying out the data does not count.
        const ptrdiff_t most = std::max<ptrdiff_t>(128, std::min<ptrdiff_t>(2048, (1 << 19) / d));
        ptrdiff_t blocks = ceil_div(n_queries, most);
        parts = 1;
        if (n_queries >= 64 * n_threads)
            blocks = ceil_div(blocks, n_threads) * n_threads;
        else
            parts = std::max<ptrdiff_t>(1, std::min<ptrdiff_t>(n_threads, n / 1024));
        block = ceil_div(n_queries, blocks);
        capacity = std::min(2 * k + 64, ceil_div(n, parts) + 1);
        constexpr ptrdiff_t memory = 64 << 20;
        const ptrdiff_t states = memory / (12 * capacity + 8) / parts;
        batch = std::max<ptrdiff_t>(1, states / (block * n_threads)) * block * n_threads;
        batch = std::min(batch, n_queries);
        constexpr double longest = 1e9;  // multiply-adds of a task: some 10 ms
        segment = static_cast<ptrdiff_t>(longest / (static_cast<double>(block) * d)) + 1;
        constexpr ptrdiff_t fewest = 192, most_kept = 1024;
        opening = std::min({std::clamp(16 * k, fewest, most_kept), segment, ceil_div(n, parts)});
        if (2 * k > opening) opening = 0;
    }
};

// About where the data is, and how large. A few rows tell: it only has to keep squares from
// cancelling, overflowing and vanishing.
template <class T> struct Frame {
    Scratch<double> center;
    double scale = 1;

    explicit Frame(const Neighborhood<T>& in) noexcept : center(in.d) {
        if (!center) return;
        const ptrdiff_t rows = std::min<ptrdiff_t>(in.n, 64), step = in.n / rows;
        for (ptrdiff_t p = 0; p < in.d; ++p) center[p] = 0;
        for (ptrdiff_t i = 0; i < rows; ++i)
            for (ptrdiff_t p = 0; p < in.d; ++p)
                center[p] += static_cast<double>(in.data[i * step * in.d + p]) / rows;
        double most = 0;
        for (ptrdiff_t i = 0; i < rows; ++i)
            for (ptrdiff_t p = 0; p < in.d; ++p)
                most = std::max(most, std::fabs(in.data[i * step * in.d + p] - center[p]));
        int exponent = 0;
        if (most > 0 && most < std::numeric_limits<double>::infinity()) std::frexp(most, &exponent);
        scale = std::ldexp(1.0, std::max(-400, std::min(400, -20 - exponent)));
    }
};

// One way to filter, for one task at a time on each worker's scratch.
struct Filter {
    virtual ~Filter() = default;
    virtual ptrdiff_t scratch_bytes() const noexcept = 0;  // a multiple of a cache line
    // So many limits are read, those beyond the queries too.
    virtual ptrdiff_t padded_rows() const noexcept = 0;
    // Puts queries [first, first + n) at the head of the scratch, with the costs of each.
    virtual void load_queries(ptrdiff_t first, ptrdiff_t n, void* scratch, Costs* costs,
                              double* norms) const noexcept = 0;
    // Compares data rows [begin, end) with the n loaded queries; what costs less than its query's
    // limit goes to the sink.
    virtual void sweep(ptrdiff_t begin, ptrdiff_t end, ptrdiff_t n, void* scratch,
                       const float* limits, Sink* sink) const noexcept = 0;
    // The same of the first rows, n x their number costs of which are kept until it is known which
    // limits they give for k neighbours.
    virtual ptrdiff_t opening_bytes(ptrdiff_t rows) const noexcept = 0;
    virtual void open(ptrdiff_t begin, ptrdiff_t end, ptrdiff_t n, ptrdiff_t k, void* scratch,
                      void* opening, const float* limits, Sink* sink) const noexcept = 0;
};

// Tiles of F gather products (cost |x|²/2 - q·x, or -q·x for cosine) or differences (the scaled
// distance itself, or its square).
template <class T, class F> class TileFilter final : public Filter {
  public:
    TileFilter(const Neighborhood<T>& in, const Frame<T>& frame, FilterPanel<F> run, bool product,
               ptrdiff_t block) noexcept
        : in_(in), run_(run), product_(product), cosine_(in.metric == Metric::cosine),
          squares_(in.metric <= Metric::sqeuclidean),
          shift_(product && !cosine_ ? frame.center.get() : nullptr),
          scale_(cosine_ ? 1.0 : frame.scale), prepare_(FML_PICK(prepare_rows<T, F>)),
          pack_data_(FML_PICK(pack_data<F>)), pack_queries_(FML_PICK(pack_queries<F>)),
          open_(FML_PICK(open_queries<F>)), shape_(chosen_shape<F>()),
          rows_(ceil_div(block, shape_.rows) * shape_.rows),
          spill_(spill_size(shape_, in.d, rows_ / shape_.rows)),
          // A cost is the sum of d terms: d + 8 roundings, and a little for those of second order.
          share_(1.1 * (static_cast<double>(in.d) + 8) * std::numeric_limits<F>::epsilon() / 2) {}

    ptrdiff_t padded_rows() const noexcept override { return rows_; }

    // The queries as panels, rows on their way into panels, a data panel with its bias and slack,
    // the spill.
    ptrdiff_t scratch_bytes() const noexcept override {
        const ptrdiff_t values =
            aligned(rows_ * in_.d) + aligned(std::max(rows_, shape_.cols) * in_.d) +
            aligned(shape_.cols * in_.d) + 2 * aligned(shape_.cols) + aligned(spill_);
        return values * static_cast<ptrdiff_t>(sizeof(F));
    }

    void load_queries(ptrdiff_t first, ptrdiff_t n, void* scratch, Costs* costs,
                      double* norms) const noexcept override {
        F *panels = static_cast<F*>(scratch), *rows = panels + aligned(rows_ * in_.d);
        prepare_(in_.queries + first * in_.d, n, in_.d, shift_, product_ ? -scale_ : scale_, rows,
                 norms);
        for (ptrdiff_t i = 0; i < n; ++i) {
            costs[i] = costs_of(norms[i]);
            if (!(norms[i] < too_large)) subdue(rows + i * in_.d);
        }
        pack_queries_(rows, n, in_.d, panels);
    }

    void sweep(ptrdiff_t begin, ptrdiff_t end, ptrdiff_t n, void* scratch, const float* limits,
               Sink* sink) const noexcept override {
        for (ptrdiff_t j = begin; j < end; j += shape_.cols)
            run_panel(j, std::min(shape_.cols, end - j), n, scratch, limits, sink, nullptr, 0);
    }

    // The costs, what each is in error by at most, and as much for bounds.
    ptrdiff_t opening_bytes(ptrdiff_t rows) const noexcept override {
        const ptrdiff_t ld = ceil_div(rows, shape_.cols) * shape_.cols;
        return aligned((rows_ + 2) * ld) * static_cast<ptrdiff_t>(sizeof(F));
    }

    void open(ptrdiff_t begin, ptrdiff_t end, ptrdiff_t n, ptrdiff_t k, void* scratch,
              void* opening, const float* limits, Sink* sink) const noexcept override {
        const ptrdiff_t ld = ceil_div(end - begin, shape_.cols) * shape_.cols;
        F *costs = static_cast<F*>(opening), *slack = costs + rows_ * ld;
        for (ptrdiff_t j = begin; j < end; j += shape_.cols) {
            const F* of_panel = run_panel(j, std::min(shape_.cols, end - j), n, scratch, limits,
                                          sink, costs + (j - begin), ld);
            std::copy_n(of_panel, shape_.cols, slack + (j - begin));
        }
        open_(costs, ld, n, slack, ld, k, begin, limits, slack + ld, sink);
    }

  private:
    // Data rows [first, first + here), no more than a panel has; returns what they may cost more.
    const F* run_panel(ptrdiff_t first, ptrdiff_t here, ptrdiff_t n, void* scratch,
                       const float* limits, Sink* sink, F* kept, ptrdiff_t ld) const {
        const ptrdiff_t d = in_.d, cols = shape_.cols;
        const F* queries = static_cast<F*>(scratch);
        F* rows = static_cast<F*>(scratch) + aligned(rows_ * d);
        F* panel = rows + aligned(std::max(rows_, cols) * d);
        F *bias = panel + aligned(cols * d), *slack = bias + aligned(cols);
        F* spill = slack + aligned(cols);
        double norms[most_cols];
        prepare_(in_.data + first * d, here, d, shift_, scale_, rows, norms);
        for (ptrdiff_t r = 0; r < cols; ++r) {
            bias[r] = std::numeric_limits<F>::infinity();
            slack[r] = 0;
            if (r >= here) continue;
            set_bias(norms[r], bias + r, slack + r);
            if (!(norms[r] < too_large)) subdue(rows + r * d);
        }
        pack_data_(rows, here, d, panel);
        run_(queries, ceil_div(n, shape_.rows), panel, d, spill, limits, bias, slack, first, sink,
             kept, ld);
        return slack;
    }

    Costs costs_of(double norm) const {
        constexpr double infinity = std::numeric_limits<double>::infinity();
        const bool large = !(norm < too_large);
        if (!product_)  // the float in which bounds are kept has the last word
            return {squares_ ? scale_ * scale_ : scale_, 0, large ? infinity : tiny,
                    std::max(4 * share_, 1e-6)};
        if (cosine_) return {1, -1, 1.1 * share_, 0};
        if (large) return {0, 0, infinity, 0};
        return {scale_ * scale_ / 2, -norm / 2, share_ * norm / 2 + tiny, 0};
    }

    void set_bias(double norm, F* bias, F* slack) const {
        constexpr F infinity = std::numeric_limits<F>::infinity();
        const bool large = !(norm < too_large);
        *bias = 0;
        *slack = large ? infinity : 0;
        if (!shift_) return;
        // Half of the slack goes off at the start, so that costs are lower bounds.
        const double error = share_ * norm + tiny;
        *bias = large ? -infinity : static_cast<F>(norm / 2 - error);
        if (!large) *slack = static_cast<F>(2.001 * error);
    }

    // Makes a row harmless whose square might overflow. Products: it is always a candidate.
    // Differences: they only become smaller.
    void subdue(F* row) const {
        constexpr F most = F(1e18);
        for (ptrdiff_t p = 0; p < in_.d; ++p)
            row[p] = product_ ? F(0) : std::max(-most, std::min(most, row[p]));
    }

    static constexpr double too_large = 1e36;  // of squared norms; its root is `most`
    static constexpr double tiny = 1e-36;      // more than what may vanish
    static constexpr ptrdiff_t most_cols = 48;

    const Neighborhood<T>& in_;
    FilterPanel<F> run_;
    bool product_, cosine_, squares_;
    const double* shift_;
    double scale_;
    void (*prepare_)(const T*, ptrdiff_t, ptrdiff_t, const double*, double, F*, double*);
    void (*pack_data_)(const F*, ptrdiff_t, ptrdiff_t, F*);
    void (*pack_queries_)(const F*, ptrdiff_t, ptrdiff_t, F*);
    decltype(&baseline::open_queries<F>) open_;
    TileShape shape_;
    ptrdiff_t rows_, spill_;
    double share_;
};

// run(filter, fallback): the filters for a metric. The fallback, which may be null, costs several
// times as much and is hardly ever in error.
template <class T, class Run>
Status with_filters(const Neighborhood<T>& in, ptrdiff_t block, const Run& run) noexcept {
    const Frame<T> frame(in);
    if (!frame.center) return Status::no_memory;
    if (in.metric == Metric::manhattan || in.metric == Metric::chebyshev) {
        const FilterPanel<T> panel = in.metric == Metric::manhattan ? FML_PICK(filter_magnitudes<T>)
                                                                    : FML_PICK(filter_largest<T>);
        const TileFilter<T, T> filter(in, frame, panel, false, block);
        return run(filter, nullptr);
    }
    const bool cosine = in.metric == Metric::cosine;
    const TileFilter<T, float> filter(in, frame, FML_PICK(filter_products<float>), true, block);
    const FilterPanel<double> slow =
        cosine ? FML_PICK(filter_products<double>) : FML_PICK(filter_squares<double>);
    const TileFilter<T, double> fallback(in, frame, slow, cosine, block);
    return run(filter, &fallback);
}

}  // namespace fastml
