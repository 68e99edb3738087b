#include "kmeans/dense.inl.h"
#include "kmeans/sparse.inl.h"

// The shapes that the driver needs before it knows more than T.
template <class T> void tile_shape(std::ptrdiff_t* rows, std::ptrdiff_t* cols, std::ptrdiff_t* depth) {
    *rows = tile_rows;
    *cols = tile_cols<T>;
    *depth = tile_depth<T>;
}
