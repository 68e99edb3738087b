#pragma once
#include <algorithm>

#include "common/blocks.h"
#include "common/scratch.h"
#include "forest/forest.h"
#include "forest/walk.h"

namespace fastml {

// Whether one of the n values is NaN.
bool has_missing(const float* x, ptrdiff_t n) noexcept;

// Rows [begin, begin + rows) of X, dense.
struct Block {
    ptrdiff_t begin, rows;
    int worker;
    const float* x;
    Missing missing;
};

// How the rows are cut. Each has a sum of its own, so that the threads may have a say.
struct Cut {
    ptrdiff_t rows, blocks;
    int threads;
    Cut(const PackedForest& forest, const Rows<float>& X, int n_threads) {
        // A step costs some 25 multiply-adds.
        threads = threads_for(25.0 * X.n * forest.steps, n_threads);
        // Many rows a block, so that a tree which does not fit the nearest cache comes there once
        // for all of them; but they and their sums should stay in the second one.
        const ptrdiff_t fit = (ptrdiff_t{1} << 17) / std::max<ptrdiff_t>(X.d, 1);
        const ptrdiff_t sums = std::max<ptrdiff_t>((ptrdiff_t{1} << 15) / forest.width, 16);
        const ptrdiff_t least = X.indices ? 1 : 64;  // sparse rows are spread out in scratch
        const ptrdiff_t share = ceil_div(ceil_div(X.n, 8 * threads), 16) * 16;
        rows = std::min({std::clamp<ptrdiff_t>(fit, least, 1024), sums, share});
        blocks = ceil_div(X.n, rows);
    }
};

// Stored values of rows [begin, begin + rows) put where they belong in `dense`, or zeros there.
inline bool spread(const Rows<float>& X, ptrdiff_t begin, ptrdiff_t rows, bool erase,
                   float* dense) {
    bool missing = false;
    for (ptrdiff_t i = begin; i < begin + rows; ++i, dense += X.d)
        for (std::int32_t q = X.indptr[i]; q < X.indptr[i + 1]; ++q) {
            dense[X.indices[q]] = erase ? 0 : X.data[q];
            missing |= X.data[q] != X.data[q];
        }
    return missing;
}

// body(block) for every block of rows.
template <class Body>
Status for_blocks(const PackedForest& forest, const Rows<float>& X, const Cut& cut,
                  Body&& body) noexcept {
    const ptrdiff_t area = X.indices ? aligned(cut.rows * X.d) : 0;
    Scratch<float> dense(cut.threads * area);
    if (!dense) return Status::no_memory;
    std::fill_n(dense.get(), cut.threads * area, 0.f);
    auto one = [&](ptrdiff_t b, int worker) {
        Block block{b * cut.rows, std::min(cut.rows, X.n - b * cut.rows), worker, nullptr,
                    Missing::absent};
        if (X.indices) {
            float* const x = dense.get() + worker * area;
            if (spread(X, block.begin, block.rows, false, x)) block.missing = Missing::right;
            block.x = x;
            body(block);
            spread(X, block.begin, block.rows, true, x);
            return;
        }
        block.x = X.data + block.begin * X.d;
        // Looking at every value pays unless the walk itself looks at few of them.
        if (4 * forest.steps < X.d || has_missing(block.x, block.rows * X.d))
            block.missing = Missing::learned;
        body(block);
    };
    if (cut.blocks == 1) {  // a single row knows of no threads
        one(0, 0);
        return Status::ok;
    }
    return parallel(cut.blocks, cut.threads, one);
}

// Calls body.run<missing, Node>().
template <class Node, class Body> void with_missing(Missing missing, const Body& body) {
    switch (missing) {
        case Missing::absent:
            return body.template run<Missing::absent, Node>();
        case Missing::learned:
            return body.template run<Missing::learned, Node>();
        case Missing::right:
            return body.template run<Missing::right, Node>();
    }
}
template <class Body> void with_nodes(Layout layout, Missing missing, const Body& body) {
    switch (layout) {
        case Layout::narrow:
            return with_missing<NarrowNode>(missing, body);
        case Layout::middle:
            return with_missing<MiddleNode>(missing, body);
        case Layout::wide:
            return with_missing<WideNode>(missing, body);
    }
}

}  // namespace fastml
