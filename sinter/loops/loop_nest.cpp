#include "sinter/loops/loop_nest.h"

#include <set>

#include "sinter/base/format.h"

namespace sinter {

std::vector<std::string> LoopNest::params() const {
  std::set<std::string> free, bound;
  auto add = [&](const Dim& d) {
    for (auto& name : d.symbols()) free.insert(name);
  };
  auto add_conditions = [&](const Conditions& conditions) {
    for (auto& c : conditions) {
      add(c.value);
      add(c.extent);
    }
  };
  for (auto* axes : {&parallel, &sequential})
    for (auto& axis : *axes) {
      add(axis.extent);
      bound.insert(to_string(axis.symbol));
    }
  for (auto& instr : body) {
    add(instr.offset);
    add(instr.extent);
    add_conditions(instr.conditions);
    if (instr.kind == InstrKind::kLoadIndex) bound.insert(to_string(instr.symbol));
  }
  add(offset);
  std::vector<std::string> out;
  for (auto& name : free)
    if (!bound.contains(name)) out.push_back(name);
  return out;
}

namespace {

std::string conditions_text(const Conditions& conditions) {
  std::string out;
  for (auto& c : conditions) {
    out += out.empty() ? " if " : " and ";
    out += "0 <= " + to_string(c.value);
    if (!c.extent.same_as(kUnbounded)) out += " < " + to_string(c.extent);
    if (c.multiple != 1) out += format(" and {} divides it", c.multiple);
  }
  return out;
}

}  // namespace

const char* combine_name(Combine c) {
  switch (c) {
    case Combine::kNone: return "";
    case Combine::kSum: return "sum";
    case Combine::kProd: return "prod";
    case Combine::kMax: return "max";
    case Combine::kMin: return "min";
    case Combine::kAny: return "any";
    case Combine::kAll: return "all";
    case Combine::kArgMax: return "argmax";
    case Combine::kArgMin: return "argmin";
    case Combine::kReplace: break;
  }
  return "replace";
}

namespace {

std::string operand_name(const LoopNest& nest, int operand) {
  if (!nest.operands[size_t(operand)].output) return "in" + std::to_string(operand);
  return nest.output >= 0 ? "out" : "out" + std::to_string(operand);
}

}  // namespace

std::string instr_text(const LoopNest& nest, const Instr& instr, int id) {
  std::string out = format("%{} = ", id);
  std::string args;
  for (int a : instr.args) args += format("{}%{}", args.empty() ? "" : ", ", a);
  switch (instr.kind) {
    case InstrKind::kLoad:
      out += format("load {} {}[{}]", instr.dtype, operand_name(nest, instr.operand), instr.offset);
      if (!instr.conditions.empty()) out += conditions_text(instr.conditions) + " else " + to_string(instr.value);
      return out;
    case InstrKind::kLoadIndex:
      if (!instr.args.empty()) return out + format("{} = index {} < {}", instr.symbol, args, instr.extent);
      return out + format("{} = index {}[{}] < {}", instr.symbol, operand_name(nest, instr.operand), instr.offset, instr.extent);
    case InstrKind::kConstant: return out + format("constant {} {}", instr.dtype, instr.value);
    case InstrKind::kIndex: return out + format("coordinate {}", instr.offset);
    case InstrKind::kApply: return out + format("{} {}({}) in {}", instr.dtype, instr.op->name, args, instr.compute);
    case InstrKind::kSelect: return out + format("select {}{}", args, conditions_text(instr.conditions));
    case InstrKind::kTile: return out + format("element of tile {}", instr.operand);
    case InstrKind::kOuter: return out + format("row value {}", instr.operand);
  }
  return out;
}

std::string LoopNest::text() const {
  std::string out = "kernel " + name + "\n", indent = "  ";
  for (auto& axis : parallel) {
    out += indent + format("for {} < {} (parallel)\n", axis.symbol, axis.extent);
    indent += "  ";
  }
  std::string outer = indent;
  for (auto& axis : sequential) {
    out += indent + format("for {} < {} ({})\n", axis.symbol, axis.extent, combine_name(combine));
    indent += "  ";
  }
  for (size_t i = 0; i < body.size(); ++i) out += indent + instr_text(*this, body[i], int(i)) + "\n";
  bool once = kind == NestKind::kReduce;
  std::string stored = format("{}%{}", combine == Combine::kNone ? "" : std::string(combine_name(combine)) + " ", value);
  if (payload >= 0) stored += format(" keeping %{}", payload);
  out += (once ? outer : indent) + format("store {} {}[{}] = {}\n", operands[size_t(output)].dtype, operand_name(*this, output), offset, stored);
  return out;
}

DType pointwise_compute_dtype(Typing typing, DType operands, DType result) {
  switch (typing) {
    case Typing::kBool: return kBool;
    case Typing::kSelect: return compute_dtype(result);
    case Typing::kRandom: return kInt64;
    case Typing::kAttr: return compute_dtype(operands);
    case Typing::kCompare: return operands == kBool ? kInt32 : compute_dtype(operands);
    case Typing::kPromote:
    case Typing::kFloat:
    case Typing::kInteger: break;
  }
  return result == kBool ? kInt32 : compute_dtype(result);
}

}  // namespace sinter
