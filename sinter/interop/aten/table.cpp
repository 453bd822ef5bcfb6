#include "sinter/interop/aten/table.h"

#include <deque>
#include <unordered_map>

#include "sinter/base/error.h"
#include "sinter/ops/in_place.h"

namespace sinter::interop {

namespace {

constexpr std::span<const Function> (*kLists[])() = {
    pointwise_functions, comparison_functions, activation_functions,  creation_functions,  random_functions,
    view_functions,      copy_functions,       indexing_functions,    reduction_functions, sorting_functions,
    matrix_functions,    linalg_functions,     convolution_functions, pool_functions,      normalization_functions,
    loss_functions,      recurrent_functions,  statistics_functions,
    special_functions,   complex_functions,    gradient_functions,    symbol_functions};

struct Line {
  const Function* function;
  Schema schema;
};

const std::unordered_map<std::string, Line>& lines() {
  static const auto table = [] {
    std::unordered_map<std::string, Line> out;
    for (auto list : kLists)
      for (auto& function : list()) {
        Schema schema = parse_schema(function.schema());
        SINTER_INTERNAL_ASSERT(schema.parameters.size() == function.arity());
        std::string name = schema.name;
        const bool fresh = out.emplace(name, Line{&function, std::move(schema)}).second;
        SINTER_INTERNAL_ASSERT(fresh);
      }
    return out;
  }();
  return table;
}

// "aten.add_.Tensor" is the form in place of "aten.add.Tensor".
std::string without_underscore(std::string_view name) {
  size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || dot < 2 || name[dot - 1] != '_' || name[dot - 2] == '_') return {};
  return std::string(name.substr(0, dot - 1)) + std::string(name.substr(dot));
}

// "aten.view_copy.default" is a copy of what "aten.view.default" looks at.
std::string without_copy(std::string_view name) {
  const size_t at = name.rfind("_copy.");
  if (at == std::string_view::npos) return {};
  return std::string(name.substr(0, at)) + std::string(name.substr(at + 5));
}
bool gives_views(const Function& function) { return function.schema().find("-> Tensor(a)") != std::string_view::npos; }

Value copied(const Value& value) {
  if (value.is<Tensor>()) return {value.as<Tensor>().clone()};
  ValueList out;
  for (auto& entry : value.as<ValueList>()) out.push_back(copied(entry));
  return {out};
}

}  // namespace

std::optional<Callee> find_callee(std::string_view name) {
  auto& table = lines();
  if (auto found = table.find(std::string(name)); found != table.end())
    return Callee{found->second.function, &found->second.schema};
  if (auto found = table.find(without_underscore(name)); found != table.end())
    return Callee{found->second.function, &found->second.schema, /*in_place=*/true};
  if (auto found = table.find(without_copy(name)); found != table.end() && gives_views(*found->second.function))
    return Callee{.function = found->second.function, .schema = &found->second.schema, .copies = true};
  return std::nullopt;
}

ValueList Callee::operator()(std::span<const Value> arguments) const {
  if (copies) {
    ValueList out = (*function)(arguments);
    for (auto& value : out) value = copied(value);
    return out;
  }
  if (!in_place) return (*function)(arguments);
  Tensor out = value_to<Tensor>(arguments[0]);
  // "aten.add.Tensor": in_place() knows the op by the name of the method.
  const std::string method = schema->name.substr(5, schema->name.rfind('.') - 5) + "_";
  sinter::in_place(out, method.c_str(), Where::current(),
                   [&](const TensorArg&) { return value_to<Tensor>((*function)(arguments).at(0)); });
  return {Value{out}};
}

std::vector<const Function*> all_functions() {
  std::vector<const Function*> out;
  for (auto list : kLists)
    for (auto& function : list()) out.push_back(&function);
  return out;
}

}  // namespace sinter::interop
