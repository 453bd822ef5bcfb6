#include "tests/fuzz/op_uses.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "sinter/ops/registry.h"
#include "sinter/ops/sample.h"
#include "tests/support/samples.h"

namespace sinter::fuzz {

namespace {

constexpr int64_t kMostSampled = 400;

bool takes_tensor(const Op& op) {
  for (auto& text : testing::sample_texts(op))
    for (auto& operand : parse_sample(text).operands)
      if (!operand.scalar) return true;
  return false;
}

// Whether an attribute is a graph: capture and passes make it, a program calls a function (cond) instead.
bool holds_graph(const Op& op) {
  auto texts = testing::sample_texts(op);
  return std::all_of(texts.begin(), texts.end(), [](auto& text) { return text.find("={%") != std::string::npos; });
}

// Whether only the data knows a size of the result: its attribute `count` then names it. One sample may be too small for
// that, and the operands that take its place are not.
bool is_counted(const Op& op) {
  for (auto& text : testing::sample_texts(op)) {
    testing::Sample sample = testing::sample_from(op, text, kFloat32);
    if (!sample.accepted()) continue;
    auto types = sample.types();
    for (auto& type : op.infer(OpCall{op, types, sample.attrs}))
      if (!type.shape.is_static()) return true;
  }
  return false;
}

std::string attributes_of(const Op& op, const std::string& text) {
  size_t bar = text.find('|');
  std::string attributes = bar == std::string::npos ? "" : text.substr(std::min(bar + 2, text.size()));
  return is_counted(op) ? "count=?" : attributes;
}

// Sizes of a sample by name: where one operand has another size in its place, the others follow.
class Sizes {
 public:
  void take(const IntList& sample, int64_t rank, int variable) {
    if (int64_t(sample.size()) != rank) return;
    like = variable;
    for (size_t d = 0; d < sample.size(); ++d) codes_.try_emplace(sample[d], -1 - int64_t(d));
  }
  int64_t code(int64_t size) const {
    auto it = codes_.find(size);
    return it == codes_.end() ? size : it->second;
  }
  int like = -1;

 private:
  std::map<int64_t, int64_t> codes_;
};

class Drawer {
 public:
  Drawer(const Op& op, const TensorList& variables, const Draw& draw) : op_(op), variables_(variables), draw_(draw) {}

  std::optional<OpUse> from(const std::string& text, const Wish& wish) {
    SampleText sample = parse_sample(text);
    bool exact = wish.exact || op_.alias;  // those that name places in memory
    std::vector<size_t> tensors;
    for (size_t k = 0; k < sample.operands.size(); ++k) {
      auto& said = sample.operands[k];
      if (said.scalar) continue;
      tensors.push_back(k);
      if (wish.sizes) said.sizes = *wish.sizes;
      if (exact && numel(said.sizes) > kMostSampled) return {};
    }
    if (wish.first && tensors.empty()) return {};
    // The operand that the others follow.
    bool plain = !wish.text.empty() || (wish.first && draw_(4) > 0);
    size_t anchor = plain ? plain_operand(sample) : tensors.empty() ? 0 : tensors[size_t(draw_(int(tensors.size())))];
    OpUse use{&op_, attributes_of(op_, text), {}, draw_(4) == 0 ? 1 : 0};
    use.arguments.resize(sample.operands.size());
    for (size_t k : tensors)
      use.arguments[k].tensor.variable = k == anchor && wish.first ? *wish.first : find(sample.operands[k]);
    for (size_t k : tensors)
      if (use.arguments[k].tensor.variable < 0) return {};
    Sizes sizes;
    if (!exact && !tensors.empty()) {
      int variable = use.arguments[anchor].tensor.variable;
      if (op_.kind != OpKind::kPointwise && !keeps_ones(sample.operands[anchor].sizes, at(variable))) return {};
      sizes.take(sample.operands[anchor].sizes, at(variable).dim(), variable);
    }
    // What `x` is: the dtype of the operand that stays as it is.
    DType dtype = standard_dtype();
    bool own = !tensors.empty() && !sample.operands[anchor].dtype && draw_(4) > 0;
    if (own && takes(at(use.arguments[anchor].tensor.variable).dtype()))
      dtype = at(use.arguments[anchor].tensor.variable).dtype();
    bool loose = !exact && op_.kind == OpKind::kPointwise && !integers_only() &&
                 draw_(2) == 0;  // broadcasts and promotes as it comes
    for (size_t k = 0; k < sample.operands.size(); ++k) {
      auto& said = sample.operands[k];
      if (said.scalar)
        use.arguments[k].number = said.number;
      else
        fit(use.arguments[k].tensor, said, dtype, exact || (k != anchor && !loose), sizes, loose);
    }
    return use;
  }

  // The first tensor of the dtype under test, or the first one.
  static size_t plain_operand(const SampleText& sample) {
    for (bool plain : {true, false})
      for (size_t k = 0; k < sample.operands.size(); ++k)
        if (!sample.operands[k].scalar && !(plain && sample.operands[k].dtype)) return k;
    return 0;
  }

 private:
  static int64_t numel(const IntList& sizes) {
    return std::accumulate(sizes.begin(), sizes.end(), int64_t(1), std::multiplies<>());
  }
  bool integers_only() const { return op_.pointwise && op_.pointwise->typing == Typing::kInteger; }
  bool takes(DType dtype) const { return !integers_only() || !is_floating(dtype); }
  DType standard_dtype() const {
    if (!integers_only()) return kFloat32;
    return std::vector{kInt64, kInt32, kUInt8, kBool}[size_t(draw_(4))];
  }

  // Where a sample has a size of 1, it may mean it: a sequence of one element is sorted.
  static bool keeps_ones(const IntList& sample, const Tensor& t) {
    if (int64_t(sample.size()) != t.dim()) return true;
    for (size_t d = 0; d < sample.size(); ++d)
      if (sample[d] == 1 && t.impl().sizes[d] != 1) return false;
    return true;
  }
  const Tensor& at(int variable) const { return variables_[size_t(variable)]; }

  // A variable of the dtype that the sample names, or any.
  int find(const SampleText::Operand& said) {
    std::vector<int> fitting, all;
    for (int v = 0; v < int(variables_.size()); ++v) {
      all.push_back(v);
      if (said.dtype ? at(v).dtype() == *said.dtype : at(v).is_floating_point()) fitting.push_back(v);
    }
    auto& among = fitting.empty() || draw_(8) == 0 ? all : fitting;
    // Later ones are more likely.
    int last = int(among.size());
    if (last == 0) return -1;
    return among[size_t(draw_(3) == 0 ? draw_(last) : last - 1 - draw_(std::min(last, 3)))];
  }

  void fit(Operand& operand, const SampleText::Operand& said, DType dtype, bool sized, const Sizes& sizes, bool loose) {
    Fit& fit = operand.fit;
    DType has = at(operand.variable).dtype(), wants = said.dtype.value_or(dtype);
    if (has != wants && (said.dtype || !loose)) fit.dtype = wants;
    if (sized) {
      fit.sizes.emplace();
      for (int64_t size : said.sizes) fit.sizes->push_back(sizes.code(size));
    }
    if (said.below > 0) fit.below = sizes.code(said.below);
    // Compiled code keeps more bits of such values between ops than eager does.
    fit.by_place = said.below > 0 && any_coarse(variables_);
    fit.like = sizes.like;
    fit.contiguous = bool(op_.alias);
    Domain standard;
    bool special = op_.domain_of_inputs.low != standard.low || op_.domain_of_inputs.high != standard.high;
    if (!special || said.dtype || !is_floating(fit.dtype.value_or(has))) return;
    if (draw_(2) == 0 && lies_in(at(operand.variable), op_.domain_of_inputs)) return;
    fit.domain = op_.domain_of_inputs;
  }

  static bool lies_in(const Tensor& t, const Domain& domain) {
    for (double value : t.to_vector<double>())
      if (!(value >= domain.low && value <= domain.high)) return false;
    return true;
  }

  const Op& op_;
  const TensorList& variables_;
  const Draw& draw_;
};

// Draws whose number of steps is random take all of their numbers from the bits of one operand: what rounding moves is another
// draw. The op table compares them.
bool seeds_by_bits(const Op& op) {
  return op.name == "_standard_gamma" || op.name == "_poisson" || op.name == "_binomial";
}

// Matrices as programs make them are often singular, or nearly so, and what such are made of is rounding.
bool factors_matrices(const Op& op) {
  for (OpFamily family : {factorization_ops(), linear_system_ops(), pseudo_inverse_ops()})
    if (std::find(family.begin(), family.end(), &op) != family.end()) return true;
  return false;
}

const std::vector<const Op*>& consumers() {
  static const std::vector<const Op*> all = [] {
    std::vector<const Op*> out;
    for (auto* op : drawn_ops())
      if (takes_tensor(*op)) out.push_back(op);
    return out;
  }();
  return all;
}

}  // namespace

std::span<const Op* const> drawn_ops() {
  static const std::vector<const Op*> all = [] {
    std::vector<const Op*> out;
    for (auto* op : all_ops())
      // How many dimensions squeeze leaves is asked by the function of that name, which statements call.
      if (op->kind != OpKind::kInput && op->kind != OpKind::kScalar && !holds_graph(*op) && op->name != "squeeze" &&
          !factors_matrices(*op) && !seeds_by_bits(*op) && !op->sees_complex)
        out.push_back(op);
    return out;
  }();
  return all;
}

size_t pair_count() { return drawn_ops().size() * consumers().size(); }

OpPair pair_of(uint32_t seed, int k) {
  // A step that shares no factor with the count visits all; near the golden ratio it does so evenly.
  static const uint64_t step = [] {
    auto candidate = uint64_t(0.618 * double(pair_count()));
    while (std::gcd(candidate, uint64_t(pair_count())) != 1) ++candidate;
    return candidate;
  }();
  uint64_t index = uint64_t(seed) * kPairs + uint64_t(k), at = index % pair_count() * step % pair_count();
  return {drawn_ops()[at / consumers().size()], consumers()[at % consumers().size()]};
}

std::optional<OpUse> draw_use(const Op& op, const TensorList& variables, const Wish& wish, const Draw& draw) {
  return Drawer(op, variables, draw).from(wish.text.empty() ? draw_sample(op, draw).first : wish.text, wish);
}

std::pair<std::string, IntList> draw_sample(const Op& op, const Draw& draw) {
  auto texts = testing::sample_texts(op);
  std::string text = texts[size_t(draw(int(texts.size())))];
  SampleText sample = parse_sample(text);
  return {text, sample.operands.empty() ? IntList() : sample.operands[Drawer::plain_operand(sample)].sizes};
}

}  // namespace sinter::fuzz
