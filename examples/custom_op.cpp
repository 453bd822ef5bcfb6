// An op of your own: its result's type, a kernel, a gradient. It then works eagerly, under autograd and compiled.
#include <sinter/ops/custom.h>
#include <sinter/sinter.h>

#include <cmath>
#include <iostream>

using namespace sinter;

struct SoftClipAttrs {
  double limit = 1;
  SINTER_FIELDS(limit)
};

int main() {
  // softclip(x) = limit * tanh(x / limit), by a loop of our own.
  auto softclip = register_op<SoftClipAttrs>({
      .name = "example::softclip",
      .infer =
          [](const OpCall& call) {
            check(call.inputs[0].dtype == kFloat32, "softclip: takes f32, not {}", call.inputs[0].dtype);
            return std::vector{call.inputs[0]};
          },
      .run =
          [](std::span<const Tensor> inputs, const Attrs& attrs) -> TensorList {
            float limit = float(attrs.as<SoftClipAttrs>().limit);
            Tensor out = inputs[0].clone(MemoryFormat::kContiguous);
            float* data = out.data_ptr<float>();
            for (int64_t i = 0; i < out.numel(); ++i) data[i] = limit * std::tanh(data[i] / limit);
            return {out};
          },
      .grad =
          [](const GradCall& call) -> TensorList {
            double limit = call.attrs.as<SoftClipAttrs>().limit;
            return {call.grad() * (1 - square(call.out() / limit))};
          },
  });

  auto f = [&](const Tensor& x) { return (softclip({x}, {.limit = 2}) * 3).sum(); };
  Tensor x = linspace(-5, 5, 11).requires_grad_();
  f(x).backward();
  Tensor eager_grad = x.grad().clone();

  // Compiled it stands in the graph as it is, among ops that the compiler knows.
  auto fast = compile(f);
  x.set_grad({});
  Tensor y = fast(x);
  y.backward();
  std::cout << compiler::explain(fast, x).programs[0].graphs[0] << "\n";

  double expected = (3 * 2 * tanh(x.detach() / 2)).sum().item<double>();
  double wrong = std::abs(y.item<double>() - expected) + (x.grad() - eager_grad).abs().amax().item<double>();
  std::cout << "gradient at the middle " << x.grad()[5].item<double>() << ", at the ends "
            << x.grad()[0].item<double>() << "\n";
  return wrong < 1e-4 && std::abs(eager_grad[5].item<double>() - 3) < 1e-4 ? 0 : 1;
}
