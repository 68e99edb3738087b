#pragma once
#include <cstddef>
#include <cstdint>
#include <new>

namespace fastml {

// An uninitialised, cache-line aligned array that reports failure instead of throwing:
// `Scratch<T> s(n); if (!s) return Status::no_memory;`. A size that overflows fails as well.
template <class T> class Scratch {
  public:
    explicit Scratch(std::ptrdiff_t n) noexcept {
        if (n < 0 || static_cast<std::size_t>(n) > (PTRDIFF_MAX - align) / sizeof(T)) return;
        const std::size_t bytes = static_cast<std::size_t>(n) * sizeof(T);
        data_ = static_cast<T*>(
            ::operator new(bytes ? bytes : 1, std::align_val_t{align}, std::nothrow));
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
