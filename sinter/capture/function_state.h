#pragma once
// The programs that a compiled function has captured so far.
#include <atomic>
#include <mutex>

#include "sinter/capture/entry.h"
#include "sinter/capture/function.h"

namespace sinter::capture {

using Entries = std::vector<std::shared_ptr<CacheEntry>>;

struct Function::State {
  std::recursive_mutex capturing;  // one capture at a time
  std::mutex list;                 // of `entries`, for the moment of copying it
  std::shared_ptr<const Entries> entries = std::make_shared<const Entries>();
  std::atomic<bool> gave_up{false};
};

}  // namespace sinter::capture
