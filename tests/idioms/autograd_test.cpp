#include "tests/idioms/idioms.h"

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;
using torch::autograd::Variable;
using torch::autograd::variable_list;

struct LinearFunction : torch::autograd::Function<LinearFunction> {
  static torch::Tensor forward(AutogradContext* ctx, torch::Tensor input, torch::Tensor weight, torch::Tensor bias = {}) {
    ctx->save_for_backward({input, weight, bias});
    auto output = input.mm(weight.t());
    if (bias.defined()) output += bias.unsqueeze(0).expand_as(output);
    return output;
  }
  static tensor_list backward(AutogradContext* ctx, tensor_list grad_outputs) {
    auto saved = ctx->get_saved_variables();
    auto grad_output = grad_outputs[0];
    auto grad_bias = torch::Tensor();
    if (saved[2].defined()) grad_bias = grad_output.sum(0);
    return {grad_output.mm(saved[1]), grad_output.t().mm(saved[0]), grad_bias};
  }
};

struct MulConstant : torch::autograd::Function<MulConstant> {
  static torch::Tensor forward(AutogradContext* ctx, torch::Tensor tensor, double constant) {
    ctx->saved_data["constant"] = constant;
    return tensor * constant;
  }
  static tensor_list backward(AutogradContext* ctx, tensor_list grad_outputs) {
    return {grad_outputs[0] * ctx->saved_data["constant"].toDouble(), torch::Tensor()};
  }
};

struct Both : torch::autograd::Function<Both> {
  static variable_list forward(AutogradContext* ctx, Variable a, Variable b) {
    ctx->save_for_backward({a, b});
    return {a * b, a + b};
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    auto saved = ctx->get_saved_variables();
    return {grads[0] * saved[1] + grads[1], grads[0] * saved[0] + grads[1]};
  }
};

struct AutogradIdioms : Idioms {
  torch::Tensor a = torch::tensor({{1.0f, 2.0f}, {3.0f, 4.0f}}, torch::requires_grad());
};

TEST_F(AutogradIdioms, Backward) {
  IDIOM_DO({
    auto z = a + 2;
    auto out = (z * z * 3).mean();
    out.backward();
    return a.grad();
  });
  IDIOM_DO({
    auto x = torch::ones({2, 2}, torch::requires_grad());
    (x * x).sum().backward();
    return x.grad();
  });
  IDIOM_DO({
    auto x = torch::ones({2}, torch::TensorOptions().requires_grad(true));
    (x * 3).backward(torch::tensor({1.0f, 0.5f}));
    return x.grad();
  });
  IDIOM_DO({
    auto x = torch::ones({2}).requires_grad_(true);
    auto y = x.pow(3).sum();
    y.backward({}, /*retain_graph=*/true);
    y.backward();
    return x.grad();
  });
  IDIOM_DO({
    auto x = torch::full({2}, 3.0, torch::requires_grad());
    x.square().sum().backward();
    x.grad().zero_();
    (x * 2).sum().backward();
    return x.grad();
  });
  IDIOM_DO({
    auto x = torch::ones({2}, torch::requires_grad());
    (x * 2).sum().backward();
    x.mutable_grad() = torch::zeros({2});
    return x.grad();
  });
  IDIOM_DO({
    auto x = torch::ones({2}, torch::requires_grad()), y = x * 2;
    y.retain_grad();
    y.square().sum().backward();
    return y.grad();
  });
  IDIOM_DO({
    auto x = torch::ones({2}, torch::requires_grad());
    torch::autograd::backward({(x * 5).sum()}, {});
    return x.grad();
  });
  IDIOM_DO({
    auto x = torch::tensor({2.0f}, torch::requires_grad());
    return torch::autograd::grad({x * x}, {x})[0];
  });
  IDIOM_DO({
    auto x = torch::tensor({2.0f, 3.0f}, torch::requires_grad());
    auto y = x.pow(3);
    auto first = torch::autograd::grad({y}, {x}, {torch::ones_like(y)}, /*retain_graph=*/true, /*create_graph=*/true)[0];
    return torch::autograd::grad({first.sum()}, {x})[0];
  });
  IDIOM_DO({
    auto x = torch::ones({3}, torch::requires_grad());
    auto grads = torch::autograd::grad({(x * 2).sum()}, {x, a}, {}, c10::nullopt, false, /*allow_unused=*/true);
    return static_cast<int64_t>(grads[1].defined());
  });
  IDIOM_DO({
    auto norm = torch::nn::functional::linear(a, torch::ones({1, 2})).norm(2, 1).mean();
    auto grad = torch::autograd::grad({norm}, {a}, {}, true, true)[0];
    ((grad.norm(2, 1) - 1).pow(2)).mean().backward();
    return a.grad();
  });
  IDIOM_HOLDS(a.requires_grad() && a.is_leaf());
  IDIOM_HOLDS(!(a * 2).is_leaf());
  IDIOM_HOLDS((a * 2).grad_fn() != nullptr);
  IDIOM_HOLDS(!x.grad().defined());
  IDIOM_HOLDS(!a.detach().requires_grad());
  IDIOM_HOLDS(!a.data().requires_grad());
  IDIOM_HOLDS((a * 2).detach_().is_leaf());
}

TEST_F(AutogradIdioms, Switches) {
  IDIOM_HOLDS_DO({
    torch::NoGradGuard no_grad;
    return !(a * 2).requires_grad();
  });
  IDIOM_HOLDS_DO({
    torch::AutoGradMode guard(false);
    torch::AutoGradMode inner(true);
    return (a * 2).requires_grad();
  });
  IDIOM_HOLDS_DO({
    c10::InferenceMode guard;
    return !(a * 2).requires_grad();
  });
  IDIOM_HOLDS_DO({
    torch::InferenceMode guard(/*enabled=*/true);
    return torch::InferenceMode::is_enabled();
  });
  IDIOM_HOLDS(torch::GradMode::is_enabled());
  IDIOM_HOLDS(at::GradMode::is_enabled());
  IDIOM_DO({
    auto w = torch::ones({2}, torch::requires_grad());
    (w * 3).sum().backward();
    torch::NoGradGuard no_grad;
    w -= 0.1 * w.grad();
    return w;
  });
  IDIOM_DO({
    auto w = torch::ones({2}, torch::requires_grad());
    (w * 3).sum().backward();
    w.data().sub_(w.grad().data() * 0.1);
    return w;
  });
  IDIOM_HOLDS_DO({
    torch::autograd::DetectAnomalyGuard detect;
    return true;
  });
}

TEST_F(AutogradIdioms, Hooks) {
  IDIOM_DO({
    auto h = a * 2;
    h.register_hook([](torch::Tensor grad) { return grad * 10; });
    h.sum().backward();
    return a.grad();
  });
  IDIOM_DO({
    torch::Tensor seen;
    auto h = a.register_hook([&](torch::Tensor grad) { seen = grad.clone(); });
    (a * 3).sum().backward();
    a.remove_hook(h);
    return seen;
  });
}

TEST_F(AutogradIdioms, Functions) {
  IDIOM_DO({
    auto input = formula({2, 3}, 1).requires_grad_(), weight = formula({4, 3}, 2).requires_grad_();
    auto out = LinearFunction::apply(input, weight, torch::ones({4}));
    out.sum().backward();
    return std::make_tuple(out.detach(), input.grad(), weight.grad());
  });
  IDIOM_DO({
    auto input = formula({2, 3}, 1).requires_grad_(), weight = formula({4, 3}, 2), bias = formula({4}, 3).requires_grad_();
    LinearFunction::apply(input, weight, bias).sum().backward();
    return std::make_tuple(input.grad(), bias.grad());
  });
  IDIOM_DO({
    auto input = formula({2}, 1).requires_grad_();
    MulConstant::apply(input, 5.5).sum().backward();
    return input.grad();
  });
  IDIOM_DO({
    auto p = formula({2}, 1).requires_grad_(), q = formula({2}, 2).requires_grad_();
    auto results = Both::apply(p, q);
    (results[0] + 2 * results[1]).sum().backward();
    return std::make_tuple(p.grad(), q.grad());
  });
}

}  // namespace
