// Arrays indexed by int64_t, like the sizes and row pointers of sparse matrices: Span is a view, Vector and
// Deque own their items. With _GLIBCXX_ASSERTIONS an index out of range aborts, a negative one included.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "base/compiler.hpp"

namespace labelwood {

template <class T>
class Span {
  public:
    using value_type = std::remove_const_t<T>;

    constexpr Span() = default;
    constexpr Span(T* data, int64_t size) : items_(data, static_cast<size_t>(size)) {}
    template <class Items>
        requires(!std::is_same_v<std::remove_cvref_t<Items>, Span>) && std::is_constructible_v<std::span<T>, Items&>
    constexpr Span(Items&& items) : items_(items) {}

    constexpr T& operator[](int64_t i) const { return items_[static_cast<size_t>(i)]; }
    constexpr int64_t size() const { return static_cast<int64_t>(items_.size()); }
    constexpr bool empty() const { return items_.empty(); }
    constexpr T* data() const { return items_.data(); }
    constexpr T* begin() const { return items_.data(); }
    constexpr T* end() const { return items_.data() + items_.size(); }
    constexpr T& front() const { return items_.front(); }
    constexpr T& back() const { return items_.back(); }

  private:
    std::span<T> items_;
};

// A std::vector with int64_t sizes and indices. It adds no data, so that a std::vector can be moved out of
// it.
template <class T, class Allocator = std::allocator<T>>
class Vector : public std::vector<T, Allocator> {
    using Base = std::vector<T, Allocator>;

  public:
    Vector() = default;
    Vector(std::initializer_list<T> items) : Base(items) {}
    explicit Vector(int64_t size) : Base(static_cast<size_t>(size)) {}
    Vector(int64_t size, const T& item) : Base(static_cast<size_t>(size), item) {}
    template <std::input_iterator Iterator>
    Vector(Iterator begin, Iterator end) : Base(begin, end) {}

    T& operator[](int64_t i) { return Base::operator[](static_cast<size_t>(i)); }
    const T& operator[](int64_t i) const { return Base::operator[](static_cast<size_t>(i)); }
    int64_t size() const { return static_cast<int64_t>(Base::size()); }
    int64_t capacity() const { return static_cast<int64_t>(Base::capacity()); }
    void reserve(int64_t size) { Base::reserve(static_cast<size_t>(size)); }
    void resize(int64_t size) { Base::resize(static_cast<size_t>(size)); }
    void resize(int64_t size, const T& item) { Base::resize(static_cast<size_t>(size), item); }
    void assign(int64_t size, const T& item) { Base::assign(static_cast<size_t>(size), item); }
    template <std::input_iterator Iterator>
    void assign(Iterator begin, Iterator end) {
        Base::assign(begin, end);
    }
};

// A std::deque with int64_t size and indices.
template <class T>
class Deque : public std::deque<T> {
    using Base = std::deque<T>;

  public:
    T& operator[](int64_t i) { return Base::operator[](static_cast<size_t>(i)); }
    const T& operator[](int64_t i) const { return Base::operator[](static_cast<size_t>(i)); }
    int64_t size() const { return static_cast<int64_t>(Base::size()); }
};

// A std::array whose indices are int64_t.
template <class T, int64_t N>
struct FixedVector : std::array<T, static_cast<size_t>(N)> {
    using Base = std::array<T, static_cast<size_t>(N)>;

    constexpr T& operator[](int64_t i) { return Base::operator[](static_cast<size_t>(i)); }
    constexpr const T& operator[](int64_t i) const { return Base::operator[](static_cast<size_t>(i)); }
};

// Memory for items that are yet to be written.
template <class T>
std::unique_ptr<T[]> unwritten(int64_t size) {
    return std::make_unique_for_overwrite<T[]>(static_cast<size_t>(size));
}

}  // namespace labelwood
