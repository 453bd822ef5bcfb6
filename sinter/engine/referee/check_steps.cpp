#include "sinter/engine/referee/check_steps.h"

#include "sinter/base/error.h"
#include "sinter/engine/eager/eager.h"
#include "sinter/engine/executable/plan.h"
#include "sinter/engine/referee/spoil.h"
#include "sinter/engine/report.h"
#include "sinter/ops/fused.h"

namespace sinter::referee {

namespace {

// Memory that nobody has written has any value.
bool leaves_open(const Op& op) { return op.name == "empty"; }

Tensor host_copy(const Tensor& tensor) { return tensor.device().is_cpu() ? tensor.clone() : tensor.cpu(); }

// The step as a graph of its own; its body where it is a kernel of several ops.
Graph graph_of_step(const ObservedStep& step) {
  auto types = eager::operand_types(step.inputs);
  return graph_of(step.op, types, step.attrs, step.where);
}

std::string shapes_of(const ObservedStep& step) {
  std::string out;
  for (auto& arg : step.inputs) {
    out += out.empty() ? "" : ", ";
    out += arg.is_scalar() ? format("{}", arg.scalar()) : format("{}{}", arg.tensor().dtype(), arg.tensor().impl().sizes);
  }
  return out;
}

}  // namespace

std::string WrongStep::text() const {
  std::string out = format("the kernel '{}' of {} is wrong\n  {}\n  it computes {} ({})", name, program, mismatch.text(), ops, by);
  if (!where.empty()) out += format("\n  at {}", where);
  return out;
}

void CheckSteps::before(const ObservedStep& step) {
  saved_.assign(step.inputs.size(), Tensor());
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    if (step.inputs[i].is_scalar()) continue;
    auto& operand = step.inputs[i].tensor();
    for (auto& result : step.results)
      if (!saved_[i].defined() && result.impl().buffer && eager::share_memory(operand.impl(), result.impl()))
        saved_[i] = operand.clone();
  }
  spoil_results(step);
}

void CheckSteps::after(const ObservedStep& step) {
  try {
    if (!leaves_open(step.op)) check_results(step);
  } catch (const OutOfMemoryError&) {
    throw;
  } catch (const Error& error) {
    left_out_ += format("{}: {}\n", step.op.name, error.message());
  }
  saved_.clear();
}

void CheckSteps::check_results(const ObservedStep& step) {
  auto types = eager::operand_types(step.inputs);
  OpCall call{step.op, types, step.attrs};
  std::vector<Bounded> operands;
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    bool saved = i < saved_.size() && saved_[i].defined();
    operands.push_back({step.inputs[i].is_scalar() ? Known(to_array(step.inputs[i].scalar()))
                                                   : Known(saved ? saved_[i] : step.inputs[i].tensor())});
  }
  std::vector<const Bounded*> pointers;
  for (auto& operand : operands) pointers.push_back(&operand);
  auto want = evaluate_bounded(call, pointers);
  ++checked_;
  for (size_t r = 0; r < step.results.size(); ++r) {
    auto mismatch = compare(int(r), step.results[r], want[r].value.array(), want[r].error);
    if (!mismatch) continue;
    WrongStep wrong;
    wrong.program = program_;
    if (step.plan) {
      KernelReport report = report_of(*step.plan, *step.step);
      wrong.name = report.name;
      for (auto& op : report.ops) wrong.ops += (wrong.ops.empty() ? "" : ", ") + op;
      wrong.by = report.by;
      wrong.where = report.where;
    } else {
      wrong.name = wrong.ops = step.op.name;
      wrong.by = "eager";
    }
    if (wrong.where.empty()) wrong.where = step.where;
    wrong.ops += format(" of {}", shapes_of(step));
    wrong.mismatch = *mismatch;
    if (keeps_operands_) {
      wrong.graph = std::make_shared<const Graph>(graph_of_step(step));
      for (size_t i = 0; i < step.inputs.size(); ++i) {
        auto& tensor = operands[i].value.tensor();
        wrong.operands.push_back(step.inputs[i].is_scalar() ? step.inputs[i] : TensorArg(host_copy(tensor)));
      }
    }
    wrong_.push_back(std::move(wrong));
    return;
  }
}

}  // namespace sinter::referee
