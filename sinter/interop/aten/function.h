#pragma once
// One function of ATen: its schema, and the C++ function that computes it. The parameters of the C++ function are those of the
// schema, in its order, converted by their types (interop/convert.h).
#include <span>
#include <string_view>
#include <type_traits>

#include "sinter/interop/convert.h"
#include "sinter/tensor/tensor.h"

namespace sinter::interop {

class Function {
 public:
  // A function, or a lambda that captures nothing. `schema` is a literal.
  template <class F>
  Function(const char* schema, F f) : Function(schema, +f, 0) {}

  std::string_view schema() const { return schema_; }
  size_t arity() const { return arity_; }
  // One argument for each parameter.
  ValueList operator()(std::span<const Value> arguments) const { return invoke_(function_, arguments); }

 private:
  using Erased = void (*)();

  template <class R, class... P>
  Function(const char* schema, R (*f)(P...), int)
      : schema_(schema), arity_(sizeof...(P)), function_(reinterpret_cast<Erased>(f)), invoke_(&invoke<R, P...>) {}

  template <class R, class... P>
  static ValueList invoke(Erased erased, [[maybe_unused]] std::span<const Value> arguments) {
    auto f = reinterpret_cast<R (*)(P...)>(erased);
    return [&]<size_t... I>(std::index_sequence<I...>)->ValueList {
      if constexpr (std::is_void_v<R>) {
        f(value_to<std::remove_cvref_t<P>>(arguments[I])...);
        return {};
      } else {
        return results_of(f(value_to<std::remove_cvref_t<P>>(arguments[I])...));
      }
    }
    (std::index_sequence_for<P...>());
  }

  std::string_view schema_;
  size_t arity_;
  Erased function_;
  ValueList (*invoke_)(Erased, std::span<const Value>);
};

// --- shorthand for the parameters of lambdas in the tables

using In = const TensorArg&;  // a tensor, or a number in its place
using Ints = const IntList&;
using Sizes = const Shape&;
using Text = const std::string&;
using Int = int64_t;
using MaybeInt = std::optional<int64_t>;
using MaybeInts = const std::optional<IntList>&;
using MaybeReal = std::optional<double>;
using MaybeDim = const std::optional<Dim>&;
using MaybeType = std::optional<DType>;
using MaybeDevice = std::optional<Device>;
using MaybeFormat = std::optional<MemoryFormat>;

// What parameters dtype and device say of a new tensor.
inline TensorOptions options_of(MaybeType dtype, MaybeDevice device) {
  TensorOptions out;
  if (dtype) out = out.dtype(*dtype);
  if (device) out = out.device(*device);
  return out;
}

}  // namespace sinter::interop
