#pragma once
// Every function of ATen that exported programs may call. A function is one line of one of the lists below; functions that end in
// "_" are the in-place forms of those, functions like "view_copy" copies of views, and have no line.
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sinter/interop/aten/function.h"
#include "sinter/interop/schema.h"

namespace sinter::interop {

// The lists, by family. Each is one file.
std::span<const Function> pointwise_functions();
std::span<const Function> comparison_functions();
std::span<const Function> activation_functions();
std::span<const Function> creation_functions();
std::span<const Function> random_functions();
std::span<const Function> view_functions();
std::span<const Function> copy_functions();
std::span<const Function> indexing_functions();
std::span<const Function> reduction_functions();
std::span<const Function> sorting_functions();
std::span<const Function> matrix_functions();
std::span<const Function> linalg_functions();
std::span<const Function> convolution_functions();
std::span<const Function> pool_functions();
std::span<const Function> normalization_functions();
std::span<const Function> loss_functions();
std::span<const Function> recurrent_functions();
std::span<const Function> statistics_functions();
std::span<const Function> special_functions();
std::span<const Function> complex_functions();
std::span<const Function> gradient_functions();
std::span<const Function> symbol_functions();

// A function as a program calls it.
struct Callee {
  const Function* function = nullptr;
  const Schema* schema = nullptr;
  bool in_place = false;  // the result is stored in the first argument, which is given back
  bool copies = false;    // the function gives views, and these are copied

  ValueList operator()(std::span<const Value> arguments) const;
};

// "aten.add.Tensor", "aten.add_.Tensor", "aten.view_copy", "_operator.add"; nothing where there is no such function.
std::optional<Callee> find_callee(std::string_view name);
// All lines, in the order of the lists.
std::vector<const Function*> all_functions();

}  // namespace sinter::interop
