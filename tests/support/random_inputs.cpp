#include "tests/support/random_inputs.h"

namespace sinter::testing {

std::vector<Array> random_inputs(const Graph& graph, std::map<std::string, int64_t>* told) {
  std::map<std::string, int64_t> sizes;
  auto size_of = [&](const std::string& symbol) {
    return Dim(sizes.try_emplace(symbol, int64_t(sizes.size()) + 3).first->second);
  };
  std::string text;
  for (auto& input : graph.inputs()) {
    IntList shape;
    for (auto& d : input.type().shape) shape.push_back(d.substitute(size_of).number());
    size_t bound = input.node->name.find('<');
    text += format("{}{}{}{}", text.empty() ? "" : ", ", input.type().dtype, shape,
                   bound == std::string::npos ? "" : input.node->name.substr(bound));
  }
  if (told) *told = sizes;
  // As operands of any op: a sample checks nothing by itself.
  std::vector<Array> out;
  for (auto& operand : sample_from(*find_op("clone"), text, kFloat32).operands) out.push_back(operand.values);
  return out;
}

}  // namespace sinter::testing
