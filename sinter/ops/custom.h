#pragma once
// Ops of the user's own. No methods of Tensor.
//
//   struct SwishAttrs {
//     double beta = 1;
//     SINTER_FIELDS(beta)
//   };
//   auto swish = register_op<SwishAttrs>({
//       .name = "mylib::swish",
//       .infer = [](const OpCall& c) { return std::vector{c.inputs[0]}; },
//       .decompose = [](std::span<const TensorArg> x, const Attrs& a) -> TensorList {
//         return {x[0].tensor() * sigmoid(x[0].tensor() * a.as<SwishAttrs>().beta)};
//       },
//   });
//   Tensor y = swish(x), z = swish({x}, {.beta = 2});
#include <functional>

#include "sinter/base/api.h"
#include "sinter/graph/op.h"

namespace sinter SINTER_API {

// What an op is. `name`, `infer` and one of `run` and `decompose` must be there.
struct OpDefinition {
  // "mylib::swish": how graphs print it and find_op finds it. Names without a library are Sinter's.
  std::string name;
  int inputs = 1;  // how many operands; -1: any number
  // The types of the results. It checks the operands with check(...); sizes may be symbols.
  std::function<std::vector<Type>(const OpCall& call)> infer;
  // A kernel: eager operands on the CPU, of any strides, to results of the types that `infer` gives. A number comes as
  // a 0-d tensor. An op with nothing else stands opaque in graphs, and the reference interpreter, having no second
  // opinion, runs the kernel too.
  std::function<TensorList(std::span<const Tensor> inputs, const Attrs& attrs)> run = {};
  // The op in terms of others. A capture records these in its place, so that they fuse; eagerly they run unless there
  // is a kernel.
  std::function<TensorList(std::span<const TensorArg> inputs, const Attrs& attrs)> decompose = {};
  // The gradients of the operands. Without it a decomposition is differentiated as it stands, and a kernel not at all.
  std::function<TensorList(const GradCall& call)> grad = {};
};

namespace detail {
using ParseAttrs = std::function<Attrs(const FieldTexts& fields)>;
const Op& register_op(OpDefinition definition, const std::function<ParseAttrs(const char* name)>& parse,
                      const Where& where);
TensorList call_registered(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Where& where);
}  // namespace detail

// A registered op, ready to be called. A small handle: the op itself lives as long as the process.
template <class A>
class RegisteredOp {
 public:
  explicit RegisteredOp(const Op& op) : op_(&op) {}

  // The first result, on tensors and numbers: op(x), op(x, y, 0.5).
  template <class... T>
    requires(std::convertible_to<const T&, TensorArg> && ...)
  Tensor operator()(const TensorArg& first, const T&... rest) const {
    TensorArg inputs[] = {first, rest...};
    return detail::call_registered(*op_, inputs, A{}, first.where())[0];
  }
  // With attributes: op({x, y}, {.beta = 2}).
  Tensor operator()(std::initializer_list<TensorArg> inputs, const A& attrs, Where where = Where::current()) const {
    return many(inputs, attrs, where)[0];
  }
  // All results.
  TensorList many(std::initializer_list<TensorArg> inputs, const A& attrs = {}, Where where = Where::current()) const {
    return detail::call_registered(*op_, {inputs.begin(), inputs.size()}, attrs, where);
  }
  const Op& op() const { return *op_; }

 private:
  const Op* op_;
};

// Adds an op, from any thread; an Error when the name is taken or something is missing. `A` is the struct of its
// attributes, with SINTER_FIELDS.
template <class A = NoAttrs>
RegisteredOp<A> register_op(OpDefinition definition, Where where = Where::current()) {
  auto parse = [](const char* name) -> detail::ParseAttrs {
    return [name](const FieldTexts& fields) { return parse_attrs<A>(name, fields); };
  };
  return RegisteredOp<A>(detail::register_op(std::move(definition), parse, where));
}

// The registered op of this name, or null.
const Op* find_registered_op(std::string_view name);

}  // namespace sinter
