#include "sinter/ops/custom.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>

#include "sinter/graph/interpreter.h"
#include "sinter/ops/define.h"
#include "sinter/ops/results.h"

namespace sinter {

namespace {

// Runs a function of the user's. What it throws gets the op's name, and the user's line.
template <class F>
auto under_name(const std::string& name, const char* what, F&& f) {
  try {
    return f();
  } catch (const OutOfMemoryError&) {
    throw;
  } catch (const Error& error) {
    if (error.message().starts_with(name + ":")) throw;
    throw_error(name + ": " + error.message());
  } catch (const InternalError&) {
    throw;
  } catch (const std::exception& error) {
    throw_error(format("{}: {} failed: {}", name, what, error.what()));
  }
}

// Symbolic sizes may differ in form: a capture knows more of them than the expressions show.
bool shape_fits(const Shape& a, const Shape& b) {
  bool fits = a.rank() == b.rank();
  for (size_t d = 0; fits && d < a.size(); ++d) fits = !a[d].is_number() || !b[d].is_number() || a[d].same_as(b[d]);
  return fits;
}

std::vector<Type> types_of(std::span<const TensorArg> inputs) {
  std::vector<Type> types;
  for (auto& arg : inputs)
    types.push_back({arg.dtype(), arg.sizes(), arg.is_scalar() ? Device() : arg.tensor().device(), arg.is_scalar()});
  return types;
}

// An op and the functions that it points to.
class Registered {
 public:
  Registered(OpDefinition definition, const std::function<detail::ParseAttrs(const char*)>& parse)
      : definition_(std::move(definition)), parse_(parse(definition_.name.c_str())) {
    op_.name = definition_.name;
    op_.inputs = definition_.inputs;
    op_.kind = definition_.decompose ? OpKind::kComposite : OpKind::kOpaque;
    op_.inlines = bool(definition_.decompose);
    op_.no_grad_reason = definition_.decompose ? "it is differentiated through its decomposition"
                                               : "it was registered without one (OpDefinition::grad)";
    op_.parse = OpFunction<Attrs(const FieldTexts&)>(&parse_);
    infer_ = [this](const OpCall& call) { return infer(call); };
    op_.infer = OpFunction<std::vector<Type>(const OpCall&)>(&infer_);
    if (definition_.run) {
      run_ = [this](std::span<const Tensor> inputs, const Attrs& attrs) { return run(inputs, attrs); };
      op_.run_cpu = OpFunction<TensorList(std::span<const Tensor>, const Attrs&)>(&run_);
    }
    if (op_.kind == OpKind::kOpaque) {
      interpret_ = [this](InterpretCall& call) { interpret(call); };
      op_.interpret = OpFunction<void(InterpretCall&)>(&interpret_);
    }
    if (definition_.decompose) {
      decompose_ = [this](std::span<const TensorArg> inputs, const Attrs& attrs) { return decompose(inputs, attrs); };
      op_.decompose = OpFunction<TensorList(std::span<const TensorArg>, const Attrs&)>(&decompose_);
    }
    if (definition_.grad) {
      grad_ = [this](const GradCall& call) { return grad(call); };
      op_.grad = OpFunction<TensorList(const GradCall&)>(&grad_);
    }
  }
  Registered(const Registered&) = delete;

  const Op& op() const { return op_; }

 private:
  const std::string& name() const { return definition_.name; }

  std::vector<Type> infer(const OpCall& call) const {
    check(op_.inputs < 0 || size_t(op_.inputs) == call.inputs.size(), "{}: takes {} operands, not {}", name(),
          op_.inputs, call.inputs.size());
    auto types = under_name(name(), "its type function", [&] { return definition_.infer(call); });
    check(!types.empty(), "{}: its type function gives no results", name());
    return types;
  }

  TensorList run(std::span<const Tensor> inputs, const Attrs& attrs) const {
    auto results = under_name(name(), "its kernel", [&] { return definition_.run(inputs, attrs); });
    check_results("kernel", results, types_of(std::vector<TensorArg>(inputs.begin(), inputs.end())), attrs);
    return fresh_results(std::move(results), inputs);
  }

  TensorList decompose(std::span<const TensorArg> inputs, const Attrs& attrs) const {
    auto results = under_name(name(), "its decomposition", [&] { return definition_.decompose(inputs, attrs); });
    check_results("decomposition", results, types_of(inputs), attrs);
    return results;
  }

  void check_results(const char* what, const TensorList& results, std::span<const Type> operands,
                     const Attrs& attrs) const {
    auto types = infer(OpCall{op_, operands, attrs});
    check(results.size() == types.size(), "{}: the {} gives {} results, but its type function {}", name(), what,
          results.size(), types.size());
    for (size_t i = 0; i < types.size(); ++i) {
      check(results[i].defined(), "{}: result {} of the {} is undefined", name(), i, what);
      Type got{results[i].dtype(), results[i].sizes(), results[i].device()};
      check(got.dtype == types[i].dtype && got.device == types[i].device && shape_fits(got.shape, types[i].shape),
            "{}: result {} of the {} is {}, but its type function says {}", name(), i, what, got, types[i]);
    }
  }

  TensorList grad(const GradCall& call) const {
    auto grads = under_name(name(), "its gradient", [&] { return definition_.grad(call); });
    check(grads.size() == call.inputs.size(), "{}: the gradient function gives {} gradients for {} operands", name(),
          grads.size(), call.inputs.size());
    for (size_t i = 0; i < grads.size(); ++i) {
      if (!call.needed[i] || !grads[i].defined()) continue;
      Shape got = grads[i].sizes(), expected = call.inputs[i].sizes();
      check(shape_fits(got, expected), "{}: the gradient of operand {} has shape {}, the operand {}", name(), i, got,
            expected);
    }
    return grads;
  }

  // The kernel itself, on operands rounded to their dtypes.
  void interpret(InterpretCall& call) const {
    TracerScope eager(nullptr);
    TensorList inputs;
    for (auto* array : call.inputs) inputs.push_back(to_tensor(*array));
    call.outputs.clear();
    for (auto& result : run(inputs, call.call.attrs)) call.outputs.push_back(to_array(result));
  }

  const OpDefinition definition_;
  const detail::ParseAttrs parse_;
  std::function<std::vector<Type>(const OpCall&)> infer_;
  std::function<TensorList(std::span<const Tensor>, const Attrs&)> run_;
  std::function<TensorList(std::span<const TensorArg>, const Attrs&)> decompose_;
  std::function<TensorList(const GradCall&)> grad_;
  std::function<void(InterpretCall&)> interpret_;
  Op op_;
};

// "lib::op", each part an identifier.
bool is_registrable_name(std::string_view name) {
  auto letter = [](char c) { return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  bool parted = false;
  for (size_t begin = 0;; parted = true) {
    size_t end = std::min(name.find("::", begin), name.size());
    if (begin == end || !letter(name[begin])) return false;
    for (size_t i = begin; i < end; ++i)
      if (!letter(name[i]) && !(name[i] >= '0' && name[i] <= '9')) return false;
    if (end == name.size()) return parted;
    begin = end + 2;
  }
}

// Ops are never taken out: nodes and kernels point to them.
struct Registry {
  std::shared_mutex mutex;
  std::map<std::string, std::unique_ptr<const Registered>, std::less<>> ops;
};
Registry& registry() {
  static auto* registry = new Registry;
  return *registry;
}

}  // namespace

const Op& detail::register_op(OpDefinition definition, const std::function<ParseAttrs(const char* name)>& parse,
                              const Where& where) {
  UserPosition here(where);
  check(is_registrable_name(definition.name), "register_op: '{}' is not a name of an op: write one like 'mylib::swish'",
        definition.name);
  check(bool(definition.infer), "register_op: {} has no type function (OpDefinition::infer)", definition.name);
  check(definition.run || definition.decompose,
        "register_op: {} has neither a kernel (OpDefinition::run) nor a decomposition", definition.name);
  check(definition.inputs >= -1, "register_op: {} cannot take {} operands", definition.name, definition.inputs);
  std::string name = definition.name;
  auto made = std::make_unique<const Registered>(std::move(definition), parse);
  std::unique_lock lock(registry().mutex);
  auto [it, fresh] = registry().ops.try_emplace(name, nullptr);
  check(fresh, "register_op: an op is called {} already", name);
  it->second = std::move(made);
  return it->second->op();
}

TensorList detail::call_registered(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs,
                                   const Where& where) {
  return call_op_many(op, inputs, attrs, where);
}

const Op* find_registered_op(std::string_view name) {
  std::shared_lock lock(registry().mutex);
  auto it = registry().ops.find(name);
  return it == registry().ops.end() ? nullptr : &it->second->op();
}

}  // namespace sinter
