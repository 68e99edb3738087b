// Preloaded into a test process: fails the chosen allocation made by fastml's own modules.
//
// An allocation is ours when the code that calls malloc, operator new and the like lies in a
// shared object whose path contains "fastml/_native"; those of Python, NumPy and the C++ library
// itself pass. Starting a thread counts as well: it is how a pool runs out.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {

std::atomic<long> countdown{-1};  // < 0: let everything pass
std::atomic<bool> for_good{false};
thread_local bool inside = false;

bool ours(void* caller) {
    inside = true;  // dladdr may allocate
    Dl_info info;
    const bool hit = dladdr(caller, &info) && info.dli_fname &&
                     std::strstr(info.dli_fname, "fastml/_native");
    inside = false;
    return hit;
}

bool fails(void* caller) {
    if (countdown.load() < 0 || inside || !ours(caller)) return false;
    if (countdown.load() == 0 && for_good) return true;
    return countdown.fetch_sub(1) == 0;
}

template <class F> F next(const char* name) { return reinterpret_cast<F>(dlsym(RTLD_NEXT, name)); }

// What dlsym itself needs before the real functions are known.
alignas(64) char early[1 << 16];
std::size_t early_used = 0;

void* aligned(std::size_t size, std::size_t alignment) {
    void* p = nullptr;
    static auto real = next<int (*)(void**, std::size_t, std::size_t)>("posix_memalign");
    return real(&p, alignment, size) ? nullptr : p;
}

}  // namespace

#define CALLER __builtin_return_address(0)

extern "C" {

void fail_allocation(long n, int persistent) {
    for_good = persistent != 0;
    countdown = n;
}

long allocations_left() { return countdown; }

void* malloc(std::size_t size) {
    static auto real = next<void* (*)(std::size_t)>("malloc");
    if (fails(CALLER)) return errno = ENOMEM, nullptr;
    return real(size);
}

void* calloc(std::size_t n, std::size_t size) {
    static bool looking = false;
    static void* (*real)(std::size_t, std::size_t) = nullptr;
    if (!real) {
        if (looking) {
            void* p = early + early_used;
            early_used += (n * size + 63) & ~std::size_t{63};
            return p;
        }
        looking = true;
        real = next<void* (*)(std::size_t, std::size_t)>("calloc");
    }
    if (fails(CALLER)) return errno = ENOMEM, nullptr;
    return real(n, size);
}

void* realloc(void* p, std::size_t size) {
    static auto real = next<void* (*)(void*, std::size_t)>("realloc");
    if (fails(CALLER)) return errno = ENOMEM, nullptr;
    return real(p, size);
}

void free(void* p) {
    static auto real = next<void (*)(void*)>("free");
    if (p < early || p >= early + sizeof early) real(p);
}

int posix_memalign(void** p, std::size_t alignment, std::size_t size) {
    if (fails(CALLER)) return ENOMEM;
    return (*p = aligned(size, alignment)) ? 0 : ENOMEM;
}

void* aligned_alloc(std::size_t alignment, std::size_t size) {
    if (fails(CALLER)) return errno = ENOMEM, nullptr;
    return aligned(size, alignment);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                   void* argument) {
    using F = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
    static auto real = next<F>("pthread_create");
    if (fails(CALLER)) return EAGAIN;
    return real(thread, attributes, start, argument);
}

}  // extern "C"

#define ALLOCATE(size, ...)                                \
    void* p = fails(CALLER) ? nullptr : aligned(size, __VA_ARGS__)
#define OR_THROW                    \
    if (!p) throw std::bad_alloc(); \
    return p

void* operator new(std::size_t n) { ALLOCATE(n, 16); OR_THROW; }
void* operator new[](std::size_t n) { ALLOCATE(n, 16); OR_THROW; }
void* operator new(std::size_t n, std::align_val_t a) { ALLOCATE(n, std::size_t(a)); OR_THROW; }
void* operator new[](std::size_t n, std::align_val_t a) { ALLOCATE(n, std::size_t(a)); OR_THROW; }
void* operator new(std::size_t n, const std::nothrow_t&) noexcept { ALLOCATE(n, 16); return p; }
void* operator new[](std::size_t n, const std::nothrow_t&) noexcept { ALLOCATE(n, 16); return p; }
void* operator new(std::size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
    ALLOCATE(n, std::size_t(a));
    return p;
}
void* operator new[](std::size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
    ALLOCATE(n, std::size_t(a));
    return p;
}
void operator delete(void* p) noexcept { free(p); }
void operator delete[](void* p) noexcept { free(p); }
void operator delete(void* p, std::size_t) noexcept { free(p); }
void operator delete[](void* p, std::size_t) noexcept { free(p); }
void operator delete(void* p, std::align_val_t) noexcept { free(p); }
void operator delete[](void* p, std::align_val_t) noexcept { free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { free(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { free(p); }
