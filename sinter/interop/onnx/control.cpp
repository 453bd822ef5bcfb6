#include "sinter/interop/onnx/control.h"

#include "sinter/base/error.h"
#include "sinter/interop/convert.h"
#include "sinter/interop/host_tensor.h"
#include "sinter/ops/control.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/view.h"

namespace sinter::interop::onnx {

namespace {

ValueList joined(ValueList values, const ValueList& more) {
  values.insert(values.end(), more.begin(), more.end());
  return values;
}

Value number(int64_t value, Device device) { return host_value({.whole = {value}, .device = device}); }
Value truth(bool value, Device device) { return host_value({.dtype = kBool, .whole = {int64_t(value)}, .device = device}); }

Device device_of(const ValueList& values) {
  for (auto& value : values)
    if (value.is<Tensor>() && value.as<Tensor>().defined()) return value.as<Tensor>().device();
  return {};
}

bool is_traced(const Value& value) { return value.is<Tensor>() && value.as<Tensor>().is_traced(); }

TensorList tensors_of(const ValueList& values) {
  TensorList out;
  for (auto& value : values)
    if (value.is<Tensor>()) out.push_back(value.as<Tensor>());
  return out;
}

// A graph as a function of the tensors among its inputs.
ListFunction on_tensors(const Body& body, const ValueList& inputs) {
  return [&](const TensorList& given) {
    ValueList values = inputs;
    size_t next = 0;
    for (auto& value : values)
      if (value.is<Tensor>()) value = {given[next++]};
    TensorList out;
    for (auto& result : body(std::move(values))) out.push_back(value_to<Tensor>(result));
    return out;
  };
}

}  // namespace

ValueList run_if(const ValueList& arguments, const Body& yes, const Body& no) {
  const ValueList& captured = arguments.at(1).as<ValueList>();
  auto chosen = [&] { return value_to<bool>(arguments[0]) ? yes(captured) : no(captured); };
  if (!is_traced(arguments[0])) return chosen();
  TensorList out;
  try {
    const Tensor condition = arguments[0].as<Tensor>().reshape(Shape());
    out = cond(condition, on_tensors(yes, captured), on_tensors(no, captured), tensors_of(captured));
  } catch (const OutOfMemoryError&) {
    throw;
  } catch (const Error&) {
    return chosen();  // results that differ in shape, say: the host decides
  }
  ValueList values;
  for (auto& tensor : out) values.push_back({tensor});
  return values;
}

namespace {

// What the iterations gave beside the state, joined along a new dimension.
Value stacked(const TensorList& each, int64_t dim, const char* op) {
  check(!each.empty(), "{}: without any iteration the sizes of its results are not known", op);
  return {stack(each, dim)};
}

}  // namespace

ValueList run_loop(const ValueList& arguments, const Body& body) {
  const ValueList& captured = arguments.at(3).as<ValueList>();
  ValueList state = arguments[2].as<ValueList>();
  const Device device = device_of(joined(state, captured));
  const bool is_counted = !arguments[0].is<Value::None>();
  const int64_t most = is_counted ? value_to<int64_t>(arguments[0]) : 0;
  Value goes_on = arguments[1].is<Value::None>() ? truth(true, device) : arguments[1];
  std::vector<TensorList> results;
  for (int64_t i = 0; (!is_counted || i < most) && value_to<bool>(goes_on); ++i) {
    ValueList out = body(joined(joined({number(i, device), goes_on}, state), captured));
    check(out.size() > state.size(), "its body gives {} values", out.size());
    goes_on = out[0];
    for (size_t s = 0; s < state.size(); ++s) state[s] = out[s + 1];
    results.resize(out.size() - 1 - state.size());
    for (size_t r = 0; r < results.size(); ++r) results[r].push_back(value_to<Tensor>(out[1 + state.size() + r]));
  }
  for (auto& result : results) state.push_back(stacked(result, 0, "Loop"));
  return state;
}

ValueList run_scan(const ValueList& arguments, const Body& body) {
  ValueList state = arguments.at(0).as<ValueList>();
  const ValueList& captured = arguments.at(2).as<ValueList>();
  TensorList walked;
  for (auto& value : arguments[1].as<ValueList>()) walked.push_back(value_to<Tensor>(value));
  auto entry = [&](size_t list, size_t at) {
    const IntList given = value_to<IntList>(arguments.at(list));
    return at < given.size() ? given[at] : 0;
  };
  const int64_t steps = walked.at(0).size(entry(4, 0));
  for (size_t w = 0; w < walked.size(); ++w)
    check(walked[w].size(entry(4, w)) == steps, "input {} has {} steps and not {}", w, walked[w].size(entry(4, w)), steps);
  std::vector<TensorList> results;
  for (int64_t i = 0; i < steps; ++i) {
    ValueList inputs = state;
    for (size_t w = 0; w < walked.size(); ++w)
      inputs.push_back({select(walked[w], entry(4, w), entry(3, w) == 1 ? steps - 1 - i : i)});
    ValueList out = body(joined(std::move(inputs), captured));
    check(out.size() >= state.size(), "its body gives {} values", out.size());
    for (size_t s = 0; s < state.size(); ++s) state[s] = out[s];
    results.resize(out.size() - state.size());
    for (size_t r = 0; r < results.size(); ++r) results[r].push_back(value_to<Tensor>(out[state.size() + r]));
  }
  for (size_t r = 0; r < results.size(); ++r) {
    if (entry(5, r) == 1) std::reverse(results[r].begin(), results[r].end());
    state.push_back(stacked(results[r], entry(6, r), "Scan"));
  }
  return state;
}

}  // namespace sinter::interop::onnx
