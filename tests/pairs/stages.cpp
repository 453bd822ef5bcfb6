#include "tests/pairs/stages.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "sinter/base/error.h"
#include "sinter/engine/executable.h"
#include "sinter/graph/tolerance.h"
#include "sinter/graph/trace.h"

namespace sinter::pairs {

namespace {

constexpr int kPerturbations = 5;

Type type_of(const Array& values, Device device) {
  return {values.dtype, Shape(std::span<const int64_t>(values.sizes)), device};
}

double largest(DType dtype) {
  if (dtype == kFloat16) return 65504;
  return dtype == kFloat64 ? std::numeric_limits<double>::max() : 3.3895e38;  // of bf16, just below that of f32
}

// What the ops of a graph may be wrong by, all together.
Tolerance tolerance_of(const Graph& graph, Device device) {
  Tolerance all{.ulp = 0};
  for (auto& node : graph.nodes()) {
    all.ulp += node.op->tolerance.ulp;
    all.absolute += node.op->tolerance.absolute;
    // Tensor cores take the weights of attention in the operands' type.
    bool partial = node.op->tolerance.partial || (!device.is_cpu() && node.op->kind == OpKind::kComposite);
    all.partial = all.partial || partial;
  }
  return all;
}

// The values with every element moved by its allowed error: all up, all down, all to a zero within reach, each either way.
Array moved_by(const Array& values, const Tolerance& tolerance, int which) {
  Array out = values;
  std::minstd_rand random(unsigned(which) + 1);
  for (double& v : out.f) {
    double sign = which == 0 ? 1 : which == 1 ? -1 : random() % 2 ? 1 : -1;
    if (std::isnan(v)) v = std::copysign(v, sign);  // nobody says which sign it has
    if (!std::isfinite(v)) continue;
    double error = allowed_error(values.dtype, tolerance, v);
    v = which == 2 && std::abs(v) <= error ? 0 : v + sign * error;
  }
  return out;
}

// Every value that a result may have as far as the stages before its last decide.
struct Range {
  double low, high, first;
  bool nan = false;

  explicit Range(double v) : low(v), high(v), first(v), nan(std::isnan(v)) {}
  void add(double v) {
    if (std::isnan(v)) return void(nan = true);
    low = std::isnan(low) ? v : std::min(low, v);
    high = std::isnan(high) ? v : std::max(high, v);
  }
  bool holds(double got, double slack, double limit) const {
    // An edge of what the op is defined on lies within the error: what it gives there is none of the values that were tried.
    if (nan && !std::isnan(low)) return true;
    if (std::isnan(got)) return nan;
    if (std::isinf(got)) return got > 0 ? high >= limit : low <= -limit;
    if (std::isfinite(high) && std::isfinite(low)) slack += 3 * (high - low);
    return got >= low - slack && got <= high + slack;
  }
};

class Checker {
 public:
  Checker(Chain chain, Device device) : chain_(std::move(chain)), device_(device) {
    for (auto& input : chain_.inputs) {
      Tensor tensor = testing::lay_out(input.values, input.layout);
      tensors_.emplace_back(device.is_cpu() ? tensor : testing::moved(tensor, device));
      values_.push_back(input.values);
      types_.push_back(type_of(input.values, device));
    }
  }

  Outcome run() {
    size_t last = chain_.stages.size() - 1;
    std::vector<Array> wants;
    Graph whole;
    try {
      wants = interpret(traced(nullptr, 0, last, true), values_);
      whole = traced(nullptr, 0, last, false);
    } catch (const Error&) {
      return {.applies = false, .wrong = {}};
    }
    for (auto& want : wants)
      for (double v : want.f)
        if (std::isfinite(v) && std::abs(v) > largest(want.dtype) / 2) return {.applies = false, .wrong = {}};
    if (wants.back().numel() == 0) return {.applies = false, .wrong = {}};
    std::string text = whole.text();
    try {
      Program program{.graph = std::move(whole), .symbols = {}, .writes = {}, .name = "pair"};
      auto executable = compile_program(std::move(program));
      for (int round = 0; round < 2; ++round) {
        TensorList got(1);
        executable->run(tensors_, {}, got);
        if (std::string wrong = compare(got[0], wants); !wrong.empty())
          return {.applies = true, .wrong = wrong + "\n" + text};
      }
    } catch (const std::exception& e) {
      return {.applies = true, .wrong = format("{}\n{}", e.what(), text)};
    }
    return {};
  }

 private:
  // The stages from `first` to `last` as a graph over the chain's inputs; where `first` is not the first, its predecessor's
  // result, which looks like `before`, is one more input. All results, or the last.
  Graph traced(const Array* before, size_t first, size_t last, bool all) const {
    std::vector<Type> types = types_;
    if (before) types.push_back(type_of(*before, device_));
    auto f = [&](const TensorList& in) {
      TensorList inputs(in.begin(), in.begin() + ptrdiff_t(types_.size())), results;
      Tensor value = before ? in.back() : Tensor();
      for (size_t s = first; s <= last; ++s) results.push_back(value = chain_.stages[s](value, inputs));
      return all ? results : TensorList{results.back()};
    };
    return trace(f, types);
  }

  Array interpreted(const Graph& graph, Array before) const {
    std::vector<Array> inputs = values_;
    inputs.push_back(std::move(before));
    return interpret(graph, inputs)[0];
  }

  std::string compare(const Tensor& got, const std::vector<Array>& wants) const {
    const Array& want = wants.back();
    if (got.dtype() != want.dtype) return format("dtype {} instead of {}", got.dtype(), want.dtype);
    if (got.impl().sizes != want.sizes) return format("shape {} instead of {}", got.impl().sizes, want.sizes);
    size_t last = wants.size() - 1;
    std::vector<Range> ranges;
    for (int64_t at = 0; at < want.numel(); ++at) ranges.emplace_back(want.number(at));
    for (size_t s = 0; s < last; ++s) {
      const Array* before = s ? &wants[s - 1] : nullptr;
      Tolerance tolerance = tolerance_of(traced(before, s, s, false), device_);
      if (!wants[s].floating()) continue;
      Graph rest = traced(&wants[s], s + 1, last, false);
      for (int p = 0; p < kPerturbations; ++p) {
        Array other = interpreted(rest, moved_by(wants[s], tolerance, p));
        for (int64_t at = 0; at < want.numel(); ++at) ranges[size_t(at)].add(other.number(at));
      }
    }
    // Where terms of both signs cancel, the error is that of the terms.
    const Array* before = last ? &wants[last - 1] : nullptr;
    Graph end = traced(before, last, last, false);
    Array scale = magnitude(end, before);
    Tolerance tolerance = tolerance_of(end, device_);
    Array values = to_array(got);
    for (int64_t at = 0; at < want.numel(); ++at) {
      const Range& range = ranges[size_t(at)];
      double slack = 0;
      if (want.floating()) {
        double size = std::abs(scale.number(at)), found = std::abs(range.first);
        if (!(size > found) || std::isinf(size)) size = found;
        slack = std::isfinite(size) ? allowed_error(want.dtype, tolerance, size) : 0;
        slack += 4 * allowed_error(want.dtype, {.ulp = 0}, 0);  // what was flushed to zero inside the op
      }
      if (!want.floating() && range.low == range.high && values.integer(at) != want.integer(at))
        return format("element {}: {} instead of {}", at, values.integer(at), want.integer(at));
      if (!range.holds(values.number(at), slack, largest(want.dtype)))
        return format("element {}: {} instead of {} (between {} and {} with the error so far, and {} of the last op)",
                      at, values.number(at), range.first, range.low, range.high, slack);
    }
    return "";
  }

  // The last stage with every number made positive.
  Array magnitude(const Graph& end, const Array* before) const {
    std::vector<Array> inputs = values_;
    if (before) inputs.push_back(*before);
    for (auto& input : inputs)
      for (double& v : input.f) v = std::abs(v);
    return interpret(end, inputs)[0];
  }

  Chain chain_;
  Device device_;
  std::vector<TensorArg> tensors_;
  std::vector<Array> values_;
  std::vector<Type> types_;
};

}  // namespace

Outcome check(Chain chain, Device device) { return Checker(std::move(chain), device).run(); }

}  // namespace sinter::pairs
