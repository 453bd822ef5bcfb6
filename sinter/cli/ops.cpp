// `sinter ops`: the one list of ops, read out.
#include <algorithm>
#include <iostream>

#include <nlohmann/json.hpp>

#include "sinter/base/error.h"
#include "sinter/base/table.h"
#include "sinter/cli/commands.h"
#include "sinter/cli/functions.h"
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

std::string tolerance_of(const Op& op) {
  return format("{} ulp{}", op.tolerance.ulp, op.tolerance.absolute ? format(" + {}", op.tolerance.absolute) : std::string());
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

nlohmann::json json_of(const PublicFunction& f) {
  return {{"name", f.name},         {"header", f.header},         {"comment", comment_of(f)},
          {"signature", f.signature}, {"method", f.is_method}, {"in_place", f.in_place}};
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

// An Error that proposes what `name` may have been meant to be.
[[noreturn]] void refuse(const char* what, const std::string& name, const std::vector<std::string_view>& known) {
  std::string_view nearest;
  size_t distance = 3;
  for (auto other : known) {
    size_t d = edit_distance(name, other);
    if (d < distance) nearest = other, distance = d;
  }
  check(!nearest.empty(), "no {} is called '{}'; `sinter ops` lists them", what, name);
  throw_error(format("no {} is called '{}'; did you mean '{}'?", what, name, nearest));
}

const Op* listed_op(const std::string& name) {
  for (auto* op : sorted_ops())
    if (op->name == name) return op;
  return nullptr;
}

std::vector<std::string_view> op_names() {
  std::vector<std::string_view> names;
  for (auto* op : sorted_ops()) names.push_back(op->name);
  return names;
}

void print_facts(const Op& op) {
  auto line = [](std::string_view label, std::string_view text) {
    std::cout << label << std::string(12 - label.size(), ' ') << text << "\n";
  };
  line("op", op.name);
  line("kind", text_of(op.kind));
  line("operands", arity_of(op));
  line("gradient", gradient_of(op));
  line("tolerance", tolerance_of(op));
  if (op.random) line("random", "never merged with an equal one, never dropped");
  if (op.pointwise) {
    line("types", text_of(op.pointwise->typing));
    line("body", format("({}) -> {}", op.pointwise->params, op.pointwise->text));
  }
  for (size_t i = 0; i < op.samples.size(); ++i) line(i ? "" : "samples", op.samples[i]);
  std::cout << "\n`sinter show " << op.name << "` prints its way to a kernel\n";
}

std::string indented(std::string_view text, std::string_view indent) {
  std::string out(indent);
  for (char c : text) {
    out += c;
    if (c == '\n') out += indent;
  }
  return out;
}

// As the header has it; a comment that several share is printed once.
void print_declarations(const std::vector<const PublicFunction*>& functions) {
  std::string_view header, comment;
  for (auto* f : functions) {
    if (header != f->header) {
      header = f->header, comment = {};
      std::cout << "\n#include <" << header << ">\n";
    }
    if (comment != comment_of(*f)) {
      comment = comment_of(*f);
      std::cout << indented(comment, "  // ") << "\n";
    }
    const char* note = f->in_place ? "  // method, also in place" : f->is_method ? "  // method" : "";
    std::cout << indented(f->signature, "  ") << ";" << note << "\n";
  }
}

}  // namespace

const Op& op_named(const std::string& name) {
  if (auto* op = listed_op(name)) return *op;
  refuse("op", name, op_names());
}

std::string summary_of(const Op& op) {
  return format("{} op; gradient: {}; tolerance: {}", text_of(op.kind), gradient_of(op), tolerance_of(op));
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
  const Op* op = listed_op(name);
  auto functions = functions_named(name);
  if (!op && functions.empty()) {
    auto known = op_names();
    for (auto& f : public_functions()) known.push_back(f.name);
    refuse("op or function", name, known);
  }
  if (json) {
    nlohmann::json out = op ? json_of(*op) : nlohmann::json{{"name", name}};
    out["functions"] = nlohmann::json::array();
    for (auto* f : functions) out["functions"].push_back(json_of(*f));
    std::cout << out.dump(2) << "\n";
    return;
  }
  if (op) print_facts(*op);
  print_declarations(functions);
}

}  // namespace sinter::cli
