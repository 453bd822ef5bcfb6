#pragma once
// Element definitions run on numbers: every coordinate is known, every load gives a value.
#include <vector>

#include "sinter/graph/interpreter.h"
#include "sinter/graph/interpreter/number.h"

namespace sinter::interpreter {

class ConcreteElements final : public ElementBuilder {
 public:
  ConcreteElements(const OpCall& call, std::span<const Array* const> inputs);

  Elem load(int operand, const Index& at) override;
  Elem load_if(const Conditions& inside, int operand, const Index& at, const Scalar& otherwise) override;
  Dim load_index(int operand, const Index& at, const Dim& extent) override;
  Elem select(const Conditions& conditions, Elem yes, Elem no) override;
  Elem apply(const Op& pointwise, DType dtype, std::initializer_list<Elem> args) override;
  Elem number(const Dim& value) override;
  Elem constant(const Scalar& value) override;

  // The op's element at the present coordinates `i` and `k`.
  Number evaluate();

 private:
  Elem push(Number value);
  int64_t offset(int operand, const Index& at) const;
  Number element_of(int operand, int64_t offset) const;

  std::span<const Array* const> inputs_;
  std::vector<IntList> strides_;
  std::vector<Number> values_;  // what the Elems of the present element stand for
};

// Visits the coordinates of these sizes in row-major order, as Dims in `at`.
template <class F>
void for_each_coordinate(const IntList& sizes, Index& at, F&& visit) {
  at.clear();
  for (int64_t size : sizes) {
    if (size == 0) return;
    at.push_back(0);
  }
  for (;;) {
    visit();
    size_t d = sizes.size();
    while (d > 0 && (at[d - 1] = at[d - 1].number() + 1).number() == sizes[d - 1]) at[--d] = 0;
    if (d == 0) return;
  }
}

}  // namespace sinter::interpreter
