#include "sinter/loops/loop_nest.h"

#include <algorithm>
#include <set>

#include "sinter/base/format.h"

namespace sinter {

void LoopNest::take_parameters(const Parameters& named) {
  std::set<std::string> free, bound;
  auto add = [&](const Dim& d) {
    for (auto& name : d.symbols()) free.insert(name);
  };
  for (auto* axes : {&rows, &inner})
    for (auto& axis : *axes) {
      add(axis.extent);
      bound.insert(to_string(axis.symbol));
    }
  if (tiles) bound.insert("r");
  for (auto& sweep : sweeps) {
    for (auto& instr : sweep.body) {
      add(instr.offset);
      add(instr.extent);
      for (auto& c : instr.conditions) {
        add(c.value);
        add(c.extent);
      }
      if (instr.kind == InstrKind::kLoadIndex) bound.insert(to_string(instr.symbol));
    }
    for (auto& store : sweep.stores) add(store.offset);
  }
  parameters.clear();
  for (auto& name : free)
    if (!bound.contains(name)) parameters.push_back(named.named(name));
}

bool LoopNest::reduces() const {
  return std::any_of(sweeps.begin(), sweeps.end(), [](auto& sweep) { return !sweep.reductions.empty(); });
}

bool LoopNest::reads_index() const {
  for (auto& sweep : sweeps)
    for (auto& instr : sweep.body)
      if (instr.kind == InstrKind::kLoadIndex) return true;
  return false;
}

bool LoopNest::is_map() const {
  return sweeps.size() == 1 && !reduces() && !sweeps[0].once && !sweeps[0].scatters() && !inner.empty();
}

bool LoopNest::reduces_own_axes() const { return reduces() && (inner.empty() || inner.back().dim < 0); }

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

std::string operand_name(const LoopNest& nest, int operand) {
  return (nest.operands[size_t(operand)].output ? "out" : "in") + std::to_string(operand);
}

std::string instr_text(const LoopNest& nest, const Instr& instr, size_t id) {
  std::string out = format("%{} = ", id), args;
  for (int a : instr.args) args += format("{}%{}", args.empty() ? "" : ", ", a);
  auto place = [&] { return format("{}[{}]", operand_name(nest, instr.operand), instr.offset); };
  switch (instr.kind) {
    case InstrKind::kLoad:
      out += format("load {} {}", instr.dtype, place());
      if (!instr.conditions.empty()) out += conditions_text(instr.conditions) + " else " + to_string(instr.value);
      return out;
    case InstrKind::kLoadIndex:
      return out + format("{} = index {} < {}", instr.symbol, instr.args.empty() ? place() : args, instr.extent);
    case InstrKind::kConstant: return out + format("constant {} {}", instr.dtype, instr.value);
    case InstrKind::kIndex: return out + format("coordinate {}", instr.offset);
    case InstrKind::kApply: return out + format("{} {}({}) in {}", instr.dtype, instr.op->name, args, instr.compute);
    case InstrKind::kSelect: return out + format("select {}{}", args, conditions_text(instr.conditions));
    case InstrKind::kTile: return out + format("element of tile {}", instr.operand);
    case InstrKind::kOuter: return out + format("row value {}", instr.operand);
  }
  return out;
}

std::string reduction_text(const RowReduction& r) {
  std::string out = format("row value {} = {} %{}", r.outer, combine_name(r.combine), r.value);
  return r.payload < 0 ? out : out + format(" keeping %{}", r.payload);
}

std::string store_text(const LoopNest& nest, const Store& s) {
  std::string value = s.running >= 0 ? format("row value {} so far", s.running) : format("%{}", s.value);
  if (s.combine == Combine::kReplace) value += " in order";
  else if (s.combine != Combine::kNone) value = format("{} with {}", combine_name(s.combine), value);
  return format("store {} {}[{}] = {}", nest.operands[size_t(s.operand)].dtype, operand_name(nest, s.operand), s.offset, value);
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

std::string LoopNest::text() const {
  std::string out = "kernel " + name + "\n", indent = "  ";
  for (auto& axis : rows) {
    out += indent + format("for {} < {} (parallel)\n", axis.symbol, axis.extent);
    indent += "  ";
  }
  for (auto& sweep : sweeps) {
    std::string axes;
    if (!sweep.once)
      for (auto& axis : inner) axes += format(" {} < {}", axis.symbol, axis.extent);
    out += indent + (sweep.once ? "once" : "sweep" + axes) + "\n";
    auto line = [&](const std::string& text) { out += indent + "  " + text + "\n"; };
    for (size_t i = 0; i < sweep.body.size(); ++i) line(instr_text(*this, sweep.body[i], i));
    for (auto& r : sweep.reductions) line(reduction_text(r));
    for (auto& s : sweep.stores) line(store_text(*this, s));
  }
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
