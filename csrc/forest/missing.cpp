// std headers come before any target region
#include <cstddef>

#include "common/isa.h"
#include "forest/blocks.h"

#define FML_KERNEL "forest/missing.inl.h"
#include "common/foreach_isa.h"

namespace fastml {

bool has_missing(const float* x, ptrdiff_t n) noexcept { return FML_PICK(any_missing)(x, n); }

}  // namespace fastml
