#include "tests/support/recorded.h"

#include <set>

#include "sinter/base/hash.h"

namespace sinter::testing {

namespace {

// Promotion among sized tensors, 0-d tensors and plain numbers.
constexpr std::string_view kMixed[] = {
    "i64[5], f32[5]",  "bool[4], i32[4]", "u8[4], i8[4]",     "bf16[4], f32[4]", "f16[4], bf16[4]", "i64[3], 1.5",
    "f16[3], i64[]",   "i32[3], f64[]",   "bool[3], 2",       "u8[3], 7",        "i16[], i32[2]",   "i64[], i8[2]",
    "bool[], bool[2]", "i32[], bf16[2]",  "bool[4], bool[4]", "f64[3], f32[]"};

bool runs_mixed(const Op& op) {
  static const std::set<std::string_view> names = {
      "add",   "sub",      "mul",         "div",         "maximum",      "eq",           "lt",   "atan2",
      "pow",   "copysign", "logical_and", "bitwise_and", "floor_divide", "trunc_divide", "fmod", "remainder"};
  return names.contains(op.name);
}

}  // namespace

std::vector<RecordedCase> recorded_cases(const Op& op) {
  std::vector<RecordedCase> out;
  if (op.kind == OpKind::kInput || op.kind == OpKind::kScalar) return out;
  for (DType dtype : {kFloat32, kInt64, kBool}) {
    bool all = dtype == kFloat32 || out.empty();
    int next = 0;
    for (auto& sample : samples_of(op, dtype)) {
      int at = next++;
      if (!sample.accepted()) continue;
      out.push_back({format("{}/{}/{}", op.name, dtype, at), sample});
      if (!all) break;
    }
  }
  if (runs_mixed(op)) {
    int next = 0;
    for (auto text : kMixed) {
      Sample sample = sample_from(op, text, kFloat32);
      int at = next++;
      if (sample.accepted()) out.push_back({format("{}/mixed/{}", op.name, at), sample});
    }
  }
  return out;
}

std::string digest_of(const std::vector<RecordedCase>& cases) {
  uint64_t hash = 0;
  for (auto& c : cases) {
    hash = hash_text(c.sample.text, hash_text(c.name, hash));
    for (auto& o : c.sample.operands) {
      hash = hash_bytes(o.values.f.data(), o.values.f.size() * sizeof(double), hash);
      hash = hash_bytes(o.values.i.data(), o.values.i.size() * sizeof(int64_t), hash);
    }
  }
  return hash_hex(format("{}", hash));
}

}  // namespace sinter::testing
