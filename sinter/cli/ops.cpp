// `sinter ops`: the one list of ops, read out.
#include <algorithm>
#include <iostream>

#include <nlohmann/json.hpp>

#include "sinter/base/error.h"
#include "sinter/base/table.h"
#include "sinter/cli/commands.h"
#include "sinter/cli/op_lookup.h"

namespace sinter::cli {

namespace {

const char* text_of(OpKind kind) {
  switch (kind) {
    case OpKind::kInput:
      return "input";
    case OpKind::kScalar:
      return "number";
    case OpKind::kPointwise:
      return "pointwise";
    case OpKind::kView:
      return "view";
    case OpKind::kLoop:
      return "loop";
    case OpKind::kReduce:
      return "reduce";
    case OpKind::kScatter:
      return "scatter";
    case OpKind::kScan:
      return "scan";
    case OpKind::kOpaque:
      return "opaque";
    case OpKind::kComposite:
      return "composite";
  }
  return "";
}

const char* text_of(Typing typing) {
  switch (typing) {
    case Typing::kPromote:
      return "computes in and gives the promoted type";
    case Typing::kFloat:
      return "computes in and gives the promoted type, f32 for integers";
    case Typing::kCompare:
      return "computes in the promoted type, gives bool";
    case Typing::kBool:
      return "takes truth values, gives bool";
    case Typing::kInteger:
      return "integers and bool only, gives the promoted type";
    case Typing::kSelect:
      return "a condition first; gives the promoted type of the rest";
    case Typing::kAttr:
      return "gives the type it is told";
    case Typing::kRandom:
      return "draws bits, gives a floating type";
  }
  return "";
}

std::string arity_of(const Op& op) { return op.inputs < 0 ? "any" : std::to_string(op.inputs); }

bool differentiable(const Op& op) { return op.grad || op.kind == OpKind::kComposite; }

std::string gradient_of(const Op& op) {
  if (op.kind == OpKind::kComposite) return "yes, through its decomposition";
  return op.grad ? "yes" : op.no_grad_reason.empty() ? "no" : "no: " + std::string(op.no_grad_reason);
}

nlohmann::json json_of(const Op& op) {
  nlohmann::json out = {{"name", op.name},
                        {"kind", text_of(op.kind)},
                        {"operands", op.inputs},
                        {"random", op.random},
                        {"differentiable", differentiable(op)},
                        {"tolerance", {{"ulp", op.tolerance.ulp}, {"absolute", op.tolerance.absolute}}}};
  if (!differentiable(op)) out["no_gradient_because"] = op.no_grad_reason;
  if (op.pointwise) out["body"] = {{"parameters", op.pointwise->params}, {"text", op.pointwise->text}};
  nlohmann::json samples = nlohmann::json::array();
  for (auto& sample : op.samples) samples.push_back(sample);
  out["samples"] = samples;
  return out;
}

std::vector<const Op*> sorted_ops() {
  std::vector<const Op*> ops;
  for (auto* op : all_ops())
    if (op->kind != OpKind::kInput && op->kind != OpKind::kScalar) ops.push_back(op);
  std::sort(ops.begin(), ops.end(), [](auto* a, auto* b) { return a->name < b->name; });
  return ops;
}

// How many letters must change; enough to find a slip of the finger.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = above;
    }
  }
  return row[b.size()];
}

}  // namespace

const Op& op_named(const std::string& name) {
  auto ops = sorted_ops();
  const Op* nearest = nullptr;
  size_t distance = 3;
  for (auto* op : ops) {
    if (op->name == name) return *op;
    size_t d = edit_distance(name, op->name);
    if (d < distance) nearest = op, distance = d;
  }
  check(nearest, "no op is called '{}'; `sinter ops` lists them", name);
  throw_error(format("no op is called '{}'; did you mean '{}'?", name, nearest->name));
}

void list_ops(bool json) {
  auto ops = sorted_ops();
  if (json) {
    nlohmann::json all = nlohmann::json::array();
    for (auto* op : ops) all.push_back(json_of(*op));
    std::cout << all.dump(2) << "\n";
    return;
  }
  Table table({"op", "kind", "operands", "gradient"});
  size_t with_gradient = 0;
  for (auto* op : ops) {
    table.row(op->name, text_of(op->kind), arity_of(*op), gradient_of(*op));
    with_gradient += differentiable(*op);
  }
  std::cout << table.text() << format("\n{} ops, {} with a gradient\n", ops.size(), with_gradient);
}

void describe_op(const std::string& name, bool json) {
  const Op& op = op_named(name);
  if (json) {
    std::cout << json_of(op).dump(2) << "\n";
    return;
  }
  auto line = [](std::string_view label, std::string_view text) {
    std::cout << label << std::string(12 - label.size(), ' ') << text << "\n";
  };
  line("op", op.name);
  line("kind", text_of(op.kind));
  line("operands", arity_of(op));
  line("gradient", gradient_of(op));
  line("tolerance", format("{} ulp{}", op.tolerance.ulp,
                           op.tolerance.absolute ? format(" + {}", op.tolerance.absolute) : std::string()));
  if (op.random) line("random", "never merged with an equal one, never dropped");
  if (op.pointwise) {
    line("types", text_of(op.pointwise->typing));
    line("body", format("({}) -> {}", op.pointwise->params, op.pointwise->text));
  }
  for (size_t i = 0; i < op.samples.size(); ++i) line(i ? "" : "samples", op.samples[i]);
  std::cout << "\n`sinter show " << op.name << "` prints its way to a kernel\n";
}

}  // namespace sinter::cli
