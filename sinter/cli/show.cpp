// `sinter show`: one op through every stage, each printed as it prints itself.
#include <algorithm>
#include <iostream>

#include "sinter/base/error.h"
#include "sinter/cli/commands.h"
#include "sinter/cli/op_lookup.h"
#include "sinter/cli/stages.h"
#include "sinter/codegen/cuda/prelude.h"
#include "sinter/codegen/gpu/emit.h"
#include "sinter/codegen/hip/prelude.h"
#include "sinter/engine/kernel.h"
#include "sinter/graph/trace.h"
#include "sinter/loops/lower.h"
#include "sinter/ops/known_ops.h"
#include "sinter/ops/sample.h"
#include "sinter/runtime/cpu/cpu_features.h"

namespace sinter::cli {

namespace {

// Operands that fit a pointwise op: vectors, and numbers where it takes only those.
std::string pointwise_operands(const PointwiseBody& body) {
  if (body.typing == Typing::kRandom) return "i64[1000], 1, 2";
  std::string text;
  for (int i = 0; i < body.arity; ++i) {
    bool mask = body.typing == Typing::kSelect && i == 0;
    text += (i ? ", " : "") + std::string(i >= body.tensors ? "0.5" : mask ? "bool[1000]" : "x[1000]");
  }
  return text + (body.typing == Typing::kAttr ? " | dtype=bf16" : "");
}

// One application of an op as a graph under construction, with symbols for the sizes.
class Application {
 public:
  explicit Application(const ShowOptions& options) : op_(op_named(options.op)), options_(options) {
    std::string text = options.operands;
    if (text.empty() && op_.pointwise) text = pointwise_operands(*op_.pointwise);
    if (text.empty() && !op_.samples.empty()) text = op_.samples[0];
    // The op table, which samples are for, has no complex numbers.
    if (text.empty() && op_.sees_complex) text = &op_ == &known_ops().view_as_real ? "c64[6]" : "f32[6, 2]";
    SampleText sample = parse_sample(text);
    for (auto& operand : sample.operands) add_operand(operand);
    attrs_ = op_.parse(sample.attributes).map_dims([&](const Dim& d) { return symbol_of(d); });
    record();
  }

  const Op& op() const { return op_; }
  const Graph& graph() { return tracer_.graph(); }

  LoopNest loops() {
    TracerScope scope(&tracer_);
    std::vector<Layout> layouts;
    for (auto& type : types_)
      layouts.push_back(type.weak ? Layout{.scalar = true, .strides = {}} : contiguous_layout(type.shape));
    Type result = tracer_.graph().outputs()[0].type();
    layouts.push_back(contiguous_layout(result.shape));
    return lower(OpCall{op_, types_, attrs_}, result, layouts);
  }

 private:
  void add_operand(const SampleText::Operand& operand) {
    if (operand.scalar) {
      types_.push_back({operand.number.dtype(), {}, {}, true});
      args_.emplace_back(operand.number);
      return;
    }
    Type type{operand.dtype.value_or(options_.dtype), {}, {}, false};
    for (int64_t size : operand.sizes) type.shape.push_back(symbol_of(size));
    types_.push_back(type);
    args_.emplace_back(tracer_.add_input(type));
  }

  // As in an eager call: a symbol for each distinct size above 1.
  Dim symbol_of(const Dim& size) {
    if (options_.fixed_sizes || !size.is_number() || size.number() <= 1) return size;
    auto it = std::find(sizes_.begin(), sizes_.end(), size.number());
    std::string name = size_name(it - sizes_.begin());
    if (it == sizes_.end()) sizes_.push_back(size.number());
    tracer_.set_hint(name, size.number());
    return Dim::symbol(name);
  }

  void record() {
    TracerScope scope(&tracer_);
    TensorList results =
        op_.kind == OpKind::kComposite ? op_.decompose(args_, attrs_) : tracer_.record(op_, args_, attrs_);
    std::vector<Value> outputs;
    for (auto& tensor : results) outputs.push_back(tracer_.value_of(tensor));
    tracer_.graph().set_outputs(outputs);
  }

  const Op& op_;
  const ShowOptions& options_;
  GraphTracer tracer_;
  std::vector<int64_t> sizes_;
  std::vector<Type> types_;
  std::vector<TensorArg> args_;
  Attrs attrs_;
};

// Why there is nothing after the graph; empty when there is.
std::string no_loops_because(const Op& op) {
  if (op.kind == OpKind::kComposite) return "it is a body of other ops, shown above; `sinter show` prints each of them";
  if (op.sees_complex) return "it shows the same memory as numbers of another kind";
  if (op.kind == OpKind::kOpaque) return "it has a hand-written kernel per device";
  return "";
}

KernelStages gpu_stages(const LoopNest& nest, const std::string& name, const Target& target) {
  const Schedule plan = schedule(nest, GpuFacts{.target = target});
  return {name, nest.text(), to_string(plan), codegen::emit_gpu(nest, plan, name).text};
}

}  // namespace

void show_op(const ShowOptions& options) {
  Application application(options);
  print_stage(options.stage, "graph", application.graph().text());
  if (options.stage == "graph") return;
  if (auto reason = no_loops_because(application.op()); !reason.empty()) {
    check(options.stage == "all", "{} has no loops: {}", options.op, reason);
    std::cout << "--- no loops: " << reason << "\n";
    return;
  }
  const std::string name = "k_" + options.op;
  const Target amd = codegen::hip_target("gfx942");
  LoopNest nest = application.loops();
  KernelStages kernel = options.device == "cuda"  ? gpu_stages(nest, name, codegen::kCudaTarget)
                        : options.device == "hip" ? gpu_stages(nest, name, amd)
                                                  : stages_of(nest, write_kernel(nest, name));
  print_stages(options.stage, kernel);
  if (options.stage != "source") return;
  std::cout << (options.device == "cuda"  ? codegen::cuda_prelude()
                : options.device == "hip" ? codegen::hip_prelude(amd)
                                          : codegen::cpu_prelude(runtime::host_target().vector_bytes / 4))
            << kernel.code;
}

}  // namespace sinter::cli
