#pragma once
// The sizes and strides of one kernel, as its text and its caller name them.
#include <map>
#include <string>
#include <vector>

#include "sinter/loops/fused.h"
#include "sinter/tensor/tensor.h"

namespace sinter {

// Numbers by the names that the kernel's text has for them.
class KernelParameters {
 public:
  // 0 and 1 mean something to the text; other sizes are symbols, equal ones the same.
  Dim size(const Dim& d) {
    if (!d.is_number() || d.number() < 2) return d;
    auto [it, fresh] = sizes_.try_emplace(d.number(), Dim());
    if (fresh) {
      std::string name = "n" + std::to_string(sizes_.size() - 1);
      it->second = Dim::symbol(name);
      values_[name] = d.number();
    }
    return it->second;
  }
  Dim stride(int operand, size_t axis, int64_t value) {
    if (value == 0 || value == 1) return value;
    std::string name = "p" + std::to_string(operand) + "_" + std::to_string(axis);
    values_[name] = value;
    return Dim::symbol(name);
  }
  int64_t value(const std::string& name) const { return values_.at(name); }
  int64_t evaluate(const Dim& d) const {
    return d.substitute([&](const std::string& name) { return Dim(value(name)); }).number();
  }

 private:
  std::map<int64_t, Dim> sizes_;
  std::map<std::string, int64_t> values_;
};

// The layout of an operand (null: a number) whose shape has been named.
Layout layout_of(const TensorImpl* impl, const Shape& shape, int operand, KernelParameters& parameters);

// The body with sizes that have names, and the layouts of its operands and results.
struct NamedFused {
  Attrs attrs;
  std::vector<Layout> layouts;
};
NamedFused name_sizes(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                      std::span<const TensorImpl* const> outputs, KernelParameters& parameters);

// A name that compilers take.
std::string kernel_name(const std::string& name);

}  // namespace sinter
