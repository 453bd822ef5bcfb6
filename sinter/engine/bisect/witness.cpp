#include "sinter/engine/bisect/witness.h"

#include <algorithm>
#include <utility>

#include "sinter/autograd/autograd.h"
#include "sinter/engine/eager/eager.h"
#include "sinter/engine/executable/function.h"
#include "sinter/graph/rewrite.h"

namespace sinter::bisection {

namespace {
thread_local Witness* current_witness = nullptr;
}

class Watched final : public Executable {
 public:
  Watched(CapturedProgram captured, std::shared_ptr<Executable> eager) : captured_(std::move(captured)), eager_(std::move(eager)) {}

  void run(std::span<const TensorArg> inputs, std::span<const int64_t> sizes, std::span<Tensor> outputs) override {
    if (auto* witness = Witness::current(); witness && !std::exchange(seen_, true)) {
      NoGradGuard no_history;
      WitnessedCall call{captured_, {}, {sizes.begin(), sizes.end()}};
      for (auto& input : inputs) call.inputs.push_back(is_changed(input, inputs) ? TensorArg(input.tensor().clone()) : input);
      witness->calls_.push_back(std::move(call));
    }
    eager_->run(inputs, sizes, outputs);
  }
  std::string text() const override { return eager_->text(); }

 private:
  bool is_changed(const TensorArg& input, std::span<const TensorArg> inputs) const {
    return !input.is_scalar() && std::any_of(captured_.writes.begin(), captured_.writes.end(), [&](int i) {
      return i >= 0 && eager::share_memory(inputs[size_t(i)].tensor().impl(), input.tensor().impl());
    });
  }

  const CapturedProgram captured_;
  const std::shared_ptr<Executable> eager_;
  bool seen_ = false;
};

Witness::Witness() : previous_(std::exchange(current_witness, this)) {}
Witness::~Witness() { current_witness = previous_; }
Witness* Witness::current() { return current_witness; }

std::shared_ptr<Executable> Witness::watch(Program program) {
  CapturedProgram captured{program.name, program.graph.text(true), program.symbols, program.writes};
  Program plain{.graph = drop_dead_nodes(program.graph), .symbols = program.symbols, .writes = program.writes, .name = program.name};
  return std::make_shared<Watched>(std::move(captured), make_eager(std::move(plain)));
}

}  // namespace sinter::bisection
