#include "sinter/capture/sizes.h"

#include "sinter/base/error.h"

namespace sinter::capture {

std::string SizeFact::text() const {
  const char* sign = op == DimCompare::kEqual  ? (holds ? "==" : "!=")
                     : op == DimCompare::kLess ? (holds ? "<" : ">=")
                                               : (holds ? "<=" : ">");
  return format("{} {} {}", a, sign, b);
}

SizeTable::SizeTable(std::vector<SizeSymbol> symbols, std::vector<SizeFact> facts)
    : symbols_(std::move(symbols)), facts_(std::move(facts)) {
  for (size_t place = 0; place < symbols_.size(); ++place) places_[symbols_[place].name] = int(place);
}

Dim SizeTable::add(const std::string& source, int64_t value, int64_t low, int64_t high, int word) {
  std::string name = "s" + std::to_string(symbols_.size());
  places_[name] = int(symbols_.size());
  symbols_.push_back({name, source, value, low, high, word, {}});
  return Dim::symbol(name);
}

Dim SizeTable::share(int place, int word) {
  symbols_[size_t(place)].same.push_back(word);
  return Dim::symbol(symbols_[size_t(place)].name);
}

int SizeTable::reserve(const std::string& name) {
  auto [it, fresh] = places_.try_emplace(name, int(symbols_.size()));
  if (fresh) symbols_.push_back({name, "a size that the data decides", -1, 0, kAnySize, -1, {}});
  return it->second;
}

void SizeTable::bind(const std::string& name, int64_t value) { symbols_[size_t(reserve(name))].value = value; }

int SizeTable::place_of(const std::string& name) const {
  auto it = places_.find(name);
  return it == places_.end() ? -1 : it->second;
}

std::optional<int64_t> SizeTable::value(const Dim& d) const {
  if (d.is_number()) return d.number();
  for (auto& name : d.symbols())
    if (place_of(name) < 0 || symbols_[size_t(place_of(name))].value < 0) return std::nullopt;
  return d.substitute([&](const std::string& name) { return Dim(symbols_[size_t(place_of(name))].value); }).number();
}

bool SizeTable::depends_on_data(const Dim& d) const {
  for (auto& name : d.symbols())
    if (place_of(name) < 0 || symbols_[size_t(place_of(name))].word < 0) return true;
  return false;
}

std::optional<bool> SizeTable::known(DimCompare op, const Dim& a, const Dim& b) const {
  auto [low, high] = (a - b).range([&](const std::string& name) {
    int place = place_of(name);
    if (place < 0) return Dim::Range{0, kAnySize};
    return Dim::Range{symbols_[size_t(place)].low, symbols_[size_t(place)].high};
  });
  switch (op) {
    case DimCompare::kEqual:
      if (low > 0 || high < 0) return false;
      break;
    case DimCompare::kLess:
      if (high < 0) return true;
      if (low >= 0) return false;
      break;
    case DimCompare::kLessEqual:
      if (high <= 0) return true;
      if (low > 0) return false;
      break;
  }
  for (auto& fact : facts_)
    if (fact.op == op && fact.a.same_as(a) && fact.b.same_as(b)) return fact.holds;
  return std::nullopt;
}

bool SizeTable::answer(DimCompare op, const Dim& a, const Dim& b, const std::string& where) {
  auto x = value(a), y = value(b);
  check(x && y, "sizes {} and {} cannot be compared: nothing is known of one of them", a, b);
  bool holds = op == DimCompare::kEqual ? *x == *y : op == DimCompare::kLess ? *x < *y : *x <= *y;
  facts_.push_back({op, a, b, holds, where});
  return holds;
}

}  // namespace sinter::capture
