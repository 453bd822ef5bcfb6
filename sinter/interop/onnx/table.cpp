#include "sinter/interop/onnx/table.h"

#include <charconv>
#include <map>
#include <unordered_map>

#include "sinter/base/error.h"

namespace sinter::interop::onnx {

namespace {

constexpr std::span<const Function> (*kLists[])() = {
    elementwise_operators, activation_operators, size_operators,        shape_operators,         indexing_operators,
    creation_operators,    reduction_operators,  matrix_operators,      convolution_operators,   pool_operators,
    attention_operators,   recurrent_operators,  quantization_operators, normalization_operators, loss_operators,
    image_operators,       signal_operators};

struct Line {
  const Function* function;
  Schema schema;
};

struct Table {
  std::unordered_map<std::string, Line> lines;                                // "onnx.Softmax.13"
  std::unordered_map<std::string, std::map<int64_t, const Line*>> versions;  // "Softmax": 13

  Table() {
    for (auto list : kLists)
      for (auto& function : list()) {
        Schema schema = parse_schema(function.schema());
        SINTER_INTERNAL_ASSERT(schema.parameters.size() == function.arity());
        const std::string name = schema.name;
        const size_t first = name.find('.') + 1, last = name.rfind('.');
        int64_t since = 0;
        std::from_chars(name.data() + last + 1, name.data() + name.size(), since);
        auto [line, fresh] = lines.emplace(name, Line{&function, std::move(schema)});
        SINTER_INTERNAL_ASSERT(fresh && since > 0 && last > first);
        versions[name.substr(first, last - first)][since] = &line->second;
      }
  }
};

const Table& table() {
  static const Table kTable;
  return kTable;
}

}  // namespace

const Schema* find_schema(std::string_view domain, std::string_view op, int64_t version) {
  if (!domain.empty()) return nullptr;
  auto found = table().versions.find(std::string(op));
  if (found == table().versions.end()) return nullptr;
  auto after = found->second.upper_bound(version);
  return after == found->second.begin() ? nullptr : &std::prev(after)->second->schema;
}

std::optional<Callee> find_operator(std::string_view name) {
  auto found = table().lines.find(std::string(name));
  if (found == table().lines.end()) return std::nullopt;
  return Callee{found->second.function, &found->second.schema};
}

std::vector<const Function*> all_operators() {
  std::vector<const Function*> out;
  for (auto list : kLists)
    for (auto& function : list()) out.push_back(&function);
  return out;
}

}  // namespace sinter::interop::onnx
