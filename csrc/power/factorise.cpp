#include "power/power.h"

// std headers come before any target region
#include <algorithm>
#include <cmath>

#include "common/blocks.h"
#include "common/isa.h"

#define FML_KERNEL "power/factorise.inl.h"
#include "common/foreach_isa.h"

namespace fastml {

bool factorise(const double* G, ptrdiff_t k, double* R, double* inverse) noexcept {
    std::copy_n(G, k * k, R);
    std::fill_n(inverse, k * k, 0.0);
    return FML_PICK(factorise_block)(k, R, inverse);
}

}  // namespace fastml
