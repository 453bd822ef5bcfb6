#pragma once
// What captured programs watch of a module: its structure, its mode and its guarded members.
#include <mutex>
#include <span>
#include <vector>

#include "sinter/capture/function.h"
#include "sinter/nn/module.h"

namespace sinter::nn {

class ModuleState final : public capture::HostState {
 public:
  explicit ModuleState(const Module& module) : module_(&module) {}

  std::optional<uint64_t> fingerprint() const override;
  bool moves_clock() const override { return fields_.empty(); }
  std::string name() const override { return name_; }

  void add_field(const void* field, size_t bytes) { fields_.emplace_back(static_cast<const char*>(field), bytes); }
  // The fields that lie in the `bytes` from `from` on, at the same places behind `to`; others as they are.
  void add_fields(const ModuleState& other, const void* from, size_t bytes, const void* to);
  void set_name(const std::string& name) { name_ = name; }
  // The module is gone.
  void forget();

 private:
  mutable std::mutex mutex_;
  const Module* module_;
  std::string name_;
  std::vector<std::span<const char>> fields_;
};

}  // namespace sinter::nn
