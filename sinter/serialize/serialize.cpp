// g++ 12 takes the members of a variant that was moved from for read.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

#include "sinter/serialize/serialize.h"

#include "sinter/base/error.h"
#include "sinter/data/pt.h"

namespace sinter {

namespace {

using data::PtValue;
using List = PtValue::List;
using Dict = PtValue::Dict;

PtValue text(const std::string& value) { return {value}; }

PtValue value_of(const Tensor& tensor) { return {tensor}; }
PtValue value_of(const TensorList& tensors) {
  List list;
  for (auto& t : tensors) list.push_back({t});
  return {std::move(list)};
}
PtValue value_of(const nn::Module& module) {
  Dict dict;
  for (auto& [name, tensor] : module.state_dict()) dict.emplace_back(text(name), PtValue{tensor});
  return {std::move(dict)};
}
// {"state": {0: {"step": …}, …}, "param_groups": [{"lr": …, "params": [0, …]}, …]}, as Python has it.
PtValue value_of(const optim::Optimizer& optimizer) {
  Dict states;
  for (auto& [key, tensor] : optimizer.state_dict()) {
    const size_t dot = key.find('.');
    const int64_t number = std::stoll(key.substr(0, dot));
    if (states.empty() || states.back().first.as<int64_t>() != number)
      states.emplace_back(PtValue{number}, PtValue{Dict()});
    std::get<Dict>(states.back().second.value).emplace_back(text(key.substr(dot + 1)), PtValue{tensor});
  }
  List groups;
  int64_t next = 0;
  for (size_t g = 0; g < optimizer.num_groups(); ++g) {
    List numbers;
    for (size_t i = 0; i < optimizer.params(g).size(); ++i) numbers.push_back({next++});
    groups.push_back({Dict{{text("lr"), {optimizer.lr(g)}}, {text("params"), {std::move(numbers)}}}});
  }
  return {Dict{{text("state"), {std::move(states)}}, {text("param_groups"), {std::move(groups)}}}};
}

using Where = const std::optional<Device>&;

void take(Tensor& tensor, const PtValue& value, Where device) {
  check(value.is<Tensor>(), "load: what is saved is no tensor by itself");
  tensor = device ? value.as<Tensor>().to(*device) : value.as<Tensor>();
}
void take(TensorList& tensors, const PtValue& value, Where device) {
  check(value.is<List>(), "load: what is saved is no list of tensors");
  TensorList out;
  for (auto& item : value.as<List>()) take(out.emplace_back(), item, device);
  tensors = std::move(out);
}
void take(nn::Module& module, const PtValue& value, Where = {}) {
  check(value.is<Dict>(), "load: what is saved is no state dict of a module");
  module.load_state_dict(data::pt_tensors(value));
}
void take(optim::Optimizer& optimizer, const PtValue& value, Where = {}) {
  check(value.contains("state") && value.contains("param_groups"), "load: what is saved is no state of an optimiser");
  auto& groups = value.at("param_groups").as<List>();
  check(groups.size() == optimizer.num_groups(), "load: the optimiser has {} groups of parameters, {} are saved",
        optimizer.num_groups(), groups.size());
  NamedTensors states;
  for (auto& [number, its] : value.at("state").as<Dict>())
    for (auto& [name, tensor] : its.as<Dict>())
      if (tensor.is<Tensor>())
        states.emplace_back(format("{}.{}", number.as<int64_t>(), name.as<std::string>()), tensor.as<Tensor>());
  optimizer.load_state_dict(states);
  for (size_t g = 0; g < groups.size(); ++g)
    if (groups[g].contains("lr")) optimizer.set_lr(g, groups[g].at("lr").as<double>());
}

}  // namespace

#define SINTER_SAVE_AND_LOAD(Saved, Loaded)                                               \
  void save(Saved what, const std::string& path) { data::save_pt(path, value_of(what)); } \
  void save(Saved what, std::ostream& out) { data::save_pt(out, value_of(what)); }        \
  void load(Loaded what, const std::string& path, const std::optional<Device>& device) {  \
    take(what, data::load_pt(path), device);                                              \
  }                                                                                       \
  void load(Loaded what, std::istream& in, const std::optional<Device>& device) {         \
    take(what, data::load_pt(in), device);                                                \
  }
SINTER_SAVE_AND_LOAD(const Tensor&, Tensor&)
SINTER_SAVE_AND_LOAD(const TensorList&, TensorList&)
SINTER_SAVE_AND_LOAD(const nn::Module&, nn::Module&)
SINTER_SAVE_AND_LOAD(const optim::Optimizer&, optim::Optimizer&)
#undef SINTER_SAVE_AND_LOAD

namespace serialize {

struct Entries {
  PtValue dict{Dict()};

  Dict& list() { return std::get<Dict>(dict.value); }
  void add(const std::string& key, PtValue value) {
    check(!dict.contains(key), "OutputArchive: there is an entry '{}' already", key);
    list().emplace_back(text(key), std::move(value));
  }
  void add(const PtValue& entries) {
    for (auto& [key, value] : entries.as<Dict>()) add(key.as<std::string>(), value);
  }
  template <class T>
  const T& get(const std::string& key, const char* kind) const {
    const PtValue& value = dict.at(key);
    check(value.is<T>(), "InputArchive: the entry '{}' is no {}", key, kind);
    return value.as<T>();
  }
};

OutputArchive::OutputArchive() : entries_(std::make_shared<Entries>()) {}
void OutputArchive::write(const std::string& key, const Tensor& tensor, bool) { entries_->add(key, {tensor}); }
void OutputArchive::write(const std::string& key, const OutputArchive& nested) { entries_->add(key, nested.entries_->dict); }
void OutputArchive::write(const std::string& key, const std::string& value) { entries_->add(key, {value}); }
void OutputArchive::write(const std::string& key, double value) { entries_->add(key, {value}); }
void OutputArchive::write_int(const std::string& key, int64_t value) { entries_->add(key, {value}); }
void OutputArchive::write(const nn::Module& module) { entries_->add(value_of(module)); }
void OutputArchive::write(const optim::Optimizer& optimizer) { entries_->add(value_of(optimizer)); }
void OutputArchive::save_to(const std::string& path) const { data::save_pt(path, entries_->dict); }
void OutputArchive::save_to(std::ostream& out) const { data::save_pt(out, entries_->dict); }

static std::shared_ptr<const Entries> entries_of(PtValue value) {
  check(value.is<Dict>(), "InputArchive: what is saved has no entries by name");
  return std::make_shared<const Entries>(Entries{std::move(value)});
}

InputArchive::InputArchive() : entries_(std::make_shared<const Entries>()) {}
void InputArchive::load_from(const std::string& path, const std::optional<Device>& device) {
  entries_ = entries_of(data::load_pt(path));
  device_ = device;
}
void InputArchive::load_from(std::istream& in, const std::optional<Device>& device) {
  entries_ = entries_of(data::load_pt(in));
  device_ = device;
}
void InputArchive::read(const std::string& key, Tensor& tensor, bool) {
  tensor = entries_->get<Tensor>(key, "tensor");
  if (device_) tensor = tensor.to(*device_);
}
void InputArchive::read(const std::string& key, InputArchive& nested) {
  nested.entries_ = std::make_shared<const Entries>(Entries{PtValue{entries_->get<Dict>(key, "archive")}});
  nested.device_ = device_;
}
void InputArchive::read(const std::string& key, std::string& value) { value = entries_->get<std::string>(key, "text"); }
void InputArchive::read(const std::string& key, double& value) { value = entries_->get<double>(key, "floating-point number"); }
void InputArchive::read_int(const std::string& key, int64_t& value) { value = entries_->get<int64_t>(key, "whole number"); }
void InputArchive::read(const std::string& key, bool& value) {
  const PtValue& entry = entries_->dict.at(key);
  value = entry.is<bool>() ? entry.as<bool>() : entries_->get<int64_t>(key, "truth value") != 0;
}
// Of the module's own names: what else is in the archive is somebody else's.
void InputArchive::read(nn::Module& module) {
  auto result = module.load_state_dict(data::pt_tensors(entries_->dict), {.strict = false});
  check(result.missing.empty(), "InputArchive: there is no '{}', which {} has", result.missing.empty() ? "" : result.missing[0],
        module.name());
}
void InputArchive::read(optim::Optimizer& optimizer) { take(optimizer, entries_->dict); }
bool InputArchive::contains(const std::string& key) const { return entries_->dict.contains(key); }
std::vector<std::string> InputArchive::keys() const {
  std::vector<std::string> keys;
  for (auto& [key, value] : entries_->dict.as<Dict>())
    if (key.is<std::string>()) keys.push_back(key.as<std::string>());
  return keys;
}

}  // namespace serialize

}  // namespace sinter
