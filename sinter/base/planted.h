#pragma once
// Faults that tests plant, to see that they are found and named. A stage that makes a T lets whoever planted one change it;
// nothing else ever does.
#include <functional>
#include <utility>

namespace sinter {

namespace detail {
template <class T>
inline std::function<void(T& made)> planted_fault;
}  // namespace detail

template <class T>
void let_plant(T& made) {
  if (detail::planted_fault<T>) [[unlikely]]
    detail::planted_fault<T>(made);
}

template <class T>
bool is_planted() { return bool(detail::planted_fault<T>); }

// While alive, what is made of this kind is changed by `fault`. For one thread at a time, and before anything compiles.
template <class T>
class PlantedFault {
 public:
  explicit PlantedFault(std::function<void(T& made)> fault) { detail::planted_fault<T> = std::move(fault); }
  ~PlantedFault() { detail::planted_fault<T> = nullptr; }
  PlantedFault(const PlantedFault&) = delete;
};

}  // namespace sinter
