#pragma once
// That something exists: captured programs act on it.
#include <atomic>

#include "sinter/capture/function.h"

namespace sinter::optim {

class Existence final : public capture::HostState {
 public:
  explicit Existence(const char* name) : name_(name) {}
  std::optional<uint64_t> fingerprint() const override { return exists_ ? std::optional<uint64_t>(1) : std::nullopt; }
  std::string name() const override { return name_; }

  // The capture under way depends on what `state` stands for, which is made where it is null.
  static void watch(IntrusivePtr<capture::HostState>& state, const char* name) {
    if (!state) state = make_intrusive<Existence>(name);
    capture::depend_on(state);
  }
  // What it stands for is gone.
  static void end(const IntrusivePtr<capture::HostState>& state) {
    if (!state) return;
    static_cast<Existence&>(*state).exists_ = false;
    clock.fetch_add(1, std::memory_order_relaxed);
  }

 private:
  const char* const name_;
  std::atomic<bool> exists_{true};
};

}  // namespace sinter::optim
