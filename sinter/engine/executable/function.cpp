#include "sinter/engine/executable/function.h"

#include <algorithm>

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/engine/eager/eager.h"
#include "sinter/engine/executable/checks.h"
#include "sinter/engine/executable/step_observer.h"
#include "sinter/graph/interpreter.h"
#include "sinter/graph/run.h"
#include "sinter/ops/known_ops.h"
#include "sinter/tensor/tracer.h"

namespace sinter {

namespace {

// Memory that nobody else holds.
bool is_fresh(const Tensor& t) { return t.impl().use_count() == 1 && t.impl().buffer.use_count() == 1; }

void copy_into(const Tensor& from, const Tensor& to) {
  const Op& clone = known_ops().clone;
  TensorArg source[] = {TensorArg(from)};
  eager::run_pointwise(clone, source, {}, &to);
}

class FunctionExecutable final : public Executable {
 public:
  FunctionExecutable(std::shared_ptr<const Program> program, SizedGraphFunction function, std::string text)
      : program_(std::move(program)), function_(std::move(function)), text_(std::move(text)) {}

  void run(std::span<const TensorArg> inputs, std::span<const int64_t> sizes, std::span<Tensor> outputs) override {
    check_counts(*program_, inputs, sizes, outputs);
    NoGradGuard no_history;
    TracerScope no_tracer(nullptr);
    TensorList results = function_(inputs, sizes);
    check(results.size() == outputs.size(), "program {}: {} results where the graph has {} outputs", program_->name,
          results.size(), outputs.size());
    for (size_t j = 0; j < results.size(); ++j) check_type(j, results[j], inputs);
    separate(inputs, results);
    for (size_t j = 0; j < results.size(); ++j) {
      int i = program_->written_into(j);
      if (i < 0) {
        outputs[j] = std::move(results[j]);
        continue;
      }
      const Tensor& to = inputs[size_t(i)].tensor();
      if (!results[j].is_same(to)) copy_into(results[j], to);
      to.impl().buffer->version.fetch_add(1, std::memory_order_relaxed);
      outputs[j] = to;
    }
  }

  std::string text() const override { return text_ + program_->graph.text(); }

 private:
  void check_type(size_t j, const Tensor& result, std::span<const TensorArg> inputs) const {
    auto& type = program_->graph.outputs()[j].type();
    check(result.defined(), "program {}: result {} is undefined", program_->name, j);
    check(type.weak || (result.dtype() == type.dtype && result.dim() == type.rank()),
          "program {}: result {} is {}{}, the graph says {}", program_->name, j, result.dtype(), result.impl().sizes,
          type);
    if (int i = program_->written_into(j); i >= 0)
      check(result.impl().sizes == inputs[size_t(i)].tensor().impl().sizes,
            "program {}: result {} has shape {}, the input it belongs into {}", program_->name, j, result.impl().sizes,
            inputs[size_t(i)].tensor().impl().sizes);
  }

  // Before any input is written: results of their own where they are the caller's to keep, and where they lie in memory
  // that another result is written to.
  void separate(std::span<const TensorArg> inputs, TensorList& results) const {
    auto reads_written = [&](const Tensor& result, int own) {
      for (int i : program_->writes)
        if (i >= 0 && i != own && eager::share_memory(inputs[size_t(i)].tensor().impl(), result.impl())) return true;
      return false;
    };
    for (size_t j = 0; j < results.size(); ++j) {
      int i = program_->written_into(j);
      bool in_place = i >= 0 && results[j].is_same(inputs[size_t(i)].tensor());
      if (i < 0 ? !is_fresh(results[j]) : !in_place && reads_written(results[j], i)) results[j] = results[j].clone();
    }
  }

  std::shared_ptr<const Program> program_;
  SizedGraphFunction function_;
  std::string text_;
};

// The position of a symbol among the program's; an Error when it has none.
size_t place_of(const Program& program, const std::string& symbol) {
  auto it = std::find(program.symbols.begin(), program.symbols.end(), symbol);
  check(it != program.symbols.end(), "no input of the graph gives the symbolic size {} a value", symbol);
  return size_t(it - program.symbols.begin());
}

}  // namespace

std::shared_ptr<Executable> make_function(std::shared_ptr<const Program> program, SizedGraphFunction function,
                                          std::string text) {
  return std::make_shared<FunctionExecutable>(std::move(program), std::move(function), std::move(text));
}

std::shared_ptr<Executable> make_eager(Program given) {
  auto program = std::make_shared<const Program>(std::move(given));
  auto run = [program](std::span<const TensorArg> inputs, std::span<const int64_t> sizes) {
    auto size_of = [&](const std::string& symbol) { return Dim(sizes[place_of(*program, symbol)]); };
    NodeObserver told;
    if (auto* observer = StepObserver::current())
      told = [observer](const Node& node, std::span<const TensorArg> operands, const Attrs& attrs, std::span<const Tensor> results) {
        ObservedStep step{*node.op, attrs, node.where, operands, results};
        observer->after(step);
      };
    return run_graph(program->graph, inputs, size_of, told);
  };
  return make_function(program, run, "node by node, each as an eager op:\n");
}

std::shared_ptr<Executable> make_interpreted(Program given) {
  auto program = std::make_shared<const Program>(std::move(given));
  auto run = [program](std::span<const TensorArg> inputs, std::span<const int64_t> sizes) {
    std::vector<Array> arrays;
    for (auto& arg : inputs) arrays.push_back(arg.is_scalar() ? to_array(arg.scalar()) : to_array(arg.tensor()));
    std::map<std::string, int64_t> symbols;
    for (size_t s = 0; s < sizes.size(); ++s) symbols[program->symbols[s]] = sizes[s];
    TensorList results;
    for (auto& array : interpret(program->graph, arrays, symbols, true)) {
      // A number becomes a tensor as everywhere else: of the default floating type.
      bool number = program->graph.outputs()[results.size()].type().weak && array.floating();
      results.push_back(to_tensor(array, number ? kFloat32 : array.dtype));
    }
    return results;
  };
  return make_function(program, run, "interpreted in double precision, op by op:\n");
}

}  // namespace sinter
