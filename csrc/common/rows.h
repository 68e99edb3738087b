#pragma once
#include <cstddef>
#include <cstdint>

namespace fastml {

// The rows of X (n, d): dense in C order, or CSR with indices in [0, d) in any order, duplicates
// added. `shift` (d values, or null for none) is subtracted on the fly: near the data's mean,
// |x|² − 2x·c + |c|² does not cancel.
template <class T> struct Rows {
    const T* data;                // dense: the entries. CSR: the stored values
    const std::int32_t* indices;  // CSR only, else null
    const std::int32_t* indptr;
    std::ptrdiff_t n, d;
    const T* shift;  // dense only
};

}  // namespace fastml
