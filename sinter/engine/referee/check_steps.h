#pragma once
// Every step of a call beside the referee's: from the operands that the step really had, so that errors do not add up and
// the kernel that is wrong is the one that is named.
#include <memory>

#include "sinter/engine/executable/step_observer.h"
#include "sinter/engine/referee/bounds.h"
#include "sinter/engine/referee/compare.h"

namespace sinter::referee {

struct WrongStep {
  std::string name;  // of the kernel: "elu_add"
  std::string ops;   // "elu, add"
  std::string by;    // "loops", "gemm", …: as in a fusion report; "eager" for an op of a program without a plan
  std::string where;
  std::string program;
  Mismatch mismatch;
  // What it computes and, where that was asked for, on what: tensors of the host, or numbers.
  std::shared_ptr<const Graph> graph;
  std::vector<TensorArg> operands;

  std::string text() const;
};

class CheckSteps final : public StepObserver {
 public:
  explicit CheckSteps(std::string program, bool keeps_operands = false)
      : program_(std::move(program)), keeps_operands_(keeps_operands) {}

  void before(const ObservedStep& step) override;
  void after(const ObservedStep& step) override;

  const std::vector<WrongStep>& wrong() const { return wrong_; }
  int checked() const { return checked_; }
  // Why steps could not be checked, one line each.
  const std::string& left_out() const { return left_out_; }

 private:
  void check_results(const ObservedStep& step);

  const std::string program_;
  const bool keeps_operands_;
  std::vector<Tensor> saved_;  // by operand: as it was, where the step overwrites it
  std::vector<WrongStep> wrong_;
  int checked_ = 0;
  std::string left_out_;
};

}  // namespace sinter::referee
