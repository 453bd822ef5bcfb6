#include "sinter/engine/executable/checks.h"

#include <set>

#include "sinter/base/error.h"

namespace sinter {

void check_program(const Program& program) {
  auto &inputs = program.graph.inputs(), &outputs = program.graph.outputs();
  check(program.writes.size() <= outputs.size(), "program {}: {} outputs, but it says of {} where they belong",
        program.name, outputs.size(), program.writes.size());
  std::set<int> written;
  for (size_t j = 0; j < outputs.size(); ++j) {
    int i = program.written_into(j);
    if (i < 0) continue;
    check(size_t(i) < inputs.size(), "program {}: output {} belongs into input {} of {}", program.name, j, i,
          inputs.size());
    const Type &from = outputs[j].type(), &to = inputs[size_t(i)].type();
    check(!to.weak && from.dtype == to.dtype && from.shape.same_as(to.shape),
          "program {}: output {} of type {} belongs into input {} of type {}", program.name, j, from, i, to);
    check(written.insert(i).second, "program {}: two outputs belong into input {}", program.name, i);
  }
}

void check_counts(const Program& program, std::span<const TensorArg> inputs, std::span<const int64_t> sizes,
                  std::span<Tensor> outputs) {
  auto& expected = program.graph.inputs();
  check(inputs.size() == expected.size(), "program {}: takes {} inputs, not {}", program.name, expected.size(),
        inputs.size());
  check(sizes.size() == program.symbols.size(), "program {}: takes {} sizes, not {}", program.name,
        program.symbols.size(), sizes.size());
  check(outputs.size() == program.graph.outputs().size(), "program {}: gives {} outputs, not {}", program.name,
        program.graph.outputs().size(), outputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    bool number = inputs[i].is_scalar(), fits = number == expected[i].type().weak;
    if (!number) fits = fits && inputs[i].tensor().defined() && !inputs[i].tensor().is_traced();
    check(fits, "program {}: input {} should be {}", program.name, i,
          expected[i].type().weak ? "a number" : "a tensor with memory");
  }
}

}  // namespace sinter
