#include "sinter/codegen/value_text.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "sinter/base/error.h"

namespace sinter::codegen {

std::string type_text(DType compute, bool vector) {
  switch (compute) {
    case DType::kBool: return vector ? "maskv" : "bool";
    case DType::kInt32: return vector ? "i32v" : "i32";
    case DType::kInt64: return vector ? "i64v" : "i64";
    case DType::kFloat32: return vector ? "f32v" : "float";
    case DType::kFloat64: return vector ? "f64v" : "double";
    default: break;
  }
  SINTER_INTERNAL_ASSERT(false, "{} is no computing type", compute);
}

std::string memory_text(DType dtype) { return dtype == kBool ? "bool" : "k::" + to_string(dtype); }

std::string local_text(const std::string& name) { return name + "_"; }

std::string index_text(const Dim& d) {
  static const Dim::Visitor visitor{.symbol = local_text,
                                    .floor_div = "floor_divide((i64)({}), (i64)({}))",
                                    .mod = "remainder((i64)({}), (i64)({}))",
                                    .max = "maximum((i64)({}), (i64)({}))",
                                    .min = "minimum((i64)({}), (i64)({}))"};
  return d.text(visitor);
}

std::string conditions_text(const Conditions& conditions) {
  std::string out;
  for (auto& c : conditions) {
    std::string value = index_text(c.value);
    out += out.empty() ? "" : " && ";
    out += c.extent.same_as(kUnbounded) ? value + " >= 0" : format("(u64)({}) < (u64)({})", value, index_text(c.extent));
    if (c.multiple != 1) out += format(" && ({}) % {} == 0", value, c.multiple);
  }
  return out.empty() ? "true" : out;
}

std::string operand_text(const LoopNest& nest, int operand) {
  return local_text((nest.operands[size_t(operand)].output ? "out" : "in") + std::to_string(operand));
}

std::string cast_text(const std::string& value, DType from, DType to) {
  return from == to ? value : format("cast_{}({})", to, value);
}

std::string literal_text(const Scalar& value, DType compute) {
  if (compute == kBool) return value.to_bool() ? "true" : "false";
  if (!is_floating(compute)) {
    int64_t v = value.to_int();
    return v == INT64_MIN ? "(-9223372036854775807l - 1)" : format("(({}){}l)", type_text(compute, false), v);
  }
  double v = value.to_double();
  std::string number = std::isnan(v)   ? "__builtin_nan(\"\")"
                       : std::isinf(v) ? (v < 0 ? "-__builtin_inf()" : "__builtin_inf()")
                                       : to_string(Scalar(v));
  return format("({})({})", type_text(compute, false), number);
}

namespace {

// A number that every lane shares, widened to lanes.
std::string splat(const std::string& value, DType compute) { return format("splat_{}({})", compute, value); }

// Replaces whole identifiers of a body: parameters by their arguments, lit(…) by a constant of the computing type.
std::string substitute(std::string_view body, const std::vector<std::string>& names, const std::vector<std::string>& values,
                       const std::string& type) {
  std::string out;
  for (size_t at = 0; at < body.size();) {
    if (!std::isalpha((unsigned char)body[at]) && body[at] != '_') {
      // A digit run may end in letters (1e3): copied whole, so that they are not taken for names.
      if (std::isdigit((unsigned char)body[at])) {
        while (at < body.size() && (std::isalnum((unsigned char)body[at]) || body[at] == '.')) out += body[at++];
      } else {
        out += body[at++];
      }
      continue;
    }
    size_t begin = at;
    while (at < body.size() && (std::isalnum((unsigned char)body[at]) || body[at] == '_')) ++at;
    std::string word(body.substr(begin, at - begin));
    if (word == "lit" && at < body.size() && body[at] == '(') {
      out += "like(" + type + "{}, ";
      ++at;
      continue;
    }
    for (size_t i = 0; i < names.size(); ++i)
      if (names[i] == word) word = values[i];
    out += word;
  }
  return out;
}

std::vector<std::string> split_names(std::string_view params) {
  std::vector<std::string> names(1);
  for (char c : params) {
    if (c == ',')
      names.emplace_back();
    else if (c != ' ')
      names.back() += c;
  }
  return names;
}

// A freshly computed value brought to what its dtype holds: half types round only on an explicit cast.
std::string settle(std::string value, DType dtype, bool round) {
  if (dtype == kInt8 || dtype == kInt16 || dtype == kUInt8) return format("wrap_{}({})", dtype, value);
  if (round && (dtype == kBFloat16 || dtype == kFloat16)) return format("round_{}({})", dtype, value);
  return value;
}

}  // namespace

bool BodyWriter::uniform(int id) const {
  if (mode_ == LaneMode::kScalar) return false;
  return is_uniform(sweep_, id, axis_) && !(rows_in_lanes_ && depends_on_rows(id));
}

// Whether a row value is behind it.
bool BodyWriter::depends_on_rows(int id) const {
  const Instr& instr = body_[size_t(id)];
  return instr.kind == InstrKind::kOuter ||
         std::any_of(instr.args.begin(), instr.args.end(), [&](int a) { return depends_on_rows(a); });
}

std::string BodyWriter::value(int id, DType compute) const {
  std::string text = cast_text(variable(id), compute_dtype(body_[size_t(id)].dtype), compute);
  return mode_ != LaneMode::kScalar && uniform(id) ? splat(text, compute) : text;
}

std::string BodyWriter::load(const Instr& instr) const {
  auto& operand = nest_.operands[size_t(instr.operand)];
  std::string name = operand_text(nest_, instr.operand);
  if (operand.scalar) return name;
  Movement m = mode_ == LaneMode::kScalar ? Movement::kFixed : movement(instr.offset, axis_);
  std::string dtype = memory_text(instr.dtype), at = index_text(instr.offset), text;
  bool lanes = m != Movement::kFixed;
  if (!lanes)
    text = format("load1<{}>({}, {})", dtype, name, at);
  else if (m == Movement::kStrided && instr.offset.coefficient_of(axis_)->same_as(2))
    text = format("load_pairs<{}>({}, {})", dtype, name, at);
  else if (m == Movement::kStrided)
    text = format("load_strided<{}>({}, {}, {})", dtype, name, at, index_text(*instr.offset.coefficient_of(axis_)));
  else if (mode_ == LaneMode::kPartial)
    text = format("load_partial<{}>({}, {}, m_)", dtype, name, at);
  else
    text = format("load<{}>({}, {})", dtype, name, at);
  if (instr.conditions.empty()) return text;
  DType compute = compute_dtype(instr.dtype);
  std::string otherwise = literal_text(instr.value, compute);
  if (guards_ && lanes) return format("load_if<{}>({}, {}, {}, {})", dtype, conditions(instr), name, at, otherwise);
  if (lanes) otherwise = splat(otherwise, compute);
  return format("({}) ? {} : {}", conditions(instr), text, otherwise);
}

std::string BodyWriter::conditions(const Instr& instr) const {
  if (!place_) return conditions_text(instr.conditions);
  Conditions decided = instr.conditions;
  std::string axis = to_string(axis_);
  for (auto& c : decided)
    c.value = c.value.substitute([&](const std::string& name) { return name == axis ? *place_ : Dim::symbol(name); });
  return conditions_text(decided);
}

std::string BodyWriter::apply(const Instr& instr, bool uniform) const {
  bool lanes = mode_ != LaneMode::kScalar && !uniform;
  Typing typing = instr.op->pointwise->typing;
  std::vector<std::string> values;
  for (size_t i = 0; i < instr.args.size(); ++i) {
    DType compute = typing == Typing::kSelect && i == 0 ? kBool : instr.compute;
    int id = instr.args[i];
    // The random functions take an index in lanes and one seed for all.
    bool shared = typing == Typing::kRandom && i > 0;
    values.push_back(lanes && !shared ? value(id, compute) : cast_text(variable(id), compute_dtype(body_[size_t(id)].dtype), compute));
  }
  DType result = compute_dtype(instr.dtype);
  DType literal = typing == Typing::kRandom ? result : instr.compute;
  std::string text = substitute(instr.op->pointwise->text, split_names(instr.op->pointwise->params), values, type_text(literal, lanes));
  bool truth = typing == Typing::kCompare || typing == Typing::kBool;
  DType computed = truth ? kBool : literal;
  if (typing == Typing::kInteger && instr.dtype == kBool) text = format("({}) & 1", text);
  return settle(cast_text(text, computed, result), instr.dtype, typing == Typing::kAttr);
}

std::string BodyWriter::statement(int id) const {
  const Instr& instr = body_[size_t(id)];
  bool lanes = mode_ != LaneMode::kScalar && !uniform(id);
  DType compute = compute_dtype(instr.dtype);
  std::string left = format("const {} {} = ", type_text(compute, lanes), variable(id));
  switch (instr.kind) {
    case InstrKind::kLoad:
      if (std::find(prepared_.begin(), prepared_.end(), id) != prepared_.end())
        return left + format("load<k::f32>(prepared{}_, prepared_row_ * kLanes);", id);
      return left + load(instr) + ";";
    case InstrKind::kLoadIndex: {
      if (!instr.args.empty()) {
        int from = instr.args[0];
        std::string index = format("checked_index({}, {}, error_)",
                                   cast_text(variable(from), compute_dtype(body_[size_t(from)].dtype), kInt64),
                                   index_text(instr.extent));
        if (!instr.conditions.empty()) index = format("({}) ? {} : 0", conditions(instr), index);
        return format("const i64 {} = {};", index_text(instr.symbol), index);
      }
      std::string dtype = memory_text(nest_.operands[size_t(instr.operand)].dtype);
      return format("const i64 {} = checked_index(cast_i64(load1<{}>({}, {})), {}, error_);", index_text(instr.symbol),
                    dtype, operand_text(nest_, instr.operand), index_text(instr.offset), index_text(instr.extent));
    }
    case InstrKind::kConstant: return left + literal_text(instr.value, compute) + ";";
    case InstrKind::kTile: {
      std::string memory = memory_text(compute), at = index_text(axis_) + " - col_";
      if (mode_ == LaneMode::kPartial)
        return left + format("load_partial<{}>(tile{}_, {}, m_);", memory, instr.operand, at);
      return left + format("{}<{}>(tile{}_, {});", lanes ? "load" : "load1", memory, instr.operand, at);
    }
    case InstrKind::kOuter:
      return left + format("row{}_;", instr.operand);
    case InstrKind::kIndex:
      if (!lanes) return left + index_text(instr.offset) + ";";
      return left + format("splat_i64({}) + iota_i64() * splat_i64({});", index_text(instr.offset),
                           index_text(*instr.offset.coefficient_of(axis_)));
    case InstrKind::kApply: return left + apply(instr, !lanes) + ";";
    case InstrKind::kSelect: {
      auto arm = [&](int a) {
        return lanes ? value(a, compute) : cast_text(variable(a), compute_dtype(body_[size_t(a)].dtype), compute);
      };
      return left + format("({}) ? {} : {};", conditions(instr), arm(instr.args[0]), arm(instr.args[1]));
    }
  }
  return left;
}

bool BodyWriter::depends(int id, const std::vector<Dim>& inside) const {
  const Instr& instr = body_[size_t(id)];
  if (instr.kind == InstrKind::kTile) return true;
  auto on = [&](const Dim& d) {
    for (auto& symbol : inside)
      if (d.depends_on(symbol)) return true;
    // A coordinate that was itself loaded inside.
    for (auto& name : d.symbols())
      for (size_t j = 0; j < size_t(id); ++j)
        if (body_[j].kind == InstrKind::kLoadIndex && to_string(body_[j].symbol) == name && depends(int(j), inside))
          return true;
    return false;
  };
  if (on(instr.offset) || on(instr.extent)) return true;
  for (auto& c : instr.conditions)
    if (on(c.value) || on(c.extent)) return true;
  for (int a : instr.args)
    if (depends(a, inside)) return true;
  return false;
}

std::vector<std::string> BodyWriter::write(const std::vector<Dim>& inside, bool dependent) {
  std::vector<std::string> lines;
  for (size_t id = 0; id < body_.size(); ++id)
    if (depends(int(id), inside) == dependent) lines.push_back(statement(int(id)));
  return lines;
}

std::vector<std::string> BodyWriter::write_all() {
  std::vector<bool> late(body_.size());
  for (size_t id = 0; id < body_.size(); ++id) {
    const Instr& instr = body_[id];
    late[id] = instr.kind == InstrKind::kLoadIndex ||
               std::any_of(instr.args.begin(), instr.args.end(), [&](int a) { return late[size_t(a)]; });
    for (size_t j = 0; j < id && !late[id]; ++j) {
      if (body_[j].kind != InstrKind::kLoadIndex) continue;
      const Dim& index = body_[j].symbol;
      late[id] = instr.offset.depends_on(index) || instr.extent.depends_on(index) ||
                 std::any_of(instr.conditions.begin(), instr.conditions.end(),
                             [&](auto& c) { return c.value.depends_on(index) || c.extent.depends_on(index); });
    }
  }
  std::vector<std::string> lines;
  for (bool last : {false, true})
    for (size_t id = 0; id < body_.size(); ++id)
      if (late[id] == last) lines.push_back(statement(int(id)));
  return lines;
}

}  // namespace sinter::codegen
