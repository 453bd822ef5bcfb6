#pragma once
// IntrusivePtr<T>: shared ownership of an object that carries its own count (one word, one allocation, no weak
// references). T derives publicly from RefCounted.
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <type_traits>
#include <utility>

#include "sinter/base/api.h"

namespace sinter SINTER_API {

// An object starts with one reference, which its maker hands to an IntrusivePtr by `adopt` (make_intrusive does).
// Copying the object does not copy its count.
class RefCounted {
 public:
  uint32_t use_count() const noexcept { return references_.load(std::memory_order_relaxed); }

 protected:
  RefCounted() noexcept = default;
  RefCounted(const RefCounted&) noexcept {}
  RefCounted& operator=(const RefCounted&) noexcept { return *this; }
  ~RefCounted() = default;

 private:
  template <class T>
  friend class IntrusivePtr;

  void add_reference() const noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
  // True when that was the last one. A sole owner need not write: nobody else can add a reference meanwhile.
  bool drop_reference() const noexcept {
    return references_.load(std::memory_order_acquire) == 1 ||
           references_.fetch_sub(1, std::memory_order_acq_rel) == 1;
  }

  mutable std::atomic<uint32_t> references_{1};
};

template <class T>
class IntrusivePtr {
 public:
  constexpr IntrusivePtr() noexcept = default;
  constexpr IntrusivePtr(std::nullptr_t) noexcept {}
  // Takes over a reference that the caller holds.
  static IntrusivePtr adopt(T* object) noexcept { return IntrusivePtr(object); }
  // Adds a reference to an object that is already owned.
  static IntrusivePtr share(T* object) noexcept {
    if (object) object->add_reference();
    return IntrusivePtr(object);
  }

  IntrusivePtr(const IntrusivePtr& other) noexcept : object_(other.object_) {
    if (object_) object_->add_reference();
  }
  IntrusivePtr(IntrusivePtr&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  template <class U>
    requires(!std::is_same_v<U, T> && std::convertible_to<U*, T*>)
  IntrusivePtr(IntrusivePtr<U> other) noexcept : object_(other.release()) {
    static_assert(std::has_virtual_destructor_v<T> || std::is_same_v<const U, T>,
                  "the object is deleted through the base, which needs a virtual destructor");
  }
  IntrusivePtr& operator=(IntrusivePtr other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~IntrusivePtr() {
    if (object_ && object_->drop_reference()) delete object_;
  }

  T* get() const noexcept { return object_; }
  T& operator*() const noexcept { return *object_; }
  T* operator->() const noexcept { return object_; }
  explicit operator bool() const noexcept { return object_ != nullptr; }
  // 0 for a null pointer. Exact only while no other thread holds a reference.
  uint32_t use_count() const noexcept { return object_ ? object_->use_count() : 0; }
  void reset() noexcept { *this = nullptr; }
  // Gives the reference away; `adopt` takes it back.
  [[nodiscard]] T* release() noexcept { return std::exchange(object_, nullptr); }

  friend bool operator==(const IntrusivePtr& a, const IntrusivePtr& b) noexcept { return a.object_ == b.object_; }
  friend bool operator==(const IntrusivePtr& a, std::nullptr_t) noexcept { return !a.object_; }

 private:
  explicit IntrusivePtr(T* object) noexcept : object_(object) {}

  T* object_ = nullptr;
};

template <class T, class... Args>
IntrusivePtr<T> make_intrusive(Args&&... args) {
  return IntrusivePtr<T>::adopt(new T(std::forward<Args>(args)...));
}

}  // namespace sinter

template <class T>
struct std::hash<sinter::IntrusivePtr<T>> {
  size_t operator()(const sinter::IntrusivePtr<T>& p) const noexcept { return std::hash<T*>()(p.get()); }
};
