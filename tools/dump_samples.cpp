// Writes the calls that PyTorch is to record, as JSON, to the standard output: tools/record_ops.py reads them.
#include <iostream>

#include <nlohmann/json.hpp>

#include "sinter/base/error.h"
#include "tests/support/recorded.h"

namespace sinter {
namespace {

nlohmann::json json_of(const Scalar& number) {
  switch (number.dtype()) {
    case DType::kBool: return number.to_bool();
    case DType::kInt64: return number.to_int();
    default: return number.to_double();
  }
}

nlohmann::json json_of(const testing::SampleOperand& operand) {
  if (operand.scalar) return {{"number", json_of(operand.number)}};
  const Array& a = operand.values;
  nlohmann::json shape = nlohmann::json::array();
  for (int64_t size : a.sizes) shape.push_back(size);
  nlohmann::json values = a.floating() ? nlohmann::json(a.f) : nlohmann::json(a.i);
  return {{"dtype", format("{}", a.dtype)}, {"shape", shape}, {"values", values}};
}

nlohmann::json json_of(const testing::RecordedCase& c) {
  nlohmann::json operands = nlohmann::json::array(), attributes = nlohmann::json::object();
  for (auto& operand : c.sample.operands) operands.push_back(json_of(operand));
  for (auto& [name, text] : c.sample.fields) attributes[name] = text;
  return {{"name", c.name}, {"text", c.sample.text}, {"operands", operands}, {"attributes", attributes}};
}

void dump() {
  nlohmann::json ops = nlohmann::json::array();
  for (auto* op : all_ops()) {
    auto cases = testing::recorded_cases(*op);
    nlohmann::json list = nlohmann::json::array();
    for (auto& c : cases) list.push_back(json_of(c));
    if (!cases.empty()) ops.push_back({{"op", op->name}, {"digest", testing::digest_of(cases)}, {"cases", list}});
  }
  std::cout << ops.dump() << "\n";
}

}  // namespace
}  // namespace sinter

int main() {
  try {
    sinter::dump();
    return 0;
  } catch (const std::exception& e) {
    std::cerr << "dump_samples: " << e.what() << "\n";
    return 1;
  }
}
