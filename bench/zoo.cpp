// A program of torch.export.save, or an ONNX model, beside what PyTorch recorded of it: bench/zoo/run.py asks for one after another.
// Usage: zoo MODEL.pt2|MODEL.onnx RECORDED.safetensors [--gradients]
// RECORDED has input.I and output.I (complex ones as pairs), and with gradients grad.NAME of every parameter for the sum of the
// weighted results that bench/zoo/compare.py takes. Prints a line of JSON for each stage as it is done, so that what was reached is
// known where a stage ends the process: imported, eager, compiled, gradients, each with its seconds and "off", the largest distance
// of a result from PyTorch's relative to its norm; or "error".
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>

#include "bench/support/report.h"
#include "sinter/interop/exported.h"
#include "sinter/interop/onnx.h"
#include "sinter/sinter.h"

using namespace sinter;
using namespace sinter::bench;

namespace {

TensorList numbered(const SafeTensorsFile& file, const std::string& prefix) {
  TensorList out;
  for (int i = 0; file.contains(prefix + std::to_string(i)); ++i)
    out.push_back(file.tensor(prefix + std::to_string(i)).clone());
  return out;
}

double norm_of(const Tensor& t) {
  Tensor wide = t.detach().to(kFloat64);
  return sqrt(square(masked_fill(wide, isfinite(wide).logical_not(), 0)).sum()).item<double>();
}

// The norm of what differs by that of what is wanted, or by `least` where that is smaller; what is not finite counts as
// different unless it is equal.
double distance(Tensor have, const Tensor& want, double least = 0) {
  check(have.defined(), "a result is undefined");
  if (have.is_complex()) have = view_as_real(have.resolve_conj());
  check(have.dtype() == want.dtype(), "a result is {}, PyTorch has {}", have.dtype(), want.dtype());
  check(to_string(have.sizes()) == to_string(want.sizes()), "a result is {}, PyTorch has {}", have.sizes(),
        want.sizes());
  if (want.numel() == 0) return 0;
  Tensor a = have.detach().to(kFloat64), b = want.to(kFloat64);
  Tensor same = (a == b) | (isnan(a) & isnan(b));
  const double off = sqrt(square(masked_fill(a - b, same, 0)).sum()).item<double>();
  const double size = std::max(norm_of(want), least);
  return off == 0 ? 0 : off / (size > 0 ? size : 1);
}

double worst_of(const TensorList& have, const TensorList& want) {
  check(have.size() == want.size(), "there are {} results, PyTorch has {}", have.size(), want.size());
  double worst = 0;
  for (size_t i = 0; i < have.size(); ++i) {
    const double off = distance(have[i], want[i]);
    if (!(off <= worst)) worst = off;
  }
  return worst;
}

ExportedModel load_program(const std::string& path) { return path.ends_with(".onnx") ? load_onnx(path) : load_exported(path); }

// Runs a stage and prints what came of it; whether it went well.
bool stage(const char* name, const std::function<void(Json& out)>& run) {
  Json out = {{"stage", name}};
  try {
    const auto start = std::chrono::steady_clock::now();
    run(out);
    out["seconds"] = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  } catch (const Error& error) {
    out["error"] = error.message();
  } catch (const InternalError& error) {
    out["error"] = std::string("internal: ") + error.what();
  }
  std::printf("%s\n", out.dump(-1, ' ', true, Json::error_handler_t::replace).c_str());
  std::fflush(stdout);
  return !out.contains("error");
}

// The loss whose gradients are recorded.
Tensor loss_of(const TensorList& results) {
  Tensor loss = zeros({});
  for (auto& result : results)
    if (result.is_floating_point() && result.requires_grad())
      loss = loss + (result * cos(arange(result.numel()).to(kFloat32)).view(result.sizes())).sum();
  return loss;
}

// Some gradients are sums that cancel to nothing but rounding (those of the biases of keys in attention): they are measured by a
// thousandth of the largest.
void check_gradients(const ExportedModel& model, const SafeTensorsFile& recorded, Json& out) {
  constexpr double kCancelled = 1e-3;
  double largest = 0, worst = 0;
  for (auto& [name, parameter] : model->named_parameters())
    if (recorded.contains("grad." + name)) largest = std::max(largest, norm_of(recorded.tensor("grad." + name)));
  for (auto& [name, parameter] : model->named_parameters()) {
    if (!recorded.contains("grad." + name)) continue;
    check(parameter.grad().defined(), "'{}' has no gradient", name);
    const double off = distance(parameter.grad(), recorded.tensor("grad." + name), kCancelled * largest);
    if (off <= worst) continue;
    worst = off;
    out["worst"] = name;
  }
  out["off"] = worst;
}

}  // namespace

int main(int argc, char** argv) {
  const bool gradients = argc == 4 && std::string(argv[3]) == "--gradients";
  if (argc != 3 && !gradients) {
    std::fprintf(stderr, "usage: zoo MODEL.pt2|MODEL.onnx RECORDED.safetensors [--gradients]\n");
    return 2;
  }
  SafeTensorsFile recorded(argv[2]);
  const TensorList wanted = numbered(recorded, "output.");
  ExportedModel model = nullptr;
  if (!stage("imported", [&](Json&) { model = load_program(argv[1]); })) return 1;
  // A program may write to its buffers and its inputs: each stage has its own.
  auto fresh = [&] {
    model = load_program(argv[1]);
    return numbered(recorded, "input.");
  };
  stage("eager", [&](Json& out) {
    NoGradGuard no_grad;
    out["off"] = worst_of(model->forward(numbered(recorded, "input.")), wanted);
  });
  const bool is_whole = stage("compiled", [&](Json& out) {
    TensorList inputs = fresh();
    NoGradGuard no_grad;
    out["off"] = worst_of(compile(model, {.fullgraph = true})(inputs), wanted);
  });
  if (!is_whole)
    stage("in segments", [&](Json& out) {
      TensorList inputs = fresh();
      NoGradGuard no_grad;
      out["off"] = worst_of(compile(model)(inputs), wanted);
    });
  if (gradients)
    stage("gradients", [&](Json& out) {
      TensorList inputs = fresh();
      loss_of(compile(model)(inputs)).backward();
      check_gradients(model, recorded, out);
    });
  return 0;
}
