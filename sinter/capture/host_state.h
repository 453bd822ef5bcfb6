#pragma once
// State of the host that a traced program reads and a guard can watch: the structure and the flags of a module, say.
#include <atomic>
#include <optional>
#include <string>

#include "sinter/base/intrusive_ptr.h"

namespace sinter::capture {

class HostState : public RefCounted {
 public:
  virtual ~HostState() = default;
  // Differs when something that a program may have read differs; nothing once the object is gone.
  virtual std::optional<uint64_t> fingerprint() const = 0;
  // Whether every change moves the clock; if not, the fingerprint is taken at every call.
  virtual bool moves_clock() const { return true; }
  virtual std::string name() const = 0;

  // Grows with every change of any such state.
  static inline std::atomic<uint64_t> clock{0};
};

// Tells the capture under way on this thread, if any, that its program depends on the state.
void depend_on(const IntrusivePtr<HostState>& state);
// That the program changes the state in a way which no guard foresees: a function that reads it after that is called every
// time.
void changes_unforeseen(const IntrusivePtr<HostState>& state);

}  // namespace sinter::capture
