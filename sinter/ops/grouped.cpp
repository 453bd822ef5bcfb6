#include "sinter/ops/grouped.h"

#include "sinter/ops/contract.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/define.h"
#include "sinter/ops/indexing_parts.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/registry.h"
#include "sinter/ops/view.h"

namespace sinter {

namespace {

void check_rows(const OpCall& call) {
  const Type &x = call.inputs[0], &other = call.inputs[1];
  check(x.rank() == 2 && call.rank(2) == 1, "{}: expected rows [n, k] and the group of each [n], got {} and {}",
        call.name(), x.shape, call.shape(2));
  check(x.shape[0] == call.shape(2)[0], "{}: {} rows, and the groups of {}", call.name(), x.shape[0], call.shape(2)[0]);
  check(x.dtype == other.dtype, "{}: operands have different dtypes {} and {}; convert one with .to()", call.name(),
        x.dtype, other.dtype);
  check(x.dtype != kBool, "{}: not defined for bool; convert with .to()", call.name());
  check_index_operand(call, 2);
}

struct GroupedMm : Loop {
  static constexpr auto name = "grouped_mm";
  static constexpr int inputs = 3;
  using Attributes = NoAttrs;
  static std::vector<Type> infer(const OpCall& call) {
    check_rows(call);
    const Shape &x = call.shape(0), &weight = call.shape(1);
    check(weight.rank() == 3, "grouped_mm: expected matrices [groups, k, m], got {}", weight);
    check(x[1] == weight[1], "grouped_mm: inner sizes {} and {} differ (shapes {} and {})", x[1], weight[1], x, weight);
    check_has_room(call, 2, weight[0]);
    return {Type{call.inputs[0].dtype, {x[0], weight[2]}, call.inputs[0].device}};
  }
  static constexpr Combine combine = Combine::kSum;
  static Shape reduction(const OpCall& call) { return {call.shape(0)[1]}; }
  static Elem element(ElementBuilder& b) {
    const Dim group = b.load_index(2, {b.i[0]}, b.call.shape(1)[0]);
    return multiply(b, b.call.inputs[0].dtype, b.load(0, {b.i[0], b.k[0]}), b.load(1, {group, b.k[0], b.i[1]}));
  }
  static TensorList grad(const GradCall& c) {
    return c.each([&] { return grouped_mm(c.grad(), c[1].tensor().transpose(1, 2), c[2]); },
                  [&] { return grouped_mm_weight_grad(c[0], c.grad(), c[2], c[1].tensor().size(0)); });
  }
  static constexpr Tolerance tolerance{.ulp = 32, .absolute = 3e-5};
  SINTER_SAMPLES("x[5, 3], x[4, 3, 2], i64[5]<4", "x[17, 20], x[2, 20, 19], i64[17]<2", "x[6, 1], x[1, 1, 1], i32[6]<1",
                 "x[0, 3], x[2, 3, 4], i64[0]<2", "x[3, 0], x[2, 0, 4], i64[3]<2")
};

struct GroupsAttrs {
  Dim groups = 1;
  SINTER_FIELDS(groups)
};

struct GroupedMmWeightGrad : Loop {
  static constexpr auto name = "grouped_mm_weight_grad";
  static constexpr int inputs = 3;
  using Attributes = GroupsAttrs;
  static std::vector<Type> infer(const OpCall& call) {
    check_rows(call);
    const Shape &x = call.shape(0), &grad = call.shape(1);
    check(grad.rank() == 2 && grad[0] == x[0], "grouped_mm_weight_grad: rows {} and their gradients {}", x, grad);
    check_has_room(call, 2, call.as<GroupsAttrs>().groups);
    return {Type{call.inputs[0].dtype, {call.as<GroupsAttrs>().groups, x[1], grad[1]}, call.inputs[0].device}};
  }
  static constexpr Combine combine = Combine::kSum;
  static Shape reduction(const OpCall& call) { return {call.shape(0)[0]}; }
  static Elem element(ElementBuilder& b) {
    const Dim group = b.load_index(2, {b.k[0]}, b.call.as<GroupsAttrs>().groups);
    return b.select({Condition{group - b.i[0], 1}},
                    multiply(b, b.call.inputs[0].dtype, b.load(0, {b.k[0], b.i[1]}), b.load(1, {b.k[0], b.i[2]})),
                    b.constant(0));
  }
  static TensorList grad(const GradCall& c) {
    return c.each([&] { return grouped_mm(c[1], c.grad().transpose(1, 2), c[2]); },
                  [&] { return grouped_mm(c[0], c.grad(), c[2]); });
  }
  static constexpr Tolerance tolerance{.ulp = 32, .absolute = 3e-5};
  SINTER_SAMPLES("x[5, 3], x[5, 2], i64[5]<4 | groups=4", "x[17, 20], x[17, 19], i64[17]<2 | groups=3",
                 "x[6, 1], x[6, 1], i32[6]<1 | groups=1", "x[0, 3], x[0, 2], i64[0]<2 | groups=2")
};

}  // namespace

Tensor grouped_mm_by_all(const Tensor& x, const Tensor& weight, const Tensor& group) {
  Tensor out = zeros({x.size(0), weight.size(2)}, x.options());
  const int64_t groups = weight.size(0);
  for (int64_t g = 0; g < groups; ++g) out = where((group == g).unsqueeze(1), mm(x, weight.select(0, g)), out);
  return out;
}

Tensor grouped_mm_weight_grad_by_all(const Tensor& x, const Tensor& grad, const Tensor& group, const Dim& groups) {
  TensorList out;
  const int64_t count = groups;
  for (int64_t g = 0; g < count; ++g) out.push_back(mm(where((group == g).unsqueeze(1), x, 0.0).t(), grad));
  return stack(out);
}

Tensor grouped_mm(const TensorArg& x, const TensorArg& weight, const TensorArg& group) {
  // A loop of our own would be far slower than a library's products.
  if (!tensor_operand("grouped_mm", x).device().is_cpu())
    return grouped_mm_by_all(x.tensor(), weight.tensor(), group.tensor());
  return call<GroupedMm>({x, weight, group});
}

Tensor grouped_mm_weight_grad(const TensorArg& x, const TensorArg& grad, const TensorArg& group, const Dim& groups) {
  if (!tensor_operand("grouped_mm_weight_grad", x).device().is_cpu())
    return grouped_mm_weight_grad_by_all(x.tensor(), grad.tensor(), group.tensor(), groups);
  return call<GroupedMmWeightGrad>({x, grad, group}, GroupsAttrs{groups});
}

OpFamily grouped_ops() {
  static const Op* const ops[] = {&op_of<GroupedMm>, &op_of<GroupedMmWeightGrad>};
  return ops;
}

}  // namespace sinter
