#include "sinter/serve/request.h"

#include <chrono>

namespace sinter::serve {

std::optional<Event> Stream::next(double timeout_s) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::duration<double>(timeout_s), [&] { return !events_.empty(); });
  if (events_.empty()) return {};
  Event event = std::move(events_.front());
  events_.pop_front();
  return event;
}

void Stream::on_event(std::function<void()> call) {
  std::function<void()> now;
  {
    std::lock_guard lock(mutex_);
    call_ = std::move(call);
    if (!events_.empty()) now = call_;
  }
  if (now) now();
}

void Stream::push(Event event) {
  std::function<void()> call;
  {
    std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
    call = call_;
  }
  changed_.notify_all();
  if (call) call();
}

}  // namespace sinter::serve
