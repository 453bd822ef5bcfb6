#pragma once
// An op's definition run at sample coordinates: what it reads there, with a true size and with a padded one.
#include <map>
#include <tuple>

#include "sinter/graph/op.h"
#include "sinter/passes/padding_content.h"

namespace sinter::padding {

// What the symbol stands for in a pair of runs.
struct Sizes {
  int64_t truth, padded;
};
// Large sizes with many divisors, unlike the constants of programs, and small ones, which some of these exceed.
inline constexpr Sizes kLargeSizes{5 * 6720, 7 * 6720}, kSmallSizes{4, 10};

// A size with numbers for its symbols; all but the padded one stand for the same number.
int64_t size_at(const Dim& size, const Dim& symbol, int64_t value);

// How the padding lies in a value. A dimension may have been merged of several: its factors, outermost first. The
// factors of all dimensions in a row are the axes; those that depend on the symbol are padded at their end.
struct Layout {
  std::vector<std::vector<Dim>> factors;  // per dimension

  static Layout plain(const Shape& shape);
  std::vector<Dim> axes() const;
  bool operator==(const Layout& other) const;
};

// What is known of a value: one content per region. Bit j of a region's number says that the coordinate of the j-th
// padded axis lies in the padding; region 0 is what the unpadded program has too.
struct Fact {
  Layout layout;
  std::vector<Content> regions;
};

// Results of pointwise ops on contents, within one node: samples repeat them many times.
using ApplyCache = std::map<std::tuple<const Op*, DType, std::vector<Content>>, Content>;

// Something that a definition did.
struct Event {
  enum Kind { kRead, kCondition, kNumber, kIndex, kTarget } kind;
  IntList at;  // kRead and kTarget: coordinates along the axes; kCondition, kNumber: the answer; kIndex: its extent
  Content content;    // of what was read
  int operand = -1;   // kRead
  size_t region = 0;  // kTarget
};

class Probe final : public ElementBuilder {
 public:
  // `size` is what the symbol stands for in `call`, `true_size` in the unpadded run. Indices that the operands hold are
  // taken from `indices` in turn while there are any, and are then the last or the first of their range.
  Probe(const OpCall& call, std::span<const Fact* const> operands, const Dim& symbol, int64_t size, int64_t true_size,
        std::span<const int64_t> indices, bool last_index, ApplyCache& cache);

  Elem load(int operand, const Index& at) override { return load_if({}, operand, at, 0); }
  Elem load_if(const Conditions& inside, int operand, const Index& at, const Scalar& otherwise) override;
  Dim load_index(int operand, const Index& at, const Dim& extent) override;
  Elem select(const Conditions& conditions, Elem yes, Elem no) override;
  Elem apply(const Op& pointwise, DType dtype, std::initializer_list<Elem> args) override;
  Elem number(const Dim& value) override;
  Elem constant(const Scalar& value) override { return push(Content::of(value.to_double())); }

  // A pointwise node, whose operands broadcast. `first_equal` as in apply() of contents.
  Elem apply_call(const Type& result, std::span<const size_t> first_equal);
  // Where a scatter writes.
  void record_target(const Index& target, const Layout& layout);

  const Content& content(Elem elem) const { return contents_[size_t(elem.id)]; }
  const std::vector<Event>& events() const { return events_; }
  const std::vector<int64_t>& indices() const { return used_indices_; }
  // Whether it read outside of an operand: the program does not take this size.
  bool outside() const { return outside_; }

  IntList positions;  // coordinates along axes of exactly the symbol's size

 private:
  Elem push(const Content& content);
  Elem push_applied(const OpCall& call, DType result, std::vector<Content> operands,
                    std::span<const size_t> first_equal);
  // Coordinates along the axes, and the region they lie in.
  IntList along_axes(const Layout& layout, const Index& at, size_t& region);

  std::span<const Fact* const> operands_;
  const Dim& symbol_;
  int64_t size_, true_size_;
  std::span<const int64_t> given_indices_;
  bool last_index_;
  ApplyCache& cache_;
  std::vector<Content> contents_;
  std::vector<Event> events_;
  std::vector<int64_t> used_indices_;
  bool outside_ = false;
};

// The first thing in which the true and the padded run of one element differ, as text; empty when they read the same.
std::string difference(const std::vector<Event>& truth, const std::vector<Event>& padded, const Dim& symbol);

}  // namespace sinter::padding
