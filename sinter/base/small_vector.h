#pragma once
// SmallVector<T, N>: a vector whose first N elements live inside it. For trivially copyable T only, so that growing,
// copying and moving are plain memory copies. Converts to std::span; iterators are pointers, invalidated as in
// std::vector, and also when the vector itself is moved.
#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <new>
#include <span>
#include <type_traits>

#include "sinter/base/api.h"

namespace sinter SINTER_API {

template <class T, size_t N>
class SmallVector {
  static_assert(std::is_trivially_copyable_v<T>, "SmallVector holds trivially copyable types only; use std::vector");
  static_assert(alignof(T) <= alignof(std::max_align_t) && N >= 1);

 public:
  using value_type = T;
  using size_type = size_t;
  using difference_type = ptrdiff_t;
  using reference = T&;
  using const_reference = const T&;
  using iterator = T*;
  using const_iterator = const T*;

  SmallVector() noexcept : data_(inline_data()) {}
  // A count is unsigned, and never the only number in braces: compilers differ in what SmallVector({3}) would be.
  template <std::unsigned_integral Count>
  explicit SmallVector(Count count, T value = T()) : SmallVector() {
    resize(count, value);
  }
  SmallVector(std::initializer_list<T> values) : SmallVector() { append({values.begin(), values.size()}); }
  explicit SmallVector(std::span<const T> values) : SmallVector() { append(values); }
  template <std::input_iterator It, std::sentinel_for<It> End>
  SmallVector(It first, End last) : SmallVector() {
    for (; first != last; ++first) push_back(*first);
  }
  SmallVector(const SmallVector& other) : SmallVector() { append(other); }
  SmallVector(SmallVector&& other) noexcept : SmallVector() { take(other); }
  ~SmallVector() { free_heap(); }

  SmallVector& operator=(const SmallVector& other) {
    if (this != &other) assign(other);
    return *this;
  }
  SmallVector& operator=(SmallVector&& other) noexcept {
    if (this != &other) {
      free_heap();
      take(other);
    }
    return *this;
  }
  SmallVector& operator=(std::initializer_list<T> values) {
    assign({values.begin(), values.size()});
    return *this;
  }

  T* data() noexcept { return data_; }
  const T* data() const noexcept { return data_; }
  size_t size() const noexcept { return size_; }
  size_t capacity() const noexcept { return capacity_; }
  bool empty() const noexcept { return size_ == 0; }
  T* begin() noexcept { return data_; }
  T* end() noexcept { return data_ + size_; }
  const T* begin() const noexcept { return data_; }
  const T* end() const noexcept { return data_ + size_; }
  auto rbegin() noexcept { return std::reverse_iterator(end()); }
  auto rend() noexcept { return std::reverse_iterator(begin()); }
  auto rbegin() const noexcept { return std::reverse_iterator(end()); }
  auto rend() const noexcept { return std::reverse_iterator(begin()); }
  T& operator[](size_t i) noexcept { return data_[i]; }
  const T& operator[](size_t i) const noexcept { return data_[i]; }
  T& front() noexcept { return data_[0]; }
  const T& front() const noexcept { return data_[0]; }
  T& back() noexcept { return data_[size_ - 1]; }
  const T& back() const noexcept { return data_[size_ - 1]; }

  void clear() noexcept { size_ = 0; }
  void reserve(size_t count) {
    if (count > capacity_) grow(count);
  }
  // Elements are taken by value: they may come from this vector.
  void resize(size_t count, T value = T()) {
    reserve(count);
    if (count > size_) std::uninitialized_fill(data_ + size_, data_ + count, value);
    size_ = uint32_t(count);
  }
  void push_back(T value) {
    if (size_ == capacity_) [[unlikely]]
      grow(size_t(size_) + 1);
    ::new (static_cast<void*>(data_ + size_)) T(value);
    ++size_;
  }
  void pop_back() noexcept { --size_; }
  // `values` must not lie in this vector.
  void append(std::span<const T> values) {
    reserve(size_ + values.size());
    if (!values.empty()) copy(data_ + size_, values.data(), values.size());
    size_ += uint32_t(values.size());
  }
  void assign(std::span<const T> values) {
    clear();
    append(values);
  }
  iterator insert(const_iterator position, T value) {
    size_t i = size_t(position - data_);
    reserve(size_t(size_) + 1);
    std::memmove(static_cast<void*>(data_ + i + 1), data_ + i, (size_ - i) * sizeof(T));
    ::new (static_cast<void*>(data_ + i)) T(value);
    ++size_;
    return data_ + i;
  }
  iterator erase(const_iterator position) { return erase(position, position + 1); }
  iterator erase(const_iterator first, const_iterator last) {
    T* to = data_ + (first - data_);
    std::memmove(static_cast<void*>(to), last, size_t(end() - last) * sizeof(T));
    size_ -= uint32_t(last - first);
    return to;
  }

  friend bool operator==(const SmallVector& a, const SmallVector& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }
  friend bool operator==(const SmallVector& a, std::span<const T> b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  T* inline_data() noexcept { return reinterpret_cast<T*>(inline_); }
  bool on_heap() const noexcept { return data_ != reinterpret_cast<const T*>(inline_); }
  static void copy(T* to, const T* from, size_t count) { std::memcpy(static_cast<void*>(to), from, count * sizeof(T)); }

  void free_heap() noexcept {
    if (on_heap()) std::free(data_);
  }

  // Leaves `other` empty. What this vector held must be freed already.
  void take(SmallVector& other) noexcept {
    size_ = other.size_;
    if (other.on_heap()) {
      data_ = other.data_;
      capacity_ = other.capacity_;
      other.data_ = other.inline_data();
      other.capacity_ = N;
    } else {
      data_ = inline_data();
      capacity_ = N;
      copy(data_, other.data_, size_);
    }
    other.size_ = 0;
  }

  [[gnu::noinline]] void grow(size_t count) {
    count = std::max(count, size_t(capacity_) * 2);
    if (count > std::min<size_t>(UINT32_MAX, SIZE_MAX / sizeof(T))) throw std::bad_alloc();
    T* grown = static_cast<T*>(std::realloc(on_heap() ? static_cast<void*>(data_) : nullptr, count * sizeof(T)));
    if (!grown) throw std::bad_alloc();
    if (!on_heap()) copy(grown, data_, size_);
    data_ = grown;
    capacity_ = uint32_t(count);
  }

  T* data_;
  uint32_t size_ = 0, capacity_ = N;
  alignas(T) unsigned char inline_[N * sizeof(T)];
};

}  // namespace sinter
