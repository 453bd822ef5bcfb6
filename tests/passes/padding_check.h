#pragma once
// Runs a program on inputs of a true size and on the same inputs padded with zeros.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "sinter/graph/interpreter.h"
#include "sinter/graph/trace.h"
#include "sinter/passes/padding.h"
#include "sinter/sinter.h"

namespace sinter::testing {

using Program = std::function<TensorList(const TensorList&)>;

// Inputs are given by their types; "mask " before one says that it holds 0 and 1.
struct Case {
  Graph graph;
  std::vector<bool> masks;
};

inline Case traced(const Program& f, const std::vector<std::string>& types) {
  GraphTracer tracer;
  TracerScope scope(&tracer);
  Case out;
  TensorList inputs;
  tracer.set_hint("s0", 48);
  for (auto& text : types) {
    bool mask = text.starts_with("mask ");
    inputs.push_back(tracer.add_input(parse_type(text.substr(mask ? 5 : 0))));
    out.masks.push_back(mask);
  }
  std::vector<Value> outputs;
  for (auto& tensor : f(inputs)) outputs.push_back(tracer.value_of(tensor));
  SINTER_INTERNAL_ASSERT(tracer.captured().empty(), "the program captures tensors");
  tracer.graph().set_outputs(outputs);
  out.graph = std::move(tracer.graph());
  return out;
}

inline IntList sizes_at(const Shape& shape, int64_t size) {
  IntList out;
  for (auto& d : shape) out.push_back(d.substitute([&](const std::string&) { return Dim(size); }).number());
  return out;
}

// Calls f(position in `small`, position in `large`) for the elements of the smaller of two shapes.
template <class F>
void for_each_common(const IntList& small, const IntList& large, F&& f) {
  int64_t count = 1;
  for (int64_t s : small) count *= s;
  for (int64_t n = 0; n < count; ++n) {
    int64_t rest = n, at = 0, stride = 1;
    for (size_t d = small.size(); d-- > 0;) {
      at += rest % small[d] * stride;
      rest /= small[d];
      stride *= large[d];
    }
    f(n, at);
  }
}

inline Array random_input(const Type& type, bool mask, int64_t size, std::mt19937& random) {
  Array out(type.dtype, sizes_at(type.shape, size));
  for (int64_t i = 0; i < out.numel(); ++i) {
    double value = std::uniform_real_distribution<double>(-2, 2)(random);
    if (mask || type.dtype == kBool)
      out.set(i, int64_t(i % 3 != 2));
    else if (is_floating(type.dtype))
      out.set(i, value);
    else
      out.set(i, int64_t(random() % 4));
  }
  return out;
}

inline Array zero_padded(const Array& array, const IntList& sizes) {
  Array out(array.dtype, sizes);
  for_each_common(array.sizes, sizes, [&](int64_t from, int64_t to) {
    array.floating() ? out.set(to, array.f[size_t(from)]) : out.set(to, array.i[size_t(from)]);
  });
  return out;
}

// The largest difference between the outputs of the program and those of the padded program cut back.
inline double distance(const Graph& graph, const PaddingReport& report, const std::vector<Array>& inputs,
                       int64_t padded) {
  std::vector<Array> padded_inputs;
  for (size_t n = 0; n < inputs.size(); ++n)
    padded_inputs.push_back(zero_padded(inputs[n], sizes_at(graph.inputs()[n].type().shape, padded)));
  auto expected = interpret(graph, inputs), actual = interpret(graph, padded_inputs);
  double out = 0;
  for (size_t n = 0; n < expected.size(); ++n) {
    auto &a = expected[n], &b = actual[n];
    for (size_t d = 0; d < a.sizes.size(); ++d) {
      EXPECT_LE(a.sizes[d], b.sizes[d]);
      EXPECT_TRUE(a.sizes[d] == b.sizes[d] || report.output_padded[n][d]);
    }
    for_each_common(a.sizes, b.sizes, [&](int64_t i, int64_t j) {
      double x = a.number(i), y = b.number(j);
      if (x == y || (std::isnan(x) && std::isnan(y))) return;
      out = std::max(out, std::isfinite(x - y) ? std::abs(x - y) : 1e300);
    });
  }
  return out;
}

inline double distance(const Case& c, const PaddingReport& report, int64_t size, int64_t padded) {
  std::mt19937 random(unsigned(size * 100 + padded));
  std::vector<Array> inputs;
  for (size_t n = 0; n < c.masks.size(); ++n)
    inputs.push_back(random_input(c.graph.inputs()[n].type(), c.masks[n], size, random));
  return distance(c.graph, report, inputs, padded);
}

inline constexpr const char* kTokens = "f32[2, s0, 6]";
inline constexpr const char* kMask = "mask bool[2, s0]";

}  // namespace sinter::testing
