#pragma once
// The tile shape of the instruction set in use; a driver includes this after foreach_isa.h.
#include "common/blocks.h"
#include "common/isa.h"

namespace fastml {

struct TileShape {
    ptrdiff_t rows, cols, depth;
};
template <class T> TileShape chosen_shape() {
    TileShape s;
    FML_PICK(tile_shape<T>)(&s.rows, &s.cols, &s.depth);
    return s;
}

// Values that multiply_panel spills: a tile for every panel, when rows are long.
inline ptrdiff_t spill_size(const TileShape& s, ptrdiff_t d, ptrdiff_t panels) {
    return d > s.depth ? panels * s.rows * s.cols : 0;
}

}  // namespace fastml
