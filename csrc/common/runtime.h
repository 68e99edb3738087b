#pragma once
#include "common/isa.h"
#include "common/pool.h"

#if defined(_WIN32)
#define FML_EXPORT __declspec(dllexport)
#else
#define FML_EXPORT __attribute__((visibility("default")))
#endif

namespace fastml {

// Takes the GIL, lets Python run its signal handlers, returns non-zero if one raised.
using InterruptCheck = int (*)();

void* the_pool() noexcept;
void start_pool(InterruptCheck check) noexcept;

}  // namespace fastml

extern "C" {
// threadpoolctl finds these two by name. 0 means that no limit is set.
FML_EXPORT int fastml_get_thread_limit() noexcept;
FML_EXPORT void fastml_set_thread_limit(int limit) noexcept;
}
