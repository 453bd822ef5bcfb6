#pragma once
// The symbolic sizes of one captured program: their present values, what is known of them, and the questions that were
// answered by their values, each of which becomes a guard.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sinter/tensor/dim.h"

namespace sinter::capture {

inline constexpr int64_t kAnySize = int64_t(1) << 40;

// A symbol, and where a call finds its value.
struct SizeSymbol {
  std::string name;
  std::string source;  // "x.size(0)"
  int64_t value = 0;   // when captured; -1: not known yet
  int64_t low = 2, high = kAnySize;
  int word = -1;       // place in the signature of the call; -1: known once a segment has run
  std::vector<int> same = {};  // other words that had this value when captured, and must have it again
};

// A fact about sizes on which the captured program relies.
struct SizeFact {
  DimCompare op;
  Dim a, b;
  bool holds = true;
  std::string where;  // the line that asked

  // "s0 % 4 == 0".
  std::string text() const;
};

class SizeTable {
 public:
  SizeTable() = default;
  // One as it was: for a program that is not traced.
  SizeTable(std::vector<SizeSymbol> symbols, std::vector<SizeFact> facts);

  // A new symbol s0, s1, …
  Dim add(const std::string& source, int64_t value, int64_t low, int64_t high, int word);
  // A word with the value of an earlier symbol shares it: sizes that were equal once usually always are.
  Dim share(int place, int word);
  // A size that the data decides: any number from 0 on, known once it is bound. Gives its place.
  int reserve(const std::string& name);
  void bind(const std::string& name, int64_t value);

  const std::vector<SizeSymbol>& symbols() const { return symbols_; }
  const std::vector<SizeFact>& facts() const { return facts_; }
  int place_of(const std::string& name) const;  // -1 when unknown
  const std::map<std::string, int>& places() const { return places_; }
  // The present number; nothing while a symbol of it has no value.
  std::optional<int64_t> value(const Dim& d) const;
  bool has_argument_sizes() const { return !symbols_.empty() && symbols_.front().word >= 0; }
  bool has_data_sizes() const { return !symbols_.empty() && symbols_.back().word < 0; }
  // Whether it rests on a size that only the data knows.
  bool depends_on_data(const Dim& d) const;
  // The answer that follows from what is known of the symbols, if one does.
  std::optional<bool> known(DimCompare op, const Dim& a, const Dim& b) const;
  // Answers by the present values and remembers the fact.
  bool answer(DimCompare op, const Dim& a, const Dim& b, const std::string& where);

 private:
  std::vector<SizeSymbol> symbols_;
  std::map<std::string, int> places_;
  std::vector<SizeFact> facts_;
};

}  // namespace sinter::capture
