#include "sinter/passes/padding_probe.h"

#include <algorithm>
#include <numeric>

#include "sinter/base/format.h"

namespace sinter::padding {

namespace {

constexpr int64_t kOtherSize = 240;

}  // namespace

int64_t size_at(const Dim& size, const Dim& symbol, int64_t value) {
  return size
      .substitute([&](const std::string& name) { return Dim(Dim::symbol(name).same_as(symbol) ? value : kOtherSize); })
      .number();
}

Layout Layout::plain(const Shape& shape) {
  Layout out;
  for (auto& d : shape) out.factors.push_back({d});
  return out;
}

std::vector<Dim> Layout::axes() const {
  std::vector<Dim> out;
  for (auto& dim : factors) out.insert(out.end(), dim.begin(), dim.end());
  return out;
}

bool Layout::operator==(const Layout& other) const {
  auto same = [](const Dim& a, const Dim& b) { return a.same_as(b); };
  return std::ranges::equal(factors, other.factors, [&](auto& a, auto& b) { return std::ranges::equal(a, b, same); });
}

Probe::Probe(const OpCall& call, std::span<const Fact* const> operands, const Dim& symbol, int64_t size,
             int64_t true_size, std::span<const int64_t> indices, bool last_index, ApplyCache& cache)
    : ElementBuilder(call),
      operands_(operands),
      symbol_(symbol),
      size_(size),
      true_size_(true_size),
      given_indices_(indices),
      last_index_(last_index),
      cache_(cache) {}

Elem Probe::push(const Content& content) {
  contents_.push_back(content);
  return {int(contents_.size()) - 1};
}

Elem Probe::push_applied(const OpCall& applied, DType result, std::vector<Content> operands,
                         std::span<const size_t> first_equal) {
  auto [it, fresh] = cache_.try_emplace({&applied.op, result, std::move(operands)});
  if (fresh) it->second = padding::apply(applied, result, std::get<2>(it->first), first_equal);
  return push(it->second);
}

IntList Probe::along_axes(const Layout& layout, const Index& at, size_t& region) {
  IntList out;
  size_t bit = 1;
  region = 0;
  for (size_t d = 0; d < layout.factors.size(); ++d) {
    auto& factors = layout.factors[d];
    int64_t rest = at[d].number(), stride = 1;
    for (auto& f : factors) stride *= size_at(f, symbol_, size_);
    outside_ = outside_ || rest < 0 || rest >= stride;
    for (auto& f : factors) {
      stride /= std::max<int64_t>(size_at(f, symbol_, size_), 1);
      int64_t coordinate = rest / std::max<int64_t>(stride, 1);
      rest -= coordinate * stride;
      out.push_back(coordinate);
      if (!f.depends_on(symbol_)) continue;
      if (coordinate >= size_at(f, symbol_, true_size_)) region |= bit;
      bit <<= 1;
    }
  }
  return out;
}

namespace {

bool holds(const Conditions& conditions) {
  return std::all_of(conditions.begin(), conditions.end(), [](const Condition& c) {
    int64_t value = c.value.number();
    return value >= 0 && value < c.extent.number() && value % c.multiple == 0;
  });
}

}  // namespace

Elem Probe::load_if(const Conditions& inside, int operand, const Index& at, const Scalar& otherwise) {
  Event event{Event::kRead, {}, Content::of(otherwise.to_double()), -1};
  if (holds(inside)) {
    auto& fact = *operands_[size_t(operand)];
    size_t region = 0;
    event.at = along_axes(fact.layout, at, region);
    event.content = fact.regions[region];
    event.operand = operand;
  }
  events_.push_back(event);
  return push(event.content);
}

Dim Probe::load_index(int operand, const Index& at, const Dim& extent) {
  load(operand, at);
  Content index = events_.back().content;
  events_.push_back({Event::kIndex, {extent.number()}, index});
  size_t turn = used_indices_.size();
  int64_t value = last_index_ ? std::max<int64_t>(extent.number() - 1, 0) : 0;
  if (turn < given_indices_.size()) value = given_indices_[turn];
  used_indices_.push_back(value);
  return value;
}

Elem Probe::select(const Conditions& conditions, Elem yes, Elem no) {
  bool answer = holds(conditions);
  events_.push_back({Event::kCondition, {int64_t(answer)}, {}});
  return push(content(answer ? yes : no));
}

Elem Probe::apply(const Op& op, DType dtype, std::initializer_list<Elem> args) {
  Typing typing = op.pointwise->typing;
  std::vector<Type> types(args.size(), Type{dtype, {}, {}, false});
  std::vector<Content> operands;
  for (auto& a : args) operands.push_back(content(a));
  std::vector<size_t> distinct(args.size());
  std::iota(distinct.begin(), distinct.end(), 0);
  Attrs none;
  DType result = typing == Typing::kCompare || typing == Typing::kBool ? kBool : dtype;
  return push_applied(OpCall{op, types, none}, result, std::move(operands), distinct);
}

Elem Probe::number(const Dim& value) {
  int64_t v = value.number();
  events_.push_back({Event::kNumber, {v}, {}});
  bool position = std::find(positions.begin(), positions.end(), v) != positions.end();
  if (position) return push(Content::of(uint16_t(v < true_size_ ? kBelow : kBeyond)));
  return push(Content::of(uint16_t(v < 0 ? kNegative : v == 0 ? kZero : kPositive)));
}

Elem Probe::apply_call(const Type& result, std::span<const size_t> first_equal) {
  std::vector<Content> operands;
  for (size_t j = 0; j < call.inputs.size(); ++j) {
    auto& shape = call.inputs[j].shape;
    Index at;
    for (size_t d = 0; d < shape.size(); ++d)
      at.push_back(shape[d].same_as(1) ? Dim(0) : i[d + result.shape.size() - shape.size()]);
    operands.push_back(content(load(int(j), at)));
  }
  return push_applied(call, result.dtype, std::move(operands), first_equal);
}

void Probe::record_target(const Index& target, const Layout& layout) {
  Event event{Event::kTarget, {}, {}};
  event.at = along_axes(layout, target, event.region);
  events_.push_back(event);
}

std::string difference(const std::vector<Event>& truth, const std::vector<Event>& padded, const Dim& symbol) {
  if (truth.size() != padded.size()) return format("its definition depends on the padded size {}", symbol);
  for (size_t n = 0; n < truth.size(); ++n) {
    auto &a = truth[n], &b = padded[n];
    bool equal = a.operand == b.operand && a.at == b.at;
    // A read past the true end that finds what the op takes for elements outside, or the same constant everywhere.
    bool same_constant = a.content.constant && a.content.constant == b.content.constant;
    switch (a.kind) {
      case Event::kRead:
        if (!equal && !same_constant)
          return format("what it reads for an element depends on the padded size {}", symbol);
        break;
      case Event::kCondition:
        if (!equal) return format("which operand an element comes from depends on the padded size {}", symbol);
        break;
      case Event::kNumber:
        if (!equal) return format("it makes a value of the padded size {}", symbol);
        break;
      case Event::kIndex:
        if (!equal && b.content.may_be_negative())
          return format("an index that may be negative counts from the end of the padded size {}", symbol);
        break;
      case Event::kTarget:
        if (!equal) return format("where it writes depends on the padded size {}", symbol);
        break;
    }
  }
  return {};
}

}  // namespace sinter::padding
