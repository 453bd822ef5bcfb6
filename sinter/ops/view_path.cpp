#include "sinter/ops/view_path.h"

#include "sinter/graph/text_scan.h"
#include "sinter/ops/define.h"

namespace sinter {

ViewPath ViewPath::then(const Op& op, const Attrs& attrs) const {
  SINTER_INTERNAL_ASSERT(op.kind == OpKind::kView, "{} is no view", op.name);
  ViewPath out = *this;
  // A look at pairs as complex numbers, and back at their pairs, is where it was.
  if (op.sees_complex && !steps.empty() && steps.back().op->sees_complex) {
    out.steps.pop_back();
    return out;
  }
  out.steps.push_back({&op, attrs});
  return out;
}

std::string field_text(const ViewPath& path) {
  std::string out;
  for (auto& step : path.steps) {
    out += out.empty() ? "" : ", ";
    out += step.op->name;
    if (std::string attrs = step.attrs.text(); !attrs.empty()) out += "{" + attrs + "}";
  }
  return "[" + out + "]";
}

namespace {

ViewStep parse_step(std::string_view text) {
  size_t open = std::min(text.find('{'), text.size());
  std::string_view name = trim(text.substr(0, open)), fields;
  if (open < text.size()) {
    check(closing_bracket(text, open) == text.size() - 1, "'{}' is not a view: write one like 'slice{start=1}'", text);
    fields = text.substr(open + 1, text.size() - open - 2);
  }
  const Op* op = find_op(name);
  check(op && op->kind == OpKind::kView, "no view is called '{}'", name);
  return {op, op->parse(split_fields(fields))};
}

}  // namespace

void parse_field(std::string_view text, ViewPath& path) {
  check(text.size() >= 2 && text[0] == '[' && closing_bracket(text, 0) == text.size() - 1,
        "'{}' is not a path: write one like '[slice{start=1}, select{index=2}]'", text);
  path.steps.clear();
  for (auto item : split_list(text.substr(1, text.size() - 2))) path.steps.push_back(parse_step(item));
}

void map_field(const std::function<Dim(const Dim&)>& map, ViewPath& path) {
  for (auto& step : path.steps) step.attrs = step.attrs.map_dims(map);
}

Tensor apply(const ViewPath& path, const Tensor& base) {
  Tensor out = base;
  for (auto& step : path.steps) {
    TensorArg operand(out);
    out = call_op(*step.op, {&operand, 1}, step.attrs, operand.where());
  }
  return out;
}

Value apply(const ViewPath& path, Graph& graph, Value base, const std::string& where) {
  for (auto& step : path.steps) base = graph.add(*step.op, {base}, step.attrs, where).result();
  return base;
}

}  // namespace sinter
