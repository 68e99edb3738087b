#pragma once
#include <cstddef>
#include <cstdint>
#include <new>
#ifdef __linux__
#include <sys/mman.h>
#endif

namespace fastml {

// Asks for pages of 2 MB, as NumPy does for its arrays from the same size on: each of 4 KB costs a
// microsecond or two when it is first written, and an entry of the tables of addresses.
inline void prefer_large_pages(void* data, std::size_t bytes) noexcept {
#ifdef __linux__
    constexpr std::size_t page = 4096, least = std::size_t{1} << 22;
    if (bytes < least) return;
    const std::uintptr_t begin = (reinterpret_cast<std::uintptr_t>(data) + page - 1) & ~(page - 1);
    const std::uintptr_t end = (reinterpret_cast<std::uintptr_t>(data) + bytes) & ~(page - 1);
    madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#else
    (void)data, (void)bytes;
#endif
}

// An uninitialised, cache-line aligned array that reports failure instead of throwing:
// `Scratch<T> s(n); if (!s) return Status::no_memory;`. A size that overflows fails as well.
template <class T> class Scratch {
  public:
    explicit Scratch(std::ptrdiff_t n) noexcept {
        if (n < 0 || static_cast<std::size_t>(n) > (PTRDIFF_MAX - align) / sizeof(T)) return;
        const std::size_t bytes = static_cast<std::size_t>(n) * sizeof(T);
        data_ = static_cast<T*>(
            ::operator new(bytes ? bytes : 1, std::align_val_t{align}, std::nothrow));
        if (data_) prefer_large_pages(data_, bytes);
    }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    ~Scratch() { ::operator delete(data_, std::align_val_t{align}); }

    explicit operator bool() const noexcept { return data_ != nullptr; }
    T* get() const noexcept { return data_; }
    T& operator[](std::ptrdiff_t i) const noexcept { return data_[i]; }

  private:
    static constexpr std::size_t align = 64;
    T* data_ = nullptr;
};

}  // namespace fastml
