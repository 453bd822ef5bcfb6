#pragma once
// State of the host that library functions change: seeds, learning rates, modes of modules. While a function is captured its
// host code runs once and stands for many calls, so such a change is told to whoever captures, and happens in each of them.
#include <functional>
#include <string>

namespace sinter {

struct TensorImpl;

class HostEffects {
 public:
  virtual ~HostEffects() = default;
  // Applies a change now, and again in every later call at its place. `undo` takes this one back, for captures that run
  // nothing. What both refer to must be guarded.
  virtual void perform(const char* what, const std::function<void()>& apply, std::function<void()> undo) = 0;
  // The host does something that no program can: the function is called every time.
  virtual void call_every_time(const char* what) = 0;
  // The change is made once (something is registered, a first step): what is captured with it fits this call alone.
  virtual void fits_once(const char* what, std::function<void()> undo) = 0;
  // Random draws recorded so far are to be made before what follows.
  virtual void settle_draws(const char* what) = 0;
  // Cannot be captured: the function runs eagerly.
  virtual void refuse(const char* what) = 0;
  // requires_grad_() is about to be called on a tensor. Whether that is all there is to do.
  virtual bool grad_flag_changes(TensorImpl& tensor, bool on) = 0;

  // Of the capture under way on this thread; null: none.
  static HostEffects* current() { return current_; }

  // Makes one current while alive.
  class Scope {
   public:
    explicit Scope(HostEffects* effects) : previous_(current_) { current_ = effects; }
    ~Scope() { current_ = previous_; }
    Scope(const Scope&) = delete;

   private:
    HostEffects* previous_;
  };

 private:
  static inline thread_local HostEffects* current_ = nullptr;
};

// --- for the functions that change something
inline void perform_on_host(const char* what, const std::function<void()>& apply, std::function<void()> undo) {
  if (auto* effects = HostEffects::current())
    effects->perform(what, apply, std::move(undo));
  else
    apply();
}
inline void note_host_change(const char* what) {
  if (auto* effects = HostEffects::current()) effects->call_every_time(what);
}
inline void note_single_change(const char* what, std::function<void()> undo = {}) {
  if (auto* effects = HostEffects::current()) effects->fits_once(what, std::move(undo));
}

}  // namespace sinter
