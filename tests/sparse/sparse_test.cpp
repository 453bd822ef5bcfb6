// Sparse tensors against the dense ones they stand for, with gradients, and compiled.
#include "sinter/sparse.h"

#include <gtest/gtest.h>

#include "sinter/autograd/autograd.h"
#include "sinter/capture/compile.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"
#include "tests/support/error_of.h"

namespace sinter {
namespace {

// Three rows, the second of them empty.
Tensor dense() { return tensor({{0.0, 2.0, 0.0, -1.0}, {0.0, 0.0, 0.0, 0.0}, {3.0, 0.0, 0.5, 0.0}}, kFloat64); }
Tensor crow() { return tensor({0, 2, 2, 4}); }
Tensor columns() { return tensor({1, 3, 0, 2}); }
Tensor values() { return tensor({2.0, -1.0, 3.0, 0.5}, kFloat64); }
Tensor right() { return cos(arange(8, kFloat64)).view({4, 2}); }

TEST(Sparse, IsWhatItStandsFor) {
  SparseTensor csr = sparse_csr_tensor(crow(), columns(), values(), {3, 4});
  SparseTensor coo = sparse_coo_tensor(tensor({{0, 0, 2, 2}, {1, 3, 0, 2}}), values(), {3, 4});
  for (const SparseTensor& a :
       {csr, coo, csr.to_sparse(), coo.to_sparse_csr(), to_sparse(dense()), to_sparse_csr(dense())}) {
    EXPECT_TRUE(equal(a.to_dense(), dense()));
    EXPECT_TRUE(equal(a.t().to_dense(), dense().t()));
    EXPECT_TRUE(equal((a * 2).to_dense(), dense() * 2));
    EXPECT_TRUE(equal(a.indices(), coo.indices()));
    EXPECT_TRUE(allclose(matmul(a, right()), matmul(dense(), right())));
    EXPECT_TRUE(allclose(mv(a, right().select(1, 0)), mv(dense(), right().select(1, 0))));
    EXPECT_TRUE(allclose(addmm(ones({3, 2}), a, right(), 2, 3), addmm(ones({3, 2}), dense(), right(), 2, 3)));
    EXPECT_TRUE(equal((a + csr).to_dense(), dense() * 2));
    EXPECT_TRUE(equal(dense() + a, dense() * 2));
    EXPECT_EQ(a.sum().item<double>(), 4.5);
    EXPECT_EQ(a.nnz(), 4);
  }
  EXPECT_TRUE(equal(coo.to_sparse_csr().crow_indices(), crow()));
  EXPECT_TRUE(equal(coo.to_sparse_csr().col_indices(), columns()));
}

TEST(Sparse, ElementsOfOnePlaceAreAdded) {
  SparseTensor a = sparse_coo_tensor(tensor({{2, 0, 2}, {1, 0, 1}}), tensor({1.0, 2.0, 4.0}, kFloat64), {3, 2});
  EXPECT_FALSE(a.is_coalesced());
  SparseTensor b = a.coalesce();
  EXPECT_TRUE(b.is_coalesced());
  EXPECT_TRUE(equal(b.indices(), tensor({{0, 2}, {0, 1}})));
  EXPECT_TRUE(equal(b.values(), tensor({2.0, 5.0}, kFloat64)));
  EXPECT_TRUE(equal(a.to_dense(), b.to_dense()));
  EXPECT_EQ(a.to_dense()[2][1].item<double>(), 5);
  SparseTensor cube = to_sparse(arange(8).view({2, 2, 2}));
  EXPECT_TRUE(equal(cube.transpose(0, 2).to_dense(), arange(8).view({2, 2, 2}).transpose(0, 2)));
}

TEST(Sparse, EmptyOnes) {
  SparseTensor none = sparse_csr_tensor(zeros({4}, kInt64), zeros({0}, kInt64), zeros({0}, kFloat64), {3, 4});
  EXPECT_TRUE(equal(none.to_dense(), zeros({3, 4}, kFloat64)));
  EXPECT_TRUE(equal(matmul(none, right()), zeros({3, 2}, kFloat64)));
  EXPECT_EQ(none.coalesce().nnz(), 0);
}

TEST(Sparse, GradientsFlowToValuesAndToTheDenseOperand) {
  Tensor v = values().requires_grad_(), x = right().requires_grad_();
  matmul(sparse_csr_tensor(crow(), columns(), v, {3, 4}), x).square().sum().backward();
  Tensor a = dense().requires_grad_(), y = right().requires_grad_();
  matmul(a, y).square().sum().backward();
  EXPECT_TRUE(allclose(x.grad(), y.grad()));
  Tensor at = a.grad().flatten().index_select(0, tensor({1, 3, 8, 10}));
  EXPECT_TRUE(allclose(v.grad(), at));
}

TEST(Sparse, ProductsCompileWhole) {
  auto product = [](const Tensor& crow, const Tensor& columns, const Tensor& values, const Tensor& x) {
    return matmul(sparse_csr_tensor(crow, columns, values, {3, 4}), x);
  };
  auto compiled = compile(product, {.fullgraph = true});
  EXPECT_TRUE(allclose(compiled(crow(), columns(), values(), right()), matmul(dense(), right())));
  // Other indices are other arguments of the same program.
  EXPECT_TRUE(allclose(compiled(tensor({0, 1, 1, 4}), columns(), values(), right()),
                       product(tensor({0, 1, 1, 4}), columns(), values(), right())));
}

TEST(Sparse, SayWhatIsWrong) {
  auto says = [](const std::string& message, const char* part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  says(message_of([] { sparse_coo_tensor(tensor({{0, 3}}), ones({2}), {3}); }), "an index is outside of the size");
  says(message_of([] {
         sparse_coo_tensor(tensor({{0, 3}}), ones({3}), {3});
       }),
       "do not describe a tensor of shape [3]");
  says(message_of([] { sparse_csr_tensor(tensor({0, 2, 1, 4}), columns(), values(), {3, 4}); }), "crow_indices falls");
  says(message_of([] {
         sparse_csr_tensor(tensor({0, 2, 2, 3}), columns(), values(), {3, 4});
       }),
       "from 0 to the number");
  says(message_of([] { sparse_csr_tensor(crow(), columns(), values(), {3, 3}); }), "a column is outside");
  SparseTensor a = to_sparse(dense());
  says(message_of([&] {
         matmul(a, ones({3, 2}, kFloat64));
       }),
       "inner sizes of a sparse [3, 4] and a dense [3, 2] differ");
  says(message_of([&] { (void)a.crow_indices(); }), "to_sparse_csr()");
}

}  // namespace
}  // namespace sinter
