#include "sinter/engine/executable/tune.h"

#include <algorithm>

#include "sinter/autograd/autograd.h"
#include "sinter/base/log.h"
#include "sinter/base/progress.h"
#include "sinter/engine/autotune.h"
#include "sinter/engine/eager/eager.h"
#include "sinter/engine/executable/tune_operands.h"
#include "sinter/engine/ways.h"
#include "sinter/tensor/tracer.h"

namespace sinter {

namespace {

class Tuner {
 public:
  Tuner(Plan& plan, double seconds) : plan_(plan), seconds_(seconds) {}

  void tune(Step& step) {
    if (step.kind == Step::Kind::kFused && step.fused && step.fused->product)
      tune_product(step);
    else if (step.kind == Step::Kind::kFused && step.fused && step.fused->convolution)
      tune_convolution(step);
    else if (step.kind == Step::Kind::kKernel && step.op->kind != OpKind::kView)
      tune_op(step);
  }

 private:
  const TensorImpl* geometry(const Operand& o) const {
    return o.slot < 0 ? nullptr : &plan_.slots[size_t(o.slot)].geometry.impl();
  }

  // Everything that the time depends on, apart from the machine.
  std::string key_of(const Step& step) const {
    std::string key = step.fused ? step.fused->name : step.attrs.text();
    if (step.fused && step.fused->convolution) key += " " + Attrs(step.fused->convolution->attrs).text();
    auto add = [&](const TensorImpl& t) {
      key += (key.empty() ? "" : " ") + format("{}{}", t.dtype, t.sizes);
      if (!t.contiguous) key += format("*{}", t.strides);
    };
    for (auto& o : step.inputs)
      if (auto* t = geometry(o)) add(*t);
    key += " ->";
    for (int slot : step.results) add(plan_.slots[size_t(slot)].geometry.impl());
    return key;
  }

  void tune_product(Step& step) {
    auto& product = *step.fused->product;
    if (product.parts.size() != 1) return;  // the library has no joint products
    auto& part = product.parts[0];
    bool epilogue = product.follows[0].function != nullptr;
    auto ways = product_ways({product.m, part.n, product.k, product.batch, product.a, part.b, part.c}, epilogue);
    std::vector<Variant> variants;
    for (auto& way : ways) {
      auto kernel = std::make_shared<FusedKernel>(*step.fused);
      kernel->product->way = way;
      variants.push_back({way->name, std::move(kernel)});
    }
    choose(step, "product", variants);
  }

  void tune_convolution(Step& step) {
    auto& c = *step.fused->convolution;
    // The library rounds before anything can follow.
    if (c.follow.function && c.out_type != runtime::GemmType::f32) return;
    int result = step.results[size_t(c.out_slot) - step.inputs.size()];
    auto ways = convolution_ways(c.attrs, *geometry(step.inputs[size_t(c.x_slot)]),
                                 *geometry(step.inputs[size_t(c.weight_slot)]),
                                 plan_.slots[size_t(result)].geometry.impl());
    std::vector<Variant> variants;
    for (auto& way : ways) {
      auto kernel = std::make_shared<FusedKernel>(*step.fused);
      kernel->convolution->way = way.onednn;
      variants.push_back({way.name, std::move(kernel)});
    }
    choose(step, "convolution", variants);
  }

  struct Variant {
    std::string name;
    std::shared_ptr<const FusedKernel> kernel;
  };
  void choose(Step& step, std::string_view kind, const std::vector<Variant>& variants) {
    if (variants.size() < 2) return;
    auto operands = std::make_shared<TuneOperands>(plan_, step);
    std::vector<Candidate> candidates;
    for (auto& variant : variants)
      candidates.push_back({variant.name, [operands, kernel = variant.kernel] {
                              launch(*kernel, operands->next().slots);
                            }});
    size_t chosen = autotuner().choose(kind, key_of(step), candidates, seconds_);
    if (chosen == 0) return;
    step.fused = variants[chosen].kernel;
    step.way_name = variants[chosen].name;
  }

  void tune_op(Step& step) {
    std::vector<const TensorImpl*> inputs;
    for (auto& o : step.inputs) inputs.push_back(geometry(o));
    auto ways = op_ways(*step.op, step.attrs, inputs, plan_.slots[size_t(step.results[0])].geometry.impl());
    if (ways.size() < 2) return;
    auto operands = std::make_shared<TuneOperands>(plan_, step);
    std::vector<Candidate> candidates;
    for (auto& way : ways)
      candidates.push_back({way.name, [operands, run = way.run] {
                              auto& set = operands->next();
                              run(set.args, set.results[0]);
                            }});
    size_t chosen = autotuner().choose(step.op->name, key_of(step), candidates, seconds_);
    if (chosen == 0) return;
    step.way = ways[chosen].run;
    step.way_name = ways[chosen].name;
  }

  Plan& plan_;
  double seconds_;
};

}  // namespace

void tune(Plan& plan, double seconds) {
  NoGradGuard no_history;
  TracerScope no_tracer(nullptr);
  if (plan.device.is_cuda()) return tune_on_cuda(plan, seconds);
  std::string problem;
  if (log_enabled(LogTopic::kAutotune) && runtime::onednn_version(&problem).empty())
    log(LogTopic::kAutotune, "oneDNN is no candidate: {}", problem);
  Progress progress("autotune", int64_t(plan.steps.size()), " steps");
  Tuner tuner(plan, seconds);
  for (auto& step : plan.steps) {
    tuner.tune(step);
    progress.advance();
  }
}

}  // namespace sinter
