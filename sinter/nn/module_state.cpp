#include "sinter/nn/module_state.h"

#include "sinter/base/hash.h"
#include "sinter/capture/function.h"
#include "sinter/nn/module.h"

namespace sinter::nn {

std::optional<uint64_t> ModuleState::fingerprint() const {
  std::lock_guard lock(mutex_);
  if (!module_) return std::nullopt;
  uint64_t h = hash_mix(module_->structure_version(), module_->training_);
  for (auto& field : fields_) h = hash_text(std::string_view(field.data(), field.size()), h);
  return h;
}

void ModuleState::add_fields(const ModuleState& other, const void* from, size_t bytes, const void* to) {
  const char* const begin = static_cast<const char*>(from);
  for (auto& field : other.fields_) {
    const bool is_inside = field.data() >= begin && field.data() + field.size() <= begin + bytes;
    add_field(is_inside ? static_cast<const char*>(to) + (field.data() - begin) : field.data(), field.size());
  }
}

void ModuleState::forget() {
  std::lock_guard lock(mutex_);
  module_ = nullptr;
  clock.fetch_add(1, std::memory_order_relaxed);
}

Module::~Module() {
  if (state_) state().forget();
}

ModuleState& Module::state() {
  if (!state_) state_ = make_intrusive<ModuleState>(*this);
  return static_cast<ModuleState&>(*state_);
}

std::vector<IntrusivePtr<capture::HostState>> Module::watched() {
  std::vector<IntrusivePtr<capture::HostState>> out;
  apply([&](Module& module) {
    module.state().set_name("the module " + module.name());
    out.push_back(module.state_);
  });
  return out;
}

void Module::add_guarded(const void* field, size_t bytes) { state().add_field(field, bytes); }

void Module::note_call() {
  if (!capture::is_capturing()) return;
  state().set_name("the module " + name());
  capture::depend_on(state_);
}

void Module::compile(const CompileOptions& options, Where where) {
  CompileOptions named = options;
  if (named.name.empty()) named.name = name();
  region_ = capture::Function::make(named, sinter::to_string(where));
}

}  // namespace sinter::nn
