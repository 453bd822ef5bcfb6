// Complex numbers and their gradients against what PyTorch recorded (tools/record_complex.py, where each case has its counterpart
// of the same name): eagerly in both dtypes, and compiled.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <functional>
#include <iterator>
#include <sstream>

#include "sinter/autograd/autograd.h"
#include "sinter/capture/compiler.h"
#include "sinter/io/safetensors.h"
#include "sinter/ops/conv.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/linalg.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"
#include "tests/ops/complex_cases.h"

namespace sinter {
namespace {

using testing::ComplexCase;
using testing::complex_cases;

const SafeTensorsFile& recording() {
  static const SafeTensorsFile file(SINTER_TEST_DATA "/recorded/complex.safetensors");
  return file;
}

// In doubles; undefined where it was not recorded.
Tensor recorded(const std::string& key) {
  if (recording().contains(key + ".c")) return view_as_complex(recording().tensor(key + ".c")).clone();
  return recording().contains(key) ? recording().tensor(key).clone() : Tensor();
}

// Floating and complex tensors in single precision.
Tensor narrowed(const Tensor& x) {
  return x.is_complex() ? x.to(kComplexFloat) : x.is_floating_point() ? x.to(kFloat) : x;
}

TensorList recorded_list(const std::string& name, const char* what, bool narrow) {
  TensorList out;
  for (size_t i = 0;; ++i) {
    Tensor x = recorded(format("{}/{}{}", name, what, i));
    if (!x.defined()) return out;
    out.push_back(narrow ? narrowed(x) : x);
  }
}

bool moves(const Tensor& x) { return is_differentiable(x.dtype()); }

// Equal numbers, or close ones; a nan part is any nan.
void expect_close(const Tensor& got, const Tensor& want, double tolerance, const std::string& what) {
  ASSERT_TRUE(got.defined()) << what;
  ASSERT_EQ(got.is_complex(), want.is_complex()) << what;
  ASSERT_EQ(got.sizes().numbers(), want.sizes().numbers()) << what;
  auto numbers = [](const Tensor& x) { return (x.is_complex() ? view_as_real(x) : x).to_vector<double>(); };
  auto a = numbers(got), b = numbers(want);
  for (size_t i = 0; i < a.size(); ++i) {
    const double allowed = tolerance * std::max(1.0, std::abs(b[i]));
    bool same = a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i])) || std::abs(a[i] - b[i]) <= allowed;
    if (a[i] == 0 && b[i] == 0 && std::signbit(a[i]) != std::signbit(b[i])) same = what.find("corners") == what.npos;
    EXPECT_TRUE(same) << what << ", number " << i << ": " << a[i] << ", PyTorch gives " << b[i];
  }
}

// The outputs and the gradients of what moves, where PyTorch has one.
TensorList answers(const ComplexCase& c, const TensorList& inputs, bool narrow) {
  TensorList outputs = c.run(inputs), all = outputs, roots, seeds, wanted;
  for (size_t i = 0; i < outputs.size(); ++i) {
    Tensor seed = recorded(format("{}/cotangent{}", c.name, i));
    if (!seed.defined()) continue;
    roots.push_back(outputs[i]);
    seeds.push_back(narrow ? narrowed(seed) : seed);
  }
  for (size_t i = 0; i < inputs.size(); ++i)
    if (recorded(format("{}/grad{}", c.name, i)).defined()) wanted.push_back(inputs[i]);
  if (!wanted.empty())
    for (auto& g : autograd::grad(roots, wanted, seeds)) all.push_back(g);
  return all;
}

TensorList wanted_answers(const ComplexCase& c, size_t inputs) {
  TensorList all = recorded_list(c.name, "out", false);
  for (size_t i = 0; i < inputs; ++i)
    if (Tensor g = recorded(format("{}/grad{}", c.name, i)); g.defined()) all.push_back(g);
  return all;
}

class ComplexRecorded : public ::testing::TestWithParam<ComplexCase> {
 protected:
  void compare(bool narrow, double tolerance, const std::function<TensorList(const TensorList&)>& run) {
    TensorList inputs = recorded_list(GetParam().name, "in", narrow);
    ASSERT_FALSE(inputs.empty()) << GetParam().name << " is not recorded: run tools/record_complex.py";
    for (auto& x : inputs)
      if (moves(x)) x.requires_grad_();
    TensorList got = run(inputs), want = wanted_answers(GetParam(), inputs.size());
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) expect_close(got[i], want[i], tolerance, format("{}, answer {}", GetParam().name, i));
  }
};

TEST_P(ComplexRecorded, InDoublePrecision) {
  compare(false, 1e-11, [](const TensorList& inputs) { return answers(GetParam(), inputs, false); });
}
TEST_P(ComplexRecorded, InSinglePrecision) {
  compare(true, 2e-4, [](const TensorList& inputs) { return answers(GetParam(), inputs, true); });
}

INSTANTIATE_TEST_SUITE_P(Functions, ComplexRecorded, ::testing::ValuesIn(complex_cases()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(ComplexRecording, HasTheSameCases) {
  std::istringstream in(recording().metadata().at("cases"));
  std::vector<std::string> there(std::istream_iterator<std::string>(in), {}), here;
  for (auto& c : complex_cases()) here.push_back(c.name);
  std::sort(there.begin(), there.end());
  std::sort(here.begin(), here.end());
  EXPECT_EQ(there, here);
}

}  // namespace
}  // namespace sinter
