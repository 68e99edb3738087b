#include "trees/grow.h"

#include <algorithm>
#include <memory>
#include <new>
#include <vector>

#include "trees/grower.h"

namespace fastml {

using std::ptrdiff_t;

namespace {

// About 20 ms of one thread's work: then a look for Ctrl-C.
constexpr ptrdiff_t step_values = 1 << 21;

struct Forest {
    const Growth& growth;
    const double* real_weights;
    const std::int32_t* counts;
    ptrdiff_t n_weights;
    const std::uint32_t* seeds;

    std::unique_ptr<Grower> sow(ptrdiff_t tree) const {
        const ptrdiff_t at = (n_weights == 1 ? 0 : tree) * growth.columns->n;
        const Weights weights{real_weights ? real_weights + at : nullptr,
                              counts ? counts + at : nullptr};
        std::unique_ptr<Splitter> splitter = counted_splitter(growth, weights, seeds[tree]);
        if (!splitter)
            splitter = growth.random_splits ? random_splitter(growth, weights, seeds[tree])
                                            : best_splitter(growth, weights, seeds[tree]);
        return std::make_unique<Grower>(growth, std::move(splitter));
    }
};

}  // namespace

Status grow(const Growth& growth, const double* real_weights, const std::int32_t* counts,
            ptrdiff_t n_weights, const std::uint32_t* seeds, ptrdiff_t n_trees, Grown* out,
            int n_threads) noexcept try {
    const Forest forest{growth, real_weights, counts, n_weights, seeds};
    const ptrdiff_t step = std::max<ptrdiff_t>(1, step_values / growth.max_features);
    // A round advances as many trees as there are threads, each by a step.
    std::vector<std::unique_ptr<Grower>> growing(std::min<ptrdiff_t>(n_trees, n_threads));
    std::vector<ptrdiff_t> tree_of(growing.size());
    std::vector<char> failed(growing.size(), 0);
    ptrdiff_t next = 0, finished = 0;
    while (finished < n_trees) {
        for (std::size_t slot = 0; slot < growing.size(); ++slot)
            if (!growing[slot] && next < n_trees) tree_of[slot] = next++;
            else if (!growing[slot]) tree_of[slot] = -1;
        const Status status = parallel(
            static_cast<ptrdiff_t>(growing.size()), n_threads, [&](ptrdiff_t slot, int) {
                if (tree_of[slot] < 0) return;
                try {
                    if (!growing[slot]) growing[slot] = forest.sow(tree_of[slot]);
                    if (!growing[slot]->advance(step)) return;
                    out[tree_of[slot]] = std::move(growing[slot]->tree());
                    growing[slot].reset();
                } catch (const std::bad_alloc&) {
                    failed[slot] = 1;
                }
            });
        if (status != Status::ok) return status;
        if (std::find(failed.begin(), failed.end(), 1) != failed.end()) return Status::no_memory;
        for (std::size_t slot = 0; slot < growing.size(); ++slot)
            if (!growing[slot] && tree_of[slot] >= 0) ++finished, tree_of[slot] = -1;
    }
    return Status::ok;
} catch (const std::bad_alloc&) {
    return Status::no_memory;
}

}  // namespace fastml
