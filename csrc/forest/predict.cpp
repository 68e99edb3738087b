#include "forest/blocks.h"

namespace fastml {
namespace {

// What becomes of the leaves that rows end in.
class Sink {
  public:
    const bool takes_values;  // or the leaves themselves

    virtual void open(const Block&) noexcept {}
    // Rows i, i + 1, ... of the block end in value rows, or leaves, where[0], where[1], ... of
    // tree t. A row comes to its trees in their order.
    virtual void take(const Block& block, ptrdiff_t t, ptrdiff_t i, ptrdiff_t count,
                      const std::uint32_t* where) noexcept = 0;
    virtual void close(const Block&) noexcept {}

  protected:
    explicit Sink(bool values) : takes_values(values) {}
    ~Sink() = default;
};

struct Walk {
    static constexpr ptrdiff_t few_rows = 4;
    const PackedForest& forest;
    const Block& block;
    Sink& sink;

    template <class Node> std::uint32_t found(const PackedTree& tree, std::uint32_t leaf) const {
        if (sink.takes_values) return static_cast<const Node*>(tree.nodes)[leaf].value_row();
        return static_cast<std::uint32_t>(tree.origin[leaf]);
    }

    template <Missing missing, class Node> void run() const {
        if (block.rows <= few_rows) return row_by_row<missing, Node>();
        std::uint32_t where[chunk];
        for (ptrdiff_t t = 0; t < forest.n_trees; ++t)
            for (ptrdiff_t i = 0; i < block.rows; i += chunk) {
                const ptrdiff_t count = std::min(chunk, block.rows - i);
                walk_rows<missing, Node>(forest.trees[t], block.x + i * forest.d, count, forest.d,
                                         where);
                for (ptrdiff_t k = 0; k < count; ++k)
                    where[k] = found<Node>(forest.trees[t], where[k]);
                sink.take(block, t, i, count, where);
            }
    }

    template <Missing missing, class Node> void row_by_row() const {
        std::uint32_t where[chunk];
        for (ptrdiff_t i = 0; i < block.rows; ++i)
            for (ptrdiff_t t = 0; t < forest.n_trees; t += chunk) {
                const ptrdiff_t count = std::min(chunk, forest.n_trees - t);
                walk_trees<missing, Node>(forest.trees + t, count, block.x + i * forest.d, where);
                for (ptrdiff_t k = 0; k < count; ++k) {
                    where[k] = found<Node>(forest.trees[t + k], where[k]);
                    sink.take(block, t + k, i, 1, where + k);
                }
            }
    }
};

Status run(const PackedForest& forest, const Rows<float>& X, const Cut& cut, Sink& sink) noexcept {
    return for_blocks(forest, X, cut, [&](const Block& block) {
        sink.open(block);
        with_nodes(forest.layout, block.missing, Walk{forest, block, sink});
        sink.close(block);
    });
}

class Sum : public Sink {
  public:
    Sum(const PackedForest& forest, bool average, double* out)
        : Sink(true), forest_(forest), average_(average), out_(out) {}

    void open(const Block& block) noexcept override {
        std::fill_n(sums(block), block.rows * forest_.width, 0.0);
    }
    void take(const Block& block, ptrdiff_t t, ptrdiff_t i, ptrdiff_t count,
              const std::uint32_t* where) noexcept override {
        const double* const values = forest_.trees[t].values;
        double* out = sums(block) + i * forest_.width;
        if (forest_.width == 1) return add<1>(values, 1, where, count, out);
        if (forest_.width == 2) return add<2>(values, 2, where, count, out);
        add<0>(values, forest_.width, where, count, out);
    }
    void close(const Block& block) noexcept override {
        if (!average_) return;
        double* const out = sums(block);
        const double n_trees = static_cast<double>(forest_.n_trees);
        // Not times 1 / n_trees, which rounds twice.
        for (ptrdiff_t e = 0; e < block.rows * forest_.width; ++e) out[e] /= n_trees;
    }

  private:
    template <int fixed>
    static void add(const double* values, ptrdiff_t any, const std::uint32_t* where,
                    ptrdiff_t count, double* out) {
        const ptrdiff_t width = fixed ? fixed : any;
        for (ptrdiff_t k = 0; k < count; ++k, out += width) {
            const double* const value = values + where[k] * width;
            for (ptrdiff_t j = 0; j < width; ++j) out[j] += value[j];
        }
    }

  protected:
    virtual double* sums(const Block& block) noexcept { return out_ + block.begin * forest_.width; }
    const PackedForest& forest_;

  private:
    bool average_;
    double* out_;
};

class Classes final : public Sum {
  public:
    Classes(const PackedForest& forest, ptrdiff_t outputs, ptrdiff_t block_rows, double* scratch,
            ptrdiff_t* out)
        : Sum(forest, true, nullptr), outputs_(outputs), area_(block_rows * forest.width),
          scratch_(scratch), out_(out) {}

    void close(const Block& block) noexcept override {
        // The average and not the sum: dividing can make two of them equal.
        Sum::close(block);
        const double* part = sums(block);
        const ptrdiff_t classes = forest_.width / outputs_;
        ptrdiff_t* out = out_ + block.begin * outputs_;
        for (ptrdiff_t e = 0; e < block.rows * outputs_; ++e, part += classes)
            out[e] = std::max_element(part, part + classes) - part;
    }

  protected:
    double* sums(const Block& block) noexcept override { return scratch_ + block.worker * area_; }

  private:
    ptrdiff_t outputs_, area_;
    double* scratch_;
    ptrdiff_t* out_;
};

class Each final : public Sink {
  public:
    Each(const PackedForest& forest, double* out) : Sink(true), forest_(forest), out_(out) {}

    void take(const Block& block, ptrdiff_t t, ptrdiff_t i, ptrdiff_t count,
              const std::uint32_t* where) noexcept override {
        const ptrdiff_t width = forest_.width;
        for (ptrdiff_t k = 0; k < count; ++k)
            std::copy_n(forest_.trees[t].values + where[k] * width, width,
                        out_ + ((block.begin + i + k) * forest_.n_trees + t) * width);
    }

  private:
    const PackedForest& forest_;
    double* out_;
};

class Leaves final : public Sink {
  public:
    Leaves(ptrdiff_t n_trees, ptrdiff_t* out) : Sink(false), n_trees_(n_trees), out_(out) {}

    void take(const Block& block, ptrdiff_t t, ptrdiff_t i, ptrdiff_t count,
              const std::uint32_t* where) noexcept override {
        for (ptrdiff_t k = 0; k < count; ++k) out_[(block.begin + i + k) * n_trees_ + t] = where[k];
    }

  private:
    ptrdiff_t n_trees_;
    ptrdiff_t* out_;
};

}  // namespace

Status sum_values(const PackedForest& forest, const Rows<float>& X, bool average, double* out,
                  int n_threads) noexcept {
    Sum sink(forest, average, out);
    return run(forest, X, Cut(forest, X, n_threads), sink);
}

Status classify(const PackedForest& forest, const Rows<float>& X, ptrdiff_t outputs, ptrdiff_t* out,
                int n_threads) noexcept {
    const Cut cut(forest, X, n_threads);
    Scratch<double> scratch(cut.threads * cut.rows * forest.width);
    if (!scratch) return Status::no_memory;
    Classes sink(forest, outputs, cut.rows, scratch.get(), out);
    return run(forest, X, cut, sink);
}

Status each_values(const PackedForest& forest, const Rows<float>& X, double* out,
                   int n_threads) noexcept {
    Each sink(forest, out);
    return run(forest, X, Cut(forest, X, n_threads), sink);
}

Status leaves(const PackedForest& forest, const Rows<float>& X, ptrdiff_t* out,
              int n_threads) noexcept {
    Leaves sink(forest.n_trees, out);
    return run(forest, X, Cut(forest, X, n_threads), sink);
}

}  // namespace fastml
