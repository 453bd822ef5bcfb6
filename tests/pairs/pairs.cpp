#include "tests/pairs/pairs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>

#include "sinter/base/error.h"
#include "sinter/base/hash.h"
#include "sinter/codegen/cpu/emit.h"
#include "sinter/ops/pointwise.h"
#include "sinter/runtime/cpu/cpu_features.h"
#include "sinter/tensor/tracer.h"
#include "tests/pairs/consumers.h"

namespace sinter::pairs {

namespace {

using testing::MemoryLayout;
using testing::Sample;

uint64_t environment_number(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text && *text ? std::strtoull(text, nullptr, 10) : otherwise;
}

// --- what has run

struct Tally {
  int ran = 0, not_applicable = 0, wrong = 0;
};
Tally tally;

void count(const std::string& what, const Outcome& outcome) {
  ++(outcome.applies ? tally.ran : tally.not_applicable);
  if (!outcome.wrong.empty() && ++tally.wrong <= 20) ADD_FAILURE() << what << ": " << outcome.wrong;
}

// --- pairs

// Where operands lie in memory counts in eager ops that name strides themselves, and makes other numbers where it broadcasts.
MemoryLayout layout_for(const Op& op, uint64_t draw) {
  constexpr MemoryLayout kLayouts[] = {MemoryLayout::kContiguous, MemoryLayout::kTransposed, MemoryLayout::kSliced};
  return op.alias ? MemoryLayout::kContiguous : kLayouts[draw % 3];
}

// What says where its result goes, says this device.
Attrs attributes_on(const Sample& sample, Device device) {
  if (device.is_cpu()) return sample.attrs;
  FieldTexts fields = sample.fields;
  fields.emplace_back("device", to_string(device));
  try {
    return sample.op->parse(fields);
  } catch (const Error&) {
    return sample.attrs;
  }
}

// The sample's op as the first stage of a chain, with its result of this number.
Stage producer_stage(const Sample& sample, size_t result, Device device) {
  return [op = sample.op, operands = sample.operands, attrs = attributes_on(sample, device), result](
             const Tensor&, const TensorList& inputs) {
    std::vector<TensorArg> arguments;
    size_t next = 0;
    for (auto& operand : operands) {
      if (operand.scalar)
        arguments.emplace_back(operand.number);
      else
        arguments.emplace_back(inputs[next++]);
    }
    return Dispatcher::instance().run(*op, arguments, attrs)[result];
  };
}

std::vector<Sample> useful_samples(const Op& op, DType dtype) {
  std::vector<Sample> out;
  for (auto& sample : testing::samples_of(op, dtype)) {
    bool empty = std::any_of(sample.operands.begin(), sample.operands.end(),
                             [](auto& operand) { return !operand.scalar && operand.values.numel() == 0; });
    if (!empty && sample.accepted()) out.push_back(std::move(sample));
  }
  return out;
}

IntList sizes_of(const Type& type) {
  IntList out;
  for (int64_t d = 0; d < type.rank(); ++d) {
    const Dim& size = type.shape[size_t(d)];
    out.push_back(size.is_number() ? size.number() : -1);
  }
  return out;
}

}  // namespace

Slice Slice::from_environment(uint64_t one_of, Device device) {
  return {std::max<uint64_t>(1, environment_number("SINTER_PAIRS_ONE_OF", one_of)),
          environment_number("SINTER_PAIRS_SEED", 1), device};
}

bool Slice::takes(std::string_view what) const {
  static const char* const only = std::getenv("SINTER_PAIRS_ONLY");
  if (only && *only ? what.find(only) == what.npos : hash_text(what, seed) % one_of != 0) return false;
  if (only) std::fprintf(stderr, "%s\n", std::string(what).c_str());
  return true;
}

std::vector<const Op*> producers() {
  std::vector<const Op*> out;
  for (auto* op : all_ops())
    if (op->kind != OpKind::kInput && op->kind != OpKind::kScalar) out.push_back(op);
  return out;
}

void run_pairs(const Op& op, const Slice& slice) {
  int before = tally.ran;
  bool has_samples = false;
  for (int d = 0; d < kRealDTypeCount; ++d) {
    DType dtype = DType(d);
    std::optional<std::vector<Sample>> samples;
    for (auto& consumer : consumers()) {
      std::string what = format("{} of {} into {}", op.name, dtype, consumer.name);
      if (!slice.takes(what)) continue;
      if (!samples) samples = useful_samples(op, dtype);
      has_samples = has_samples || !samples->empty();
      if (samples->empty()) break;
      uint64_t draw = hash_text(what);
      Sample sample = (*samples)[draw % samples->size()];
      // A number of 1 drops out of many bodies: what is left of them is another kernel.
      bool ones = op.pointwise && draw / 17 % 2;
      for (auto& operand : sample.operands)
        if (operand.scalar && ones) operand.number = 1;
      auto types = sample.types();
      auto results = op.infer(OpCall{op, types, sample.attrs});
      size_t result = draw / 7 % results.size();
      auto others = consumer.others(results[result].dtype, sizes_of(results[result]), draw);
      if (!others) {
        ++tally.not_applicable;
        continue;
      }
      Chain chain;
      for (auto& operand : sample.operands)
        if (!operand.scalar) chain.inputs.push_back({operand.values, layout_for(op, draw / 3)});
      size_t own = chain.inputs.size();
      for (auto& array : *others) chain.inputs.push_back({array});
      chain.stages = {producer_stage(sample, result, slice.device), [&](const Tensor& value, const TensorList& inputs) {
                        return consumer.apply(value, TensorList(inputs.begin() + ptrdiff_t(own), inputs.end()));
                      }};
      count(format("{} ({}{})", what, sample.text, ones ? ", numbers of 1" : ""),
            check(std::move(chain), slice.device));
    }
  }
  if (has_samples && slice.one_of == 1 && slice.device.is_cpu()) {
    EXPECT_GT(tally.ran, before) << op.name << " has no consumer";
  }
}

// --- chains of selects and bit operations

namespace {

std::set<std::string> names_called(std::string_view text) {
  std::set<std::string> out;
  for (size_t at = 0; at < text.size();) {
    size_t begin = at;
    while (at < text.size() && (std::isalnum((unsigned char)text[at]) || text[at] == '_')) ++at;
    if (at > begin && at < text.size() && text[at] == '(') out.emplace(text.substr(begin, at - begin));
    if (at == begin) ++at;
  }
  return out;
}

// What each function of the prelude calls, all overloads together.
std::map<std::string, std::set<std::string>> calls_of_prelude() {
  std::map<std::string, std::set<std::string>> out;
  std::string_view text = codegen::cpu_prelude(4);
  for (size_t at = text.find("K_INLINE "); at != text.npos; at = text.find("K_INLINE ", at + 1)) {
    size_t paren = text.find('(', at), open = text.find('{', at), depth = 0, end = open;
    if (open == text.npos) break;
    size_t begin = paren;
    while (begin > at && (std::isalnum((unsigned char)text[begin - 1]) || text[begin - 1] == '_')) --begin;
    for (; end < text.size() && (depth += text[end] == '{', depth -= text[end] == '}', depth); ++end) continue;
    out[std::string(text.substr(begin, paren - begin))].merge(names_called(text.substr(open, end - open)));
  }
  return out;
}

bool works_on_bits(std::string_view body) {
  static const auto calls = calls_of_prelude();
  std::set<std::string> seen, open = names_called(body);
  while (!open.empty()) {
    std::string name = *open.begin();
    open.erase(open.begin());
    if (name == "bits" || name.starts_with("bit_") || name.starts_with("shift_")) return true;
    auto found = calls.find(name);
    if (seen.insert(name).second && found != calls.end()) open.insert(found->second.begin(), found->second.end());
  }
  return false;
}

std::vector<const Op*> pointwise_ops(const std::function<bool(const PointwiseBody&)>& wanted) {
  std::vector<const Op*> out;
  for (auto* op : all_ops())
    if (op->pointwise && op->pointwise->typing != Typing::kRandom && wanted(*op->pointwise)) out.push_back(op);
  return out;
}

struct NamedStage {
  std::string name;
  Stage stage;
};

// An op on the value so far and on the chain's inputs, which come again and again.
NamedStage stage_of(const Op& op, uint64_t draw) {
  Stage stage = [&op, draw](const Tensor& before, const TensorList& inputs) {
    const PointwiseBody& body = *op.pointwise;
    int first = body.typing == Typing::kSelect ? 1 : 0, place = first + int(draw % uint64_t(body.tensors - first));
    std::vector<TensorArg> arguments;
    for (int i = 0; i < body.arity; ++i) {
      if (i >= body.tensors)
        arguments.emplace_back(Scalar(draw / 3 % 2 ? 1 : 0.5 * i));
      else if (i < first)
        arguments.emplace_back(draw / 5 % 2 && before.defined() ? before > inputs[0] : inputs[0] > inputs[1]);
      else
        arguments.emplace_back(i == place && before.defined() ? before
                                                              : inputs[(draw / 7 + uint64_t(i)) % 3 == 0 ? 1 : 0]);
    }
    return Dispatcher::instance().run(op, arguments, op.parse({}))[0];
  };
  return {std::string(op.name), stage};
}

// Some bits of the value so far, the others of an input.
std::vector<NamedStage> mixtures() {
  auto mixture = [](auto join) {
    return [join](const Tensor& before, const TensorList& inputs) {
      const Tensor& value = before.defined() ? before : inputs[1];
      return join(value & 15, inputs[0] & ~15);
    };
  };
  return {{"low_or_high", mixture([](const Tensor& a, const Tensor& b) { return a | b; })},
          {"low_xor_high", mixture([](const Tensor& a, const Tensor& b) { return a ^ b; })},
          {"low_plus_high", mixture([](const Tensor& a, const Tensor& b) { return a + b; })}};
}

Array chain_input(DType dtype, uint64_t seed) {
  Array out = numbers(dtype, {3, 39}, seed);
  for (int64_t& v : out.i) v = v * 167 + int64_t(seed++ % 13);
  return out;
}

}  // namespace

std::vector<const Op*> selecting_ops() {
  return pointwise_ops([](const PointwiseBody& body) { return names_called(body.text).contains("select"); });
}

std::vector<const Op*> bit_ops() {
  return pointwise_ops([](const PointwiseBody& body) { return works_on_bits(body.text); });
}

void run_chains(const Op& op, const Slice& slice) {
  static const auto selecting = selecting_ops(), bits = bit_ops();
  for (DType dtype : {kFloat32, kFloat64, kBFloat16, kInt32, kInt64}) {
    std::vector<NamedStage> others = is_floating(dtype) ? std::vector<NamedStage>{} : mixtures();
    for (auto* bit : bits) others.push_back(stage_of(*bit, hash_text(bit->name)));
    for (auto& other : others)
      for (int order = 0; order < 2; ++order) {
        std::string what = format("{} of {} {} {}", op.name, dtype, order ? "after" : "before", other.name);
        if (!slice.takes(what)) continue;
        uint64_t draw = hash_text(what);
        NamedStage select = stage_of(op, draw), third = stage_of(*selecting[draw / 11 % selecting.size()], draw / 13);
        if (draw % 4 == 1) third = stage_of(*bits[draw / 11 % bits.size()], draw / 13);
        if (draw % 4 > 1) third = {"plus_one", [](const Tensor& v, const TensorList&) { return v + 1; }};
        Chain chain;
        for (uint64_t i = 0; i < 2; ++i) chain.inputs.push_back({chain_input(dtype, draw + i)});
        chain.stages = {order ? other.stage : select.stage, order ? select.stage : other.stage, third.stage};
        count(what + ", then " + third.name, check(std::move(chain), slice.device));
      }
  }
}

void report(const char* what, const Slice& slice) {
  const char* compiler = std::getenv("SINTER_CPU_COMPILER");
  std::string where = slice.device.is_cpu() ? format("{} with {}", cpu_isa_name(runtime::host_target().isa),
                                                     compiler && *compiler ? compiler : "clang")
                                            : to_string(slice.device);
  std::printf("%s\n", format("{}: {} ran on {}, {} wrong; {} do not apply (one of {}, seed {})", what, tally.ran, where,
                             tally.wrong, tally.not_applicable, slice.one_of, slice.seed)
                          .c_str());
  tally = {};
}

}  // namespace sinter::pairs
