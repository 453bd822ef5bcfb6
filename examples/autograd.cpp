// Gradients: of a formula, of a gradient, and Newton's method with both.
#include <sinter/sinter.h>

#include <cmath>
#include <iostream>

using namespace sinter;

int main() {
  // backward() adds the gradient to every leaf.
  Tensor w = tensor({1.0, 2.0, 3.0}).requires_grad_();
  Tensor loss = (w * w).sum() + sin(w[0]);
  loss.backward();
  std::cout << "loss = " << loss.item<double>() << ", its gradient " << w.grad() << "\n";

  // grad() gives gradients and touches nothing; create_graph makes them differentiable.
  Tensor x = tensor(2.0).requires_grad_();
  Tensor cube = pow(x, 3);
  Tensor slope = autograd::grad({cube}, {x}, {}, {}, /*create_graph=*/true)[0];
  Tensor curvature = autograd::grad({slope}, {x})[0];
  std::cout << "x^3 at 2: slope " << slope.item<double>() << ", curvature " << curvature.item<double>() << "\n";

  // The minimum of cosh(x - 1) by Newton's method.
  Tensor position = tensor(2.0);
  for (int step = 0; step < 6; ++step) {
    Tensor at = position.detach().requires_grad_();
    Tensor first = autograd::grad({cosh(at - 1)}, {at}, {}, {}, /*create_graph=*/true)[0];
    Tensor second = autograd::grad({first}, {at})[0];
    NoGradGuard no_grad;  // the update itself is no part of any gradient
    position = at - first / second;
    std::cout << "step " << step << ": " << position.item<double>() << "\n";
  }
  return std::abs(position.item<double>() - 1) < 1e-5 ? 0 : 1;
}
