#pragma once
// A kernel that is written by hand for the engine itself, such as the one that refreshes a parameter block.
#include <map>
#include <mutex>

#include "sinter/runtime/cuda/module.h"

namespace sinter {

// Loaded on a device when it is first launched there, and for good.
class OwnKernel {
 public:
  OwnKernel(const char* name, const char* text, std::string_view prelude = {}) : name_(name), text_(text), prelude_(prelude) {}

  const runtime::CudaFunction& on(int device) {
    std::lock_guard lock(mutex_);
    auto& function = functions_[device];
    if (!function)
      function = runtime::load_cuda(std::vector<runtime::CudaSource>{{name_, text_, 0}}, prelude_, device)[0];
    return function;
  }

 private:
  const char *name_, *text_;
  std::string_view prelude_;
  std::mutex mutex_;
  std::map<int, runtime::CudaFunction> functions_;
};

}  // namespace sinter
