#pragma once
// compiler::bisect(): who is at fault where a compiled function gives other results than it should.
#include "sinter/base/api.h"
#include "sinter/capture/compile.h"
#include "sinter/engine/bisect/bisect.h"

namespace sinter SINTER_API {
namespace compiler {

namespace detail {

// The floating tensors of a result that want gradients.
struct CollectDifferentiable final : capture::LeafVisitor {
  void tensor(Tensor& t) override {
    if (t.defined() && t.requires_grad()) found.push_back(t);
  }
  void size(Dim&) override {}
  void number(Scalar&) override {}
  void exact(capture::LeafKind, size_t, const std::string&) override {}
  void enter(const std::string&) override {}
  void leave() override {}
  TensorList found;
};

// Calls backward() on the sum of these, if there are any.
void differentiate_sum(const TensorList& results);

template <class F, class... A>
void call_and_differentiate(bool backward, const F& compiled, A&&... arguments) {
  if constexpr (std::is_void_v<decltype(compiled(std::forward<A>(arguments)...))>) {
    compiled(std::forward<A>(arguments)...);
  } else {
    auto result = compiled(std::forward<A>(arguments)...);
    if (!backward) return;
    CollectDifferentiable visitor;
    capture::detail::Forward forward{visitor};
    capture::detail::walk(forward, result);
    differentiate_sum(visitor.found);
  }
}

}  // namespace detail

// Calls the function once on these arguments, op by op, then takes each of its programs the way of the compiler, in steps
// that the referee watches: which pass makes another program of the graph, or which kernel computes other than its ops,
// crashes or hangs. What is found is made as small as it gets, and comes as a C++ program of a few lines.
//
//   Bisection found = compiler::bisect(f, x, w);
//   std::cout << found.text();
//   std::ofstream("wrong.cpp") << found.source;
//
// Kernels are tried in child processes, except on a GPU. `f` may be compiled or not.
template <class F, class... A>
Bisection bisect(const BisectOptions& options, const F& f, A&&... arguments) {
  auto call = [&] {
    if constexpr (requires { f.target(); f.function(); }) {
      CompileOptions same = f.function().options();
      same.options.erase("background");
      same.name = f.function().name();
      detail::call_and_differentiate(options.backward, compile(*f.target(), same), std::forward<A>(arguments)...);
    } else {
      detail::call_and_differentiate(options.backward, compile(f, {.name = "f"}), std::forward<A>(arguments)...);
    }
  };
  return bisection::bisect(call, options);
}
template <class F, class... A>
  requires(!std::same_as<F, BisectOptions>)
Bisection bisect(const F& f, A&&... arguments) {
  return bisect(BisectOptions(), f, std::forward<A>(arguments)...);
}

using bisection::run_text;
using bisection::Speed;
using bisection::time_text;

}  // namespace compiler
}  // namespace sinter
