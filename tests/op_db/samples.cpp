#include "tests/op_db/samples.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/base/hash.h"
#include "sinter/capture/compile.h"
#include "sinter/graph/interpreter.h"
#include "sinter/interop/program.h"
#include "sinter/interop/runner.h"
#include "sinter/io/safetensors.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/view.h"

namespace sinter::testing {

namespace {

using nlohmann::json;

// How far a result may be from PyTorch's, which rounds as well and may sum in another order.
double tolerance_of(DType dtype) {
  switch (dtype) {
    case kFloat64: return 1e-9;
    case kFloat32: return 1e-4;
    case kFloat16: return 5e-3;
    case kBFloat16: return 3e-2;
    default: return 0;
  }
}

// A tensor over memory of its own, with the strides that it was recorded with.
Tensor recorded_tensor(const SafeTensorsFile& file, const json& meta) {
  const auto sizes = meta.at("sizes").get<IntList>(), strides = meta.at("strides").get<IntList>();
  int64_t span = 1;
  for (size_t d = 0; d < sizes.size(); ++d) span = sizes[d] == 0 || span == 0 ? 0 : span + (sizes[d] - 1) * strides[d];
  const auto at = meta.at("at").get<int64_t>();
  const auto dtype = meta.at("dtype").get<std::string>();
  Tensor memory = file.tensor(dtype).slice(0, at, at + span).clone();
  // Complex numbers are recorded as pairs.
  if (dtype == "c64" || dtype == "c128") memory = view_as_complex(memory);
  return memory.as_strided(sizes, strides);
}

TensorList recorded_tensors(const SafeTensorsFile& file, const json& metas) {
  TensorList out;
  for (auto& meta : metas) out.push_back(meta.is_null() ? Tensor() : recorded_tensor(file, meta));
  return out;
}

double largest_of(const Array& values) {
  double largest = 0;
  for (double value : values.f)
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  return std::min(largest, 1e30);
}

// Empty where they agree. Large values make the small ones beside them uncertain; `scale` is that of what they are computed from,
// a small part of which is lost where it cancels out.
std::string difference_between(const Tensor& got, const Tensor& want, double scale = 0) {
  if (!got.defined()) return "nothing instead of a tensor";
  if (got.dtype() != want.dtype()) return format("{} instead of {}", got.dtype(), want.dtype());
  if (!(got.sizes() == want.sizes())) return format("shape {} instead of {}", got.sizes(), want.sizes());
  if (is_complex(want.dtype())) return difference_between(view_as_real(got.detach()), view_as_real(want), scale);
  const Array a = to_array(got.detach()), b = to_array(want);
  for (size_t i = 0; i < b.i.size(); ++i)
    if (a.i[i] != b.i[i]) return format("{} instead of {} at {}", a.i[i], b.i[i], i);
  const double relative = tolerance_of(want.dtype());
  const double slack = relative * std::max(0.2 * largest_of(b), 0.05 * scale);
  for (size_t i = 0; i < b.f.size(); ++i) {
    if (a.f[i] == b.f[i] || (std::isnan(a.f[i]) && std::isnan(b.f[i]))) continue;
    if (!(std::abs(a.f[i] - b.f[i]) <= slack + relative * std::abs(b.f[i])))
      return format("{} instead of {} at {}", a.f[i], b.f[i], i);
  }
  return "";
}

TensorList tensors_of(const interop::ValueList& values) {
  TensorList out;
  for (auto& value : values) {
    if (value.is<Tensor>()) out.push_back(value.as<Tensor>());
    if (value.is<interop::ValueList>())
      for (auto& tensor : tensors_of(value.as<interop::ValueList>())) out.push_back(tensor);
  }
  return out;
}

// A program as a .pt2 file has it. Of its inputs nothing is told: the operands are there to be looked at.
interop::ExportedProgram program_of(const json& recorded) {
  constexpr int kFloatCode = 7;
  json graph{{"nodes", recorded.at("nodes")}, {"outputs", recorded.at("outputs")}, {"inputs", json::array()}};
  json signature{{"input_specs", json::array()}, {"output_specs", json::array()}};
  graph["tensor_values"] = json::object();
  for (const std::string name : recorded.at("inputs")) {
    const json input{{"as_tensor", {{"name", name}}}};
    graph["inputs"].push_back(input);
    graph["tensor_values"][name] = {{"dtype", kFloatCode}, {"sizes", json::array()}};
    signature["input_specs"].push_back({{"user_input", {{"arg", input}}}});
  }
  for (auto& output : recorded.at("outputs")) signature["output_specs"].push_back({{"user_output", {{"arg", output}}}});
  const json program{{"graph_module", {{"graph", graph}, {"signature", signature}}},
                     {"range_constraints", json::object()},
                     {"schema_version", {{"major", 8}}}};
  return interop::read_program(program.dump(), "the sample");
}

class SampleCheck {
 public:
  SampleCheck(const json& line, const SafeTensorsFile& file, const CheckOptions& options)
      : line_(line), file_(file), options_(options) {}

  SampleResult run() {
    SampleResult out{.op = line_.at("op").get<std::string>(), .sample = line_.at("sample").get<std::string>()};
    if (std::string variant = line_.at("variant").get<std::string>(); !variant.empty()) out.op += "." + variant;
    try {
      auto program = program_of(line_.at("program"));
      interop::GraphRunner runner(program.graph, "the sample");
      auto eager = [&](const TensorList& operands) { return run_graph(runner, operands); };
      out.message = check_values("", eager);
      if (out.message.empty() && options_.gradients) out.message = check_gradients("", eager);
      if (out.message.empty() && options_.compiled != 0) {
        auto compiled = compile(eager);
        out.message = check_values("compiled: ", compiled);
        if (out.message.empty() && options_.gradients) out.message = check_gradients("compiled: ", compiled);
      }
      if (!out.message.empty()) out.verdict = Verdict::kWrong;
    } catch (const std::exception& error) {
      out.verdict = Verdict::kRefused;
      out.message = error.what();
    }
    return out;
  }

 private:
  static TensorList run_graph(const interop::GraphRunner& runner, const TensorList& operands) {
    interop::ValueList inputs;
    for (auto& operand : operands) inputs.push_back({operand});
    return tensors_of(runner.run(std::move(inputs), cpu()));
  }

  template <class F>
  std::string check_values(const char* how, F&& function) {
    NoGradGuard no_grad;
    const TensorList got = function(recorded_tensors(file_, line_.at("inputs")));
    const TensorList want = recorded_tensors(file_, line_.at("outputs"));
    if (got.size() != want.size()) return format("{}{} results instead of {}", how, got.size(), want.size());
    for (size_t k = 0; k < want.size(); ++k)
      if (std::string text = difference_between(got[k], want[k]); !text.empty()) return format("{}result {}: {}", how, k, text);
    return "";
  }

  template <class F>
  std::string check_gradients(const char* how, F&& function) {
    if (!line_.contains("grads")) return "";
    TensorList operands = recorded_tensors(file_, line_.at("inputs")), leaves, roots, seeds;
    double scale = 0, largest = 1;
    for (auto& operand : operands) largest = std::max(largest, largest_of(to_array(operand)));
    for (auto& operand : operands)
      if (is_floating(operand.dtype())) operand.set_requires_grad(true);
    for (int64_t k : line_.at("leaves")) leaves.push_back(operands.at(size_t(k)));
    const TensorList results = function(operands);
    for (size_t n = 0; n < line_.at("roots").size(); ++n) {
      const Tensor& root = results.at(line_.at("roots")[n].get<size_t>());
      Tensor seed = recorded_tensor(file_, line_.at("seeds")[n]);
      scale = std::max(scale, largest * largest_of(to_array(seed)));
      if (!root.requires_grad()) continue;  // then its gradients are zeros
      roots.push_back(root);
      seeds.push_back(seed);
    }
    TensorList got(leaves.size());
    if (!roots.empty())
      got = autograd::grad(roots, leaves, seeds, /*retain_graph=*/false, /*create_graph=*/false, /*allow_unused=*/true);
    for (size_t n = 0; n < leaves.size(); ++n) {
      const json& meta = line_.at("grads")[n];
      // What PyTorch gives nothing for may be zeros here, and the other way round.
      Tensor want = meta.is_null() ? zeros_like(leaves[n].detach()) : recorded_tensor(file_, meta);
      Tensor have = got[n].defined() ? got[n] : zeros_like(leaves[n].detach());
      if (std::string text = difference_between(have, want, scale); !text.empty())
        return format("{}gradient {}: {}", how, line_.at("leaves")[n].get<int64_t>(), text);
    }
    return "";
  }

  const json& line_;
  const SafeTensorsFile& file_;
  const CheckOptions options_;
};

}  // namespace

std::vector<SampleResult> check_samples(const std::string& file, const CheckOptions& options) {
  const SafeTensorsFile tensors(file + ".safetensors");
  std::ifstream lines(file + ".jsonl");
  std::vector<SampleResult> out;
  for (std::string line; std::getline(lines, line);) {
    const json sample = json::parse(line);
    CheckOptions one = options;
    // By its name, so that a recording with more samples runs the same ones.
    if (options.compiled != 0) one.compiled = hash_text(sample.at("sample").get<std::string>()) % uint64_t(options.compiled) == 0;
    out.push_back(SampleCheck(sample, tensors, one).run());
  }
  return out;
}

std::vector<std::string> sample_files(const std::string& folder) {
  std::vector<std::string> out;
  for (auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".jsonl") out.push_back((entry.path().parent_path() / entry.path().stem()).string());
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace sinter::testing
