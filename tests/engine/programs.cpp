#include "tests/engine/programs.h"

#include <cmath>

namespace sinter::testing {

Runner::Runner(std::string_view text, const std::string& backend, std::vector<std::string> symbols,
               std::vector<int> writes) {
  Program program{
      .graph = Graph::parse(text), .symbols = std::move(symbols), .writes = std::move(writes), .name = "test"};
  outputs_ = program.graph.outputs().size();
  executable_ = compile_program(std::move(program), backend);
}

TensorList Runner::operator()(const std::vector<TensorArg>& inputs, const std::vector<int64_t>& sizes) const {
  TensorList outputs(outputs_);
  executable_->run(inputs, sizes, outputs);
  return outputs;
}

Tensor values(const Shape& shape, double shift) {
  Tensor out = empty(shape);
  auto* data = static_cast<float*>(out.data_ptr());
  for (int64_t i = 0; i < out.impl().numel; ++i) data[i] = float(std::sin(double(i) * 0.7 + shift));
  return out;
}

::testing::AssertionResult is_close(const Tensor& got, const Tensor& want, double tolerance) {
  if (got.dtype() != want.dtype() || got.impl().sizes != want.impl().sizes)
    return ::testing::AssertionFailure() << format("{}{} instead of {}{}", got.dtype(), got.impl().sizes, want.dtype(),
                                                   want.impl().sizes);
  auto a = got.to_vector<double>(), b = want.to_vector<double>();
  for (size_t i = 0; i < a.size(); ++i)
    if (!(std::abs(a[i] - b[i]) <= tolerance * (1 + std::abs(b[i]))))
      return ::testing::AssertionFailure() << format("element {} is {} instead of {}", i, a[i], b[i]);
  return ::testing::AssertionSuccess();
}

}  // namespace sinter::testing
