// Random tensors. Numbers come from Sinter's own stream and differ from PyTorch's.
#include "sinter/interop/aten/table.h"
#include "sinter/ops/creation.h"

namespace sinter::interop {

std::span<const Function> random_functions() {
  static const Function kList[] = {
      {"rand(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
       "pin_memory=None) -> Tensor",
       [](Sizes size, MaybeType dtype, Ignored, MaybeDevice device, Ignored) {
         return rand(size, options_of(dtype, device));
       }},
      {"randn(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
       "pin_memory=None) -> Tensor",
       [](Sizes size, MaybeType dtype, Ignored, MaybeDevice device, Ignored) {
         return randn(size, options_of(dtype, device));
       }},
      {"randint(SymInt high, SymInt[] size, *, ScalarType? dtype=4, Layout? layout=None, Device? device=None, bool? "
       "pin_memory=None) -> Tensor",
       [](Int high, Sizes size, MaybeType dtype, Ignored, MaybeDevice device, Ignored) {
         return randint(high, size, options_of(dtype.value_or(kInt64), device));
       }},
      {"randint.low(SymInt low, SymInt high, SymInt[] size, *, ScalarType? dtype=4, Layout? layout=None, Device? "
       "device=None, bool? pin_memory=None) -> Tensor",
       [](Int low, Int high, Sizes size, MaybeType dtype, Ignored, MaybeDevice device, Ignored) {
         return randint(low, high, size, options_of(dtype.value_or(kInt64), device));
       }},
      {"randperm(SymInt n, *, ScalarType? dtype=4, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> "
       "Tensor",
       [](const Dim& n, MaybeType dtype, Ignored, MaybeDevice device, Ignored) {
         return randperm(n, options_of(dtype.value_or(kInt64), device));
       }},
      {"rand_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
       "pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
       [](In x, MaybeType dtype, Ignored, MaybeDevice device, Ignored, MaybeFormat format) {
         return rand_like(x, options_of(dtype, device), format.value_or(kPreserve));
       }},
      {"randn_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
       "pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
       [](In x, MaybeType dtype, Ignored, MaybeDevice device, Ignored, MaybeFormat format) {
         return randn_like(x, options_of(dtype, device), format.value_or(kPreserve));
       }},
      {"randint_like(Tensor self, SymInt high, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
       "bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
       [](In x, Int high, MaybeType dtype, Ignored, MaybeDevice device, Ignored, MaybeFormat format) {
         return randint_like(x, high, options_of(dtype, device), format.value_or(kPreserve));
       }},
      {"randint_like.low_dtype(Tensor self, SymInt low, SymInt high, *, ScalarType? dtype=None, Layout? layout=None, "
       "Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
       [](In x, Int low, Int high, MaybeType dtype, Ignored, MaybeDevice device, Ignored, MaybeFormat format) {
         return randint_like(x, low, high, options_of(dtype, device), format.value_or(kPreserve));
       }},
      {"bernoulli(Tensor self, *, Generator? generator=None) -> Tensor", [](In p, Unset) { return bernoulli(p); }},
      {"bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor",
       [](In x, double p, Unset) { return bernoulli(x, p); }},
      {"bernoulli_.float(Tensor(a!) self, float p=0.5, *, Generator? generator=None) -> Tensor(a!)",
       [](const Tensor& x, double p, Unset) { return x.bernoulli_(p); }},
      {"multinomial(Tensor self, SymInt num_samples, bool replacement=False, *, Generator? generator=None) -> Tensor",
       [](In weights, Int count, bool replacement, Unset) { return multinomial(weights, count, replacement); }},
      {"normal.Tensor_float(Tensor mean, float std=1., *, Generator? generator=None) -> Tensor",
       [](const Tensor& mean, double std, Unset) { return normal(mean, std); }},
      {"normal.float_Tensor(float mean, Tensor std, *, Generator? generator=None) -> Tensor",
       [](double mean, const Tensor& std, Unset) { return normal(mean, std); }},
      {"normal.Tensor_Tensor(Tensor mean, Tensor std, *, Generator? generator=None) -> Tensor",
       [](const Tensor& mean, const Tensor& std, Unset) { return normal(mean, std); }},
      {"normal.float_float(float mean, float std, SymInt[] size, *, Generator? generator=None, ScalarType? dtype=None, "
       "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
       [](double mean, double std, Sizes size, Unset, MaybeType dtype, Ignored, MaybeDevice device, Ignored) {
         return normal(mean, std, size, options_of(dtype, device));
       }},
      {"normal_(Tensor(a!) self, float mean=0., float std=1., *, Generator? generator=None) -> Tensor(a!)",
       [](const Tensor& x, double mean, double std, Unset) { return x.normal_(mean, std); }},
      {"uniform_(Tensor(a!) self, float from=0., float to=1., *, Generator? generator=None) -> Tensor(a!)",
       [](const Tensor& x, double low, double high, Unset) { return x.uniform_(low, high); }},
      {"exponential_(Tensor(a!) self, float lambd=1., *, Generator? generator=None) -> Tensor(a!)",
       [](const Tensor& x, double rate, Unset) { return x.exponential_(rate); }},
      {"random_.from(Tensor(a!) self, int from, int? to, *, Generator? generator=None) -> Tensor(a!)",
       [](const Tensor& x, Int from, Int to, Unset) { return x.random_(from, to); }},
      {"random_.to(Tensor(a!) self, int to, *, Generator? generator=None) -> Tensor(a!)",
       [](const Tensor& x, Int to, Unset) { return x.random_(to); }},
      {"random_(Tensor(a!) self, *, Generator? generator=None) -> Tensor(a!)",
       [](const Tensor& x, Unset) { return x.random_(); }},

      // --- dropout
      {"dropout(Tensor input, float p, bool train) -> Tensor",
       [](In x, double p, bool train) { return dropout(x, p, train); }},
      {"native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)",
       [](In x, double p, std::optional<bool> train) { return native_dropout(x, p, train.value_or(true)); }},
      {"feature_dropout(Tensor input, float p, bool train) -> Tensor",
       [](In x, double p, bool train) { return feature_dropout(x, p, train); }},
      {"alpha_dropout(Tensor input, float p, bool train) -> Tensor",
       [](In x, double p, bool train) { return alpha_dropout(x, p, train); }},
      {"feature_alpha_dropout(Tensor input, float p, bool train) -> Tensor",
       [](In x, double p, bool train) { return feature_alpha_dropout(x, p, train); }},
  };
  return kList;
}

}  // namespace sinter::interop
