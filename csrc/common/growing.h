#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <type_traits>
#include <utility>

namespace fastml {

// An array of plain data that is added to at the end, and keeps its memory when it is emptied. A
// large one grows where it is, or by moving its pages, where realloc can; std::vector copies.
template <class T> class Growing {
    static_assert(std::is_trivially_copyable_v<T>, "elements are moved as bytes");

  public:
    Growing() = default;
    Growing(Growing&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)),
          room_(std::exchange(other.room_, 0)) {}
    Growing& operator=(Growing&&) = delete;
    ~Growing() { std::free(data_); }

    // The first of `count` elements more, whose values are anything. May throw std::bad_alloc.
    T* add(std::ptrdiff_t count) {
        if (room_ - size_ < count) reserve(size_ + count);
        size_ += count;
        return data_ + size_ - count;
    }
    void clear() { size_ = 0; }
    std::ptrdiff_t size() const { return size_; }
    T* data() const { return data_; }
    T& operator[](std::ptrdiff_t i) const { return data_[i]; }

  private:
    void reserve(std::ptrdiff_t wanted) {
        const std::ptrdiff_t most = PTRDIFF_MAX / static_cast<std::ptrdiff_t>(sizeof(T));
        if (wanted > most) throw std::bad_alloc();
        const std::ptrdiff_t room = room_ > most / 2     ? most
                                    : wanted > 2 * room_ ? wanted
                                                         : 2 * room_;
        void* const data = std::realloc(data_, sizeof(T) * room);
        if (!data) throw std::bad_alloc();
        data_ = static_cast<T*>(data);
        room_ = room;
    }

    T* data_ = nullptr;
    std::ptrdiff_t size_ = 0, room_ = 0;
};

}  // namespace fastml
