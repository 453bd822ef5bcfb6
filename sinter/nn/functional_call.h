#pragma once
// A module as a function of its parameters, as torch.func has it: for gradients of single samples, ensembles, meta learning.
// Not part of sinter.h.
//
//   auto loss = [&](const TensorList& weights, const Tensor& x, const Tensor& y) {
//     return mse_loss(func::functional_call(net, weights, x), y);
//   };
//   TensorList each = func::vmap(func::grad(loss), {{}, 0, 0})(net->parameters(), xs, ys);   // a gradient for every sample
#include <string>
#include <utility>
#include <vector>

#include "sinter/base/api.h"
#include "sinter/nn/module.h"

namespace sinter SINTER_API {
namespace func {

namespace detail {

// While alive, the parameters and buffers with these names are looks at the values. They are exchanged in place, so that whoever
// holds a parameter sees the value.
class Substitution {
 public:
  Substitution(nn::Module& module, const NamedTensors& values);
  // In the order of parameters(): all of them.
  Substitution(nn::Module& module, const TensorList& parameters);
  ~Substitution();
  Substitution(const Substitution&) = delete;
  // What was there before is there again. In a result a parameter stands for the value that it had.
  void end(TensorList& results);

 private:
  Substitution() = default;
  struct Exchange {
    Tensor held, other, value;
  };
  void exchange(const std::string& name, const Tensor& held, const Tensor& value);
  void end();
  std::vector<Exchange> exchanges_;
};

template <class M>
nn::Module& module_of(M& module) {
  if constexpr (requires { module.ptr(); })
    return *module;
  else
    return module;
}

template <class M, class Values, class... Args>
auto call_with(M& module, const Values& values, Args&&... args) {
  Substitution substitution(module_of(module), values);
  auto result = [&] {
    if constexpr (requires { module.ptr(); })
      return module(std::forward<Args>(args)...);
    else
      return nn::call(module, std::forward<Args>(args)...);
  }();
  nn::detail::visit_results(result, [&](TensorList& all) { substitution.end(all); });
  return result;
}

}  // namespace detail

// module(args...) with these tensors in the place of its parameters and buffers of the same names, those of modules inside
// it as in named_parameters(); the others are its own. Gradients flow to the tensors given, and what the module writes to a
// buffer (running statistics) it writes to the one given. Tied parameters are replaced together. A name that the module does not
// have is an Error. Afterwards the module is as it was. No other thread may use it meanwhile.
template <class M, class... Args>
auto functional_call(M&& module, const NamedTensors& parameters_and_buffers, Args&&... args) {
  return detail::call_with(module, parameters_and_buffers, std::forward<Args>(args)...);
}
// With these in the order of parameters(), all of them.
template <class M, class... Args>
auto functional_call(M&& module, const TensorList& parameters, Args&&... args) {
  return detail::call_with(module, parameters, std::forward<Args>(args)...);
}

// Parameters and buffers of modules of one structure, each stacked along a new first dimension: func::vmap over them is an
// ensemble. The parameters are leaves that require gradients where the modules' do.
std::pair<NamedTensors, NamedTensors> stack_module_state(const std::vector<nn::Module*>& modules);
template <class M>
std::pair<NamedTensors, NamedTensors> stack_module_state(const std::vector<M>& modules) {
  std::vector<nn::Module*> all;
  for (auto& module : modules) all.push_back(&*module);
  return stack_module_state(all);
}

}  // namespace func
}  // namespace SINTER_API
