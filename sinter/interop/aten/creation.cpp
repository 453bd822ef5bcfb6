// Tensors made from numbers, and conversions.
#include "sinter/ops/creation.h"
#include "sinter/interop/aten/table.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/view.h"

namespace sinter::interop {

namespace {

// What a tensor like another one is: its dtype and device unless others are named.
std::optional<TensorOptions> like(MaybeType dtype, MaybeDevice device) { return options_of(dtype, device); }

std::optional<TensorOptions> wanted(MaybeType dtype, MaybeDevice device) {
  if (!dtype && !device) return std::nullopt;
  return options_of(dtype, device);
}

// A range keeps the kind of its numbers where no dtype is named.
TensorOptions range_options(std::initializer_list<Scalar> numbers, MaybeType dtype, MaybeDevice device) {
  bool floating = false;
  for (auto& number : numbers) floating = floating || number.is_floating();
  return options_of(dtype ? *dtype : floating ? kFloat32 : kInt64, device);
}

// 0, 1, … to a size of the program stay symbolic.
Tensor range_to(const Value& end, MaybeType dtype, Ignored, MaybeDevice device, Ignored) {
  if (auto* dim = std::get_if<Dim>(&end.held))
    return arange_of_size(max(*dim, 0), options_of(dtype.value_or(kInt64), device));
  Scalar number = value_to<Scalar>(end);
  return arange(number, range_options({number}, dtype, device));
}

Tensor range_between(const Value& start, const Value& end, MaybeType dtype, Ignored, MaybeDevice device, Ignored) {
  if (start.is<Dim>() && end.is<Dim>() && !(start.as<Dim>().is_number() && end.as<Dim>().is_number())) {
    Tensor steps = arange_of_size(max(end.as<Dim>() - start.as<Dim>(), 0), options_of(dtype.value_or(kInt64), device));
    return steps + start.as<Dim>();
  }
  auto first = value_to<Scalar>(start), last = value_to<Scalar>(end);
  return arange(first, last, range_options({first, last}, dtype, device));
}

Tensor range_in_steps(const Value& start, const Value& end, const Value& step, MaybeType dtype, Ignored layout,
                      MaybeDevice device, Ignored pinned) {
  auto width = value_to<Scalar>(step);
  if (!width.is_floating() && width.to_int() == 1) return range_between(start, end, dtype, layout, device, pinned);
  auto first = value_to<Scalar>(start), last = value_to<Scalar>(end);
  return arange(first, last, width, range_options({first, last, width}, dtype, device));
}

// Memory nobody has written yet is zeros, so that results do not depend on what lay there.
Tensor blank(Sizes size, MaybeType dtype, Ignored, MaybeDevice device, Ignored, Ignored) {
  return zeros(size, options_of(dtype, device));
}

Tensor converted(const Tensor& x, MaybeType dtype, MaybeDevice device, bool copy, MaybeFormat format) {
  Tensor out = x.to(options_of(dtype, device), /*non_blocking=*/false, copy);
  return format && *format != MemoryFormat::kPreserve ? out.to(*format) : out;
}

// Ends that are tensors are read.
Scalar end_of(const Scalar& end) { return end; }
Scalar end_of(const Tensor& end) { return end.item(); }

template <class From, class To>
Tensor evenly_spaced(const From& start, const To& end, Int steps, MaybeType dtype, Ignored, MaybeDevice device,
                     Ignored) {
  return linspace(end_of(start), end_of(end), steps, options_of(dtype, device));
}
template <class From, class To>
Tensor powers_evenly_spaced(const From& start, const To& end, Int steps, double base, MaybeType dtype, Ignored,
                            MaybeDevice device, Ignored) {
  return logspace(end_of(start), end_of(end), steps, base, options_of(dtype, device));
}

}  // namespace

std::span<const Function> creation_functions() {
  static const Function kList[] = {
      {"full(SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
       "bool? pin_memory=None) -> Tensor",
       [](Sizes size, In value, MaybeType dtype, Ignored, MaybeDevice device, Ignored) {
         return full(size, value, wanted(dtype, device));
       }},
      {"zeros(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
       "pin_memory=None) -> Tensor",
       [](Sizes size, MaybeType dtype, Ignored, MaybeDevice device, Ignored) {
         return zeros(size, options_of(dtype, device));
       }},
      {"ones(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
       "pin_memory=None) -> Tensor",
       [](Sizes size, MaybeType dtype, Ignored, MaybeDevice device, Ignored) {
         return ones(size, options_of(dtype, device));
       }},
      {"empty.memory_format(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
       "pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
       blank},
      {"empty_strided(SymInt[] size, SymInt[] stride, *, ScalarType? dtype=None, Layout? layout=None, Device? "
       "device=None, bool? pin_memory=None) -> Tensor",
       [](Sizes size, Ignored, MaybeType dtype, Ignored, MaybeDevice device, Ignored) {
         return zeros(size, options_of(dtype, device));
       }},
      {"empty_permuted(SymInt[] size, int[] physical_layout, *, ScalarType? dtype=None, Layout? layout=None, Device? "
       "device=None, bool? pin_memory=None) -> Tensor",
       [](Sizes size, Ignored, MaybeType dtype, Ignored, MaybeDevice device, Ignored) {
         return zeros(size, options_of(dtype, device));
       }},
      {"scalar_tensor(Scalar s, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
       "pin_memory=None) -> Tensor",
       [](In value, MaybeType dtype, Ignored, MaybeDevice device, Ignored) {
         return full({}, value, options_of(dtype.value_or(kFloat32), device));
       }},
      {"full_like(Tensor self, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
       "bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
       [](In x, In value, MaybeType dtype, Ignored, MaybeDevice device, Ignored, MaybeFormat format) {
         return full_like(x, value, like(dtype, device), format.value_or(kPreserve));
       }},
      {"zeros_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
       "pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
       [](In x, MaybeType dtype, Ignored, MaybeDevice device, Ignored, MaybeFormat format) {
         return zeros_like(x, like(dtype, device), format.value_or(kPreserve));
       }},
      {"ones_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
       "pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
       [](In x, MaybeType dtype, Ignored, MaybeDevice device, Ignored, MaybeFormat format) {
         return ones_like(x, like(dtype, device), format.value_or(kPreserve));
       }},
      {"empty_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
       "pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
       [](In x, MaybeType dtype, Ignored, MaybeDevice device, Ignored, MaybeFormat format) {
         return zeros_like(x, like(dtype, device), format.value_or(kPreserve));
       }},
      {"new_zeros(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
       "bool? pin_memory=None) -> Tensor",
       [](const Tensor& x, Sizes size, MaybeType dtype, Ignored, MaybeDevice device, Ignored) {
         return x.new_zeros(size, options_of(dtype, device));
       }},
      {"new_ones(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
       "bool? pin_memory=None) -> Tensor",
       [](const Tensor& x, Sizes size, MaybeType dtype, Ignored, MaybeDevice device, Ignored) {
         return x.new_ones(size, options_of(dtype, device));
       }},
      {"new_empty(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
       "bool? pin_memory=None) -> Tensor",
       [](const Tensor& x, Sizes size, MaybeType dtype, Ignored, MaybeDevice device, Ignored) {
         return x.new_zeros(size, options_of(dtype, device));
       }},
      {"new_empty_strided(Tensor self, SymInt[] size, SymInt[] stride, *, ScalarType? dtype=None, Layout? layout=None, "
       "Device? device=None, bool? pin_memory=None) -> Tensor",
       [](const Tensor& x, Sizes size, Ignored, MaybeType dtype, Ignored, MaybeDevice device, Ignored) {
         return x.new_zeros(size, options_of(dtype, device));
       }},
      {"new_full(Tensor self, SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, "
       "Device? device=None, bool? pin_memory=None) -> Tensor",
       [](const Tensor& x, Sizes size, In value, MaybeType dtype, Ignored, MaybeDevice device, Ignored) {
         return x.new_full(size, value, options_of(dtype, device));
       }},

      {"arange(Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) "
       "-> Tensor",
       range_to},
      {"arange.start(Scalar start, Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
       "bool? pin_memory=None) -> Tensor",
       range_between},
      {"arange.start_step(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, Layout? layout=None, "
       "Device? device=None, bool? pin_memory=None) -> Tensor",
       range_in_steps},
      {"linspace(Scalar start, Scalar end, int steps, *, ScalarType? dtype=None, Layout? layout=None, Device? "
       "device=None, bool? pin_memory=None) -> Tensor",
       [](const Scalar& start, const Scalar& end, const Dim& steps, MaybeType dtype, Ignored, MaybeDevice device,
          Ignored) { return linspace(start, end, steps, options_of(dtype, device)); }},
      {"linspace.Tensor_Tensor(Tensor start, Tensor end, int steps, *, ScalarType? dtype=None, Layout? layout=None, "
       "Device? device=None, bool? pin_memory=None) -> Tensor",
       evenly_spaced<Tensor, Tensor>},
      {"linspace.Tensor_Scalar(Tensor start, Scalar end, int steps, *, ScalarType? dtype=None, Layout? layout=None, "
       "Device? device=None, bool? pin_memory=None) -> Tensor",
       evenly_spaced<Tensor, Scalar>},
      {"linspace.Scalar_Tensor(Scalar start, Tensor end, int steps, *, ScalarType? dtype=None, Layout? layout=None, "
       "Device? device=None, bool? pin_memory=None) -> Tensor",
       evenly_spaced<Scalar, Tensor>},
      {"logspace.Tensor_Tensor(Tensor start, Tensor end, int steps, float base=10., *, ScalarType? dtype=None, Layout? "
       "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
       powers_evenly_spaced<Tensor, Tensor>},
      {"logspace.Tensor_Scalar(Tensor start, Scalar end, int steps, float base=10., *, ScalarType? dtype=None, Layout? "
       "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
       powers_evenly_spaced<Tensor, Scalar>},
      {"logspace.Scalar_Tensor(Scalar start, Tensor end, int steps, float base=10., *, ScalarType? dtype=None, Layout? "
       "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
       powers_evenly_spaced<Scalar, Tensor>},
      {"logspace(Scalar start, Scalar end, int steps, float base=10., *, ScalarType? dtype=None, Layout? layout=None, "
       "Device? device=None, bool? pin_memory=None) -> Tensor",
       [](const Scalar& start, const Scalar& end, const Dim& steps, double base, MaybeType dtype, Ignored,
          MaybeDevice device, Ignored) { return logspace(start, end, steps, base, options_of(dtype, device)); }},
      {"eye(SymInt n, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> "
       "Tensor",
       [](const Dim& n, MaybeType dtype, Ignored, MaybeDevice device, Ignored) {
         return eye(n, options_of(dtype, device));
       }},
      {"eye.m(SymInt n, SymInt m, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
       "pin_memory=None) -> Tensor",
       [](const Dim& n, const Dim& m, MaybeType dtype, Ignored, MaybeDevice device, Ignored) {
         return eye(n, m, options_of(dtype, device));
       }},
      {"tril(Tensor self, SymInt diagonal=0) -> Tensor", [](In x, Int diagonal) { return tril(x, diagonal); }},
      {"triu(Tensor self, SymInt diagonal=0) -> Tensor", [](In x, Int diagonal) { return triu(x, diagonal); }},
      {"tril_indices(int row, int col, int offset=0, *, ScalarType? dtype=4, Layout? layout=None, Device? device=None, "
       "bool? pin_memory=None) -> Tensor",
       [](const Dim& rows, const Dim& columns, Int offset, MaybeType dtype, Ignored, MaybeDevice device, Ignored) {
         return tril_indices(rows, columns, offset, options_of(dtype.value_or(kInt64), device));
       }},
      {"triu_indices(int row, int col, int offset=0, *, ScalarType? dtype=4, Layout? layout=None, Device? device=None, "
       "bool? pin_memory=None) -> Tensor",
       [](const Dim& rows, const Dim& columns, Int offset, MaybeType dtype, Ignored, MaybeDevice device, Ignored) {
         return triu_indices(rows, columns, offset, options_of(dtype.value_or(kInt64), device));
       }},
      {"one_hot(Tensor self, int num_classes=-1) -> Tensor", one_hot},
      {"meshgrid(Tensor[] tensors) -> Tensor[]", [](const TensorList& tensors) { return meshgrid(tensors); }},
      {"meshgrid.indexing(Tensor[] tensors, *, str indexing) -> Tensor[]",
       [](const TensorList& tensors, Text indexing) { return meshgrid(tensors, indexing); }},

      // --- fillings
      {"fill.Scalar(Tensor self, Scalar value) -> Tensor", fill},
      {"fill.Tensor(Tensor self, Tensor value) -> Tensor", fill},
      {"zero(Tensor self) -> Tensor", [](In x) { return zeros_like(x); }},
      {"zero_(Tensor(a!) self) -> Tensor(a!)", [](const Tensor& x) { return x.zero_(); }},
      {"copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor",
       [](In x, In source, Ignored) { return copy(x, source); }},
      {"copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)",
       [](const Tensor& x, In source, Ignored) { return x.copy_(source); }},
      {"fill_diagonal_(Tensor(a!) self, Scalar fill_value, bool wrap=False) -> Tensor(a!)",
       [](const Tensor& x, In value, bool wrap) { return x.fill_diagonal_(value, wrap); }},

      // --- conversions
      {"_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
       "pin_memory=None, bool non_blocking=False, MemoryFormat? memory_format=None) -> Tensor",
       [](const Tensor& x, MaybeType dtype, Ignored, MaybeDevice device, Ignored, Ignored, MaybeFormat format) {
         return converted(x, dtype, device, /*copy=*/true, format);
       }},
      {"prims::convert_element_type.default(Tensor a, ScalarType dtype) -> Tensor",
       [](const Tensor& x, DType dtype) { return converted(x, dtype, std::nullopt, /*copy=*/true, std::nullopt); }},
      {"to.dtype(Tensor(a) self, ScalarType dtype, bool non_blocking=False, bool copy=False, MemoryFormat? "
       "memory_format=None) -> Tensor(a)",
       [](const Tensor& x, DType dtype, Ignored, bool copy, MaybeFormat format) {
         return converted(x, dtype, std::nullopt, copy, format);
       }},
      {"to.dtype_layout(Tensor(a) self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
       "pin_memory=None, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)",
       [](const Tensor& x, MaybeType dtype, Ignored, MaybeDevice device, Ignored, Ignored, bool copy,
          MaybeFormat format) { return converted(x, dtype, device, copy, format); }},
      {"to.device(Tensor(a) self, Device device, ScalarType dtype, bool non_blocking=False, bool copy=False, "
       "MemoryFormat? memory_format=None) -> Tensor(a)",
       [](const Tensor& x, Device device, DType dtype, Ignored, bool copy, MaybeFormat format) {
         return converted(x, dtype, device, copy, format);
       }},
      {"to.other(Tensor(a) self, Tensor other, bool non_blocking=False, bool copy=False, MemoryFormat? "
       "memory_format=None) -> Tensor(a)",
       [](const Tensor& x, const Tensor& other, Ignored, bool copy, MaybeFormat format) {
         return converted(x, other.dtype(), other.device(), copy, format);
       }},
      {"type_as(Tensor self, Tensor other) -> Tensor",
       [](const Tensor& x, const Tensor& other) { return x.type_as(other); }},
      {"clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
       [](In x, MaybeFormat format) { return clone(x, format.value_or(MemoryFormat::kPreserve)); }},
      {"contiguous(Tensor(a) self, *, MemoryFormat memory_format=0) -> Tensor(a)",
       [](const Tensor& x, MemoryFormat format) { return x.contiguous(format); }},
      {"lift_fresh(Tensor(a) self) -> Tensor(a)", [](In x) { return alias(x); }},
      {"lift_fresh_copy(Tensor self) -> Tensor", [](In x) { return clone(x); }},
      {"lift(Tensor self) -> Tensor", [](In x) { return alias(x); }},
  };
  return kList;
}

}  // namespace sinter::interop
