// Tensors without elements, compiled: every op gives what it gives eagerly, or refuses what eager refuses.
#include "common.h"
#include "sinter/engine/executable.h"
#include "tests/support/samples.h"

namespace sinter {
namespace {

using namespace sinter::testing;

// The op's samples with one size of theirs made 0 wherever it occurs.
std::vector<Sample> emptied_samples(const Op& op) {
  std::vector<Sample> out;
  for (auto& sample : samples_of(op, kFloat32)) {
    std::set<int64_t> sizes;
    for (auto& operand : sample.operands)
      if (!operand.scalar) sizes.insert(operand.values.sizes.begin(), operand.values.sizes.end());
    for (int64_t size : sizes) {
      Sample emptied = sample;
      emptied.text += format(" with {} made 0", size);
      for (auto& operand : emptied.operands) {
        if (operand.scalar) continue;
        IntList shape = operand.values.sizes;
        for (auto& d : shape) d = d == size ? 0 : d;
        if (shape == operand.values.sizes) continue;
        operand.values = Array(operand.values.dtype, shape);
      }
      out.push_back(std::move(emptied));
    }
  }
  return out;
}

class EmptyOp : public ::testing::TestWithParam<const Op*> {};

TEST_P(EmptyOp, CompiledAsEager) {
  const Op& op = *GetParam();
  for (auto& sample : emptied_samples(op)) {
    SCOPED_TRACE(sample.text);
    std::vector<TensorArg> numbers;
    TensorList tensors;
    for (auto& operand : sample.operands) {
      numbers.emplace_back(operand.scalar ? operand.number : Scalar(0));
      if (!operand.scalar) tensors.push_back(to_tensor(operand.values));
    }
    auto f = [&](const TensorList& given) {
      std::vector<TensorArg> args;
      size_t next = 0;
      for (size_t i = 0; i < numbers.size(); ++i)
        args.push_back(sample.operands[i].scalar ? numbers[i] : TensorArg(given[next++]));
      return Dispatcher::instance().run(op, args, sample.attrs);
    };
    auto outcome = [&](auto&& function) -> std::pair<TensorList, bool> {
      try {
        return {function(tensors), true};
      } catch (const Error& e) {
        return {{}, false};
      }
    };
    auto [want, accepted] = outcome(f);
    auto fast = compile(f);
    for (int call = 0; call < 2; ++call) {
      auto [got, taken] = outcome(fast);
      ASSERT_EQ(taken, accepted) << (accepted ? "only eager takes it" : "only compiled takes it");
      for (size_t i = 0; i < want.size(); ++i) {
        ASSERT_EQ(got[i].dtype(), want[i].dtype());
        ASSERT_EQ(to_string(got[i].sizes()), to_string(want[i].sizes())) << "result " << i;
        if (!op.random) {
          EXPECT_EQ(difference(got[i], to_array(want[i]), op.tolerance), "") << "result " << i;
        }
      }
    }
  }
}

std::vector<const Op*> callable_ops() {
  std::vector<const Op*> out;
  // Two trust their callers: the function as_strided asks how much memory there is, and a fused body has sizes of its own.
  for (auto* op : all_ops())
    if (op->kind != OpKind::kInput && op->kind != OpKind::kScalar && op->name != "as_strided" && op->name != "fused")
      out.push_back(op);
  return out;
}

INSTANTIATE_TEST_SUITE_P(All, EmptyOp, ::testing::ValuesIn(callable_ops()),
                         [](auto& info) { return std::string(info.param->name); });

// The result of f, compiled and eager, on these tensors; twice.
template <class F>
void expect_as_eager(F f, const TensorList& inputs) {
  auto fast = compile([f](const TensorList& x) { return f(x); });
  TensorList want = f(inputs);
  for (int call = 0; call < 2; ++call) {
    TensorList got = fast(inputs);
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) EXPECT_TRUE(same(got[i], want[i])) << "result " << i;
  }
}

TEST(CompiledEmpty, MasksOverNothing) {
  for (const Shape& shape : {Shape{0}, Shape{0, 3}, Shape{2, 0}}) {
    SCOPED_TRACE(to_string(shape));
    Tensor x = zeros(shape);
    expect_as_eager(
        [](const TensorList& a) {
          Tensor mask = a[0] > 0;
          return TensorList{a[0].index({mask}),
                            masked_select(a[0], mask),
                            nonzero(mask),
                            index_put(a[0], {mask}, a[1]),
                            index_put(a[0], {mask}, a[1], true),
                            std::get<0>(unique(a[0])),
                            a[0].index({nonzero(a[0]).select(1, 0)})};
        },
        {x, ones({0})});
    expect_as_eager(
        [](const TensorList& a) {
          Tensor y = a[0].clone();
          y.index_put_({y > 0}, 3);
          y.index_put_({y > 0}, a[1]);
          return TensorList{y, masked_scatter(y, y > 0, a[2]), bincount(nonzero(y).reshape({-1}))};
        },
        {x, ones({0}), ones({1})});
  }
}

// Where only the data says that there is nothing.
TEST(CompiledEmpty, MasksThatChooseNothing) {
  expect_as_eager(
      [](const TensorList& a) {
        Tensor none = a[0].index({a[0] > 5});
        return TensorList{none.index({none > 0}),
                          masked_select(none, none > 0),
                          none.sum(),
                          cat({none, a[0]}),
                          cat({none, a[0].view({2, 2})}),
                          bincount(nonzero(a[0] > 5).reshape({-1})),
                          zeros({0, 3}).index({nonzero(none).reshape({-1})})};
      },
      {wave({4})});
}

TEST(CompiledEmpty, GradientsOfMasksOverNothing) {
  auto f = [](const Tensor& x) { return x.index({x > 0}).sum(); };
  auto fast = compile(f);
  Tensor x = zeros({0, 3}).requires_grad_();
  fast(x).backward();
  EXPECT_EQ(x.grad().sizes(), Shape({0, 3}));
}

}  // namespace
}  // namespace sinter
