#pragma once
// Test operands made from the op list itself: each op's samples (or, for pointwise ops, its arity) become values, which
// are laid out in memory in several ways.
#include <string>
#include <vector>

#include "sinter/graph/interpreter.h"
#include "sinter/graph/op.h"

namespace sinter::testing {

struct SampleOperand {
  bool scalar = false;
  Scalar number = 0;  // when scalar
  Array values;       // else; already rounded to its dtype
};

struct Sample {
  const Op* op;
  std::string text;
  std::vector<SampleOperand> operands;
  Attrs attrs;
  FieldTexts fields;  // the attributes as the text names them

  std::vector<Type> types() const;
  // Whether the op takes these operands at all: a refusal is the op's own, and an Error.
  bool accepted() const;
};

// One sample from its text, `x` being of this dtype: "x[2, 3], i64[4]<3, 1.5 | dim=1".
Sample sample_from(const Op& op, std::string_view text, DType dtype);

// The texts of an op's samples; those of pointwise ops follow from their arity.
std::vector<std::string> sample_texts(const Op& op);
// The op's samples with `x` of this dtype. Values are drawn from the op's domain, the same in every run.
std::vector<Sample> samples_of(const Op& op, DType dtype);

enum class MemoryLayout { kContiguous, kTransposed, kSliced, kBroadcast };
inline constexpr MemoryLayout kAllLayouts[] = {MemoryLayout::kContiguous, MemoryLayout::kTransposed, MemoryLayout::kSliced,
                                               MemoryLayout::kBroadcast};
const char* name_of(MemoryLayout layout);

// An eager tensor that reads as the array, with the given layout. kBroadcast first makes the array constant along its
// largest dimension, so that a stride of 0 describes it: the array changes.
Tensor lay_out(Array& values, MemoryLayout layout);

// The referee's result of one op.
std::vector<Array> referee(const Sample& sample);
// The same elements with the same strides in a device's memory.
Tensor moved(const Tensor& tensor, Device device);
// The eager result, with every operand in this layout on this device. Changes the sample's values when the layout is
// kBroadcast.
TensorList run_eagerly(Sample& sample, MemoryLayout layout, Device device = {});

// An empty text when `got` agrees with the double-precision `want` within the tolerance; else where and by how much not.
std::string difference(const Tensor& got, const Array& want, const Tolerance& tolerance);

}  // namespace sinter::testing
