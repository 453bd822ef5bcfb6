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

void take(Tensor& tensor, const PtValue& value) {
  check(value.is<Tensor>(), "load: what is saved is no tensor by itself");
  tensor = value.as<Tensor>();
}
void take(TensorList& tensors, const PtValue& value) {
  check(value.is<List>(), "load: what is saved is no list of tensors");
  TensorList out;
  for (auto& item : value.as<List>()) take(out.emplace_back(), item);
  tensors = std::move(out);
}
void take(nn::Module& module, const PtValue& value) {
  check(value.is<Dict>(), "load: what is saved is no state dict of a module");
  module.load_state_dict(data::pt_tensors(value));
}
void take(optim::Optimizer& optimizer, const PtValue& value) {
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
  void load(Loaded what, const std::string& path) { take(what, data::load_pt(path)); }    \
  void load(Loaded what, std::istream& in) { take(what, data::load_pt(in)); }
SINTER_SAVE_AND_LOAD(const Tensor&, Tensor&)
SINTER_SAVE_AND_LOAD(const TensorList&, TensorList&)
SINTER_SAVE_AND_LOAD(const nn::Module&, nn::Module&)
SINTER_SAVE_AND_LOAD(const optim::Optimizer&, optim::Optimizer&)
#undef SINTER_SAVE_AND_LOAD

}  // namespace sinter
