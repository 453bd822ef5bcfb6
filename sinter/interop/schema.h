#pragma once
// Schemas of functions as PyTorch writes them: "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor". They give
// parameters their names and defaults, which exported programs leave out.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sinter/interop/value.h"

namespace sinter::interop {

struct Parameter {
  std::string type, name;         // the type without what it says of aliases: "Tensor?[]", "SymInt[2]"
  std::optional<Value> standard;  // the default
};

struct Schema {
  std::string name;  // "aten.add.Tensor", "aten.relu.default", "_operator.add"
  std::vector<Parameter> parameters;
};

// An Error when the text is no schema. Without "::" the namespace is aten, and the name gets its overload, or "default".
Schema parse_schema(std::string_view text);

}  // namespace sinter::interop
