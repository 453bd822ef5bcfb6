#pragma once
// The sizes and strides of one kernel: what they are called, and what they are.
#include <map>
#include <string>
#include <vector>

#include "sinter/loops/fused.h"
#include "sinter/tensor/tensor.h"

namespace sinter {

class KernelParameters {
 public:
  // 0 and 1 mean something to the text; other sizes are symbols, equal ones the same.
  Dim size(const Dim& d) {
    if (!d.is_number() || d.number() < 2) return d;
    auto [it, fresh] = sizes_.try_emplace(d.number(), Dim());
    if (fresh) it->second = with_value(names_.size(int64_t(sizes_.size()) - 1), d.number());
    return it->second;
  }
  // Sizes that a body splits or joins are products of each other, so that what the text does with coordinates cancels.
  // Where the last part is 2, neighbours may take turns: that 2 is part of the text.
  void relate_products(const Graph& body);

  Dim stride(int operand, size_t axis, int64_t value) {
    if (value == 0 || value == 1 || (value == 2 && two_is_text_)) return value;
    return with_value(names_.stride(operand, int64_t(axis)), value);
  }
  // For lowering.
  const Parameters& names() const { return names_; }

  int64_t evaluate(const Dim& d) const {
    return d.substitute([&](const std::string& name) { return Dim(values_.at(name)); }).number();
  }
  int64_t product_of(const std::vector<Axis>& axes) const {
    int64_t out = 1;
    for (auto& axis : axes) out *= evaluate(axis.extent);
    return out;
  }
  // Those that the nest's kernel takes, in its order.
  std::vector<int64_t> values_for(const LoopNest& nest) const {
    std::vector<int64_t> out;
    for (auto& p : nest.parameters) out.push_back(values_.at(p.name));
    return out;
  }

 private:
  Dim with_value(const Dim& symbol, int64_t value) {
    values_[to_string(symbol)] = value;
    return symbol;
  }

  std::map<int64_t, Dim> sizes_;
  bool two_is_text_ = false;
  Parameters names_;
  std::map<std::string, int64_t> values_;  // by name
};

// The layout of an operand (null: a number) whose shape has been named.
Layout layout_of(const TensorImpl* impl, const Shape& shape, int operand, KernelParameters& parameters);

// The body with sizes that have names, and the layouts of its operands (`inputs`: without tiles) and results.
struct NamedFused {
  Attrs attrs;
  std::vector<Layout> layouts;
};
NamedFused name_sizes(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                      std::span<const TensorImpl* const> outputs, KernelParameters& parameters);

// Loops follow the memory of a result of the whole domain, or of an operand that is reduced: its innermost dimension last.
IntList memory_order(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                     std::span<const TensorImpl* const> outputs);

// Where a kernel notes an index that is out of range: its last argument.
class IndexError {
 public:
  explicit IndexError(const std::string& ops, Device device = {}) : ops_(ops), device_(device) {}
  int64_t cell();
  // Throws when one was. What a GPU found is thrown when the host waits for it.
  void check() const;

 private:
  const std::string& ops_;
  Device device_;
  int64_t error_[3] = {};
};

// A name that compilers take.
std::string kernel_name(const std::string& name);

}  // namespace sinter
