#include "tests/idioms/idioms.h"

namespace {

struct IndexingIdioms : Idioms {};

TEST_F(IndexingIdioms, Reads) {
  IDIOM(x[0]);
  IDIOM(x[-1]);
  IDIOM(x[1][2]);
  IDIOM(b[0][1]);
  IDIOM(x[torch::tensor(1)]);
  IDIOM(x.index({0}));
  IDIOM(x.index({1, 2}));
  IDIOM(x.index({Slice(), 0}));
  IDIOM(x.index({Slice(None, 2), "..."}));
  IDIOM(x.index({"...", 0}));
  IDIOM(x.index({Ellipsis, -1}));
  IDIOM(b.index({"...", Slice(1, 3)}));
  IDIOM(x.index({Slice(1, None)}));
  IDIOM(x.index({Slice(None, None, 2)}));
  IDIOM(x.index({Slice(1, 3), Slice(0, None, 2)}));
  IDIOM(x.index({None, 0}));
  IDIOM(x.index({Slice(), None}).sizes());
  IDIOM(x.index({mask}));
  IDIOM(x.index({x > 0.5}));
  IDIOM(x.index({rows}));
  IDIOM(x.index({rows, torch::tensor({1, 3})}));
  IDIOM(x.index({Slice(), torch::tensor({0, 2})}));
  IDIOM(x.index({torch::tensor({true, false, true})}));
  IDIOM(b.index({0, Slice(), torch::tensor({1, 0})}));
  IDIOM(x.index({true}).sizes());
  IDIOM(x.index({torch::arange(3), labels}));
  IDIOM(torch::index(x, {rows}));
  IDIOM(x.slice(1, 0, 2));
  IDIOM(x.slice(/*dim=*/0, /*start=*/1));
  IDIOM(x.narrow(1, 1, 2));
  IDIOM(torch::narrow(x, 0, 0, 2));
  IDIOM(x.select(1, 2));
  IDIOM(torch::select(x, 0, 1));
  IDIOM(x.index_select(0, rows));
  IDIOM(torch::index_select(x, 1, torch::tensor({0, 3})));
  IDIOM(x.gather(1, k));
  IDIOM(torch::gather(x, 0, k));
  IDIOM(x.gather(1, labels.unsqueeze(1)).squeeze(1));
  IDIOM(torch::take_along_dim(x, x.argsort(1, false), 1));
  IDIOM(x.take(torch::tensor({0, 5, 11})));
  IDIOM(torch::masked_select(x, mask));
  IDIOM(x.masked_select(x.ge(0.5)));
  IDIOM(x.diagonal());
  IDIOM(torch::diagonal(x, 1));
  IDIOM(x.unbind());
  IDIOM(x.split(2));
  IDIOM_DO({
    std::vector<at::indexing::TensorIndex> indices = {Slice(), 1};
    return x.index(indices);
  });
  IDIOM_GRAD(x.index({Slice(), Slice(1, 3)}));
  IDIOM_GRAD(x[1]);
  IDIOM_GRAD(x.index({rows}));
  IDIOM_GRAD(x.gather(1, k));
}

TEST_F(IndexingIdioms, Writes) {
  IDIOM(x.clone().index_put_({0}, 1));
  IDIOM(x.clone().index_put_({Slice(), 0}, torch::zeros({3})));
  IDIOM(x.clone().index_put_({mask}, 0));
  IDIOM(x.clone().index_put_({rows}, y.index({rows})));
  IDIOM(x.clone().index_put_({Slice(None, 2), "..."}, 5));
  IDIOM(x.clone().index_put_({torch::tensor({0, 0})}, torch::ones({2, 4}), /*accumulate=*/true));
  IDIOM(torch::index_put(x, {rows}, torch::ones({2, 4})));
  IDIOM_DO({
    torch::Tensor z = x.clone();
    z[0] = 5;
    return z;
  });
  IDIOM_DO({
    torch::Tensor z = x.clone();
    z[1][2] = 3.5;
    z[2] = y[0];
    return z;
  });
  IDIOM_DO({
    torch::Tensor z = x.clone();
    z[0] += 1;
    return z;
  });
  IDIOM_DO({
    torch::Tensor z = torch::zeros({2, 3});
    for (int i = 0; i < 2; i++)
      for (int j = 0; j < 3; j++) z[i][j] = i * 3 + j;
    return z;
  });
  IDIOM_DO({
    torch::Tensor z = x.clone();
    z.slice(0, 0, 2).fill_(7);
    z.select(1, 3).zero_();
    return z;
  });
  IDIOM_DO({
    torch::Tensor z = x.clone();
    z.index({Slice(), 1}).copy_(w);
    return z;
  });
  IDIOM_DO({
    torch::Tensor z = torch::zeros({4, 4});
    z.narrow(0, 1, 2).add_(1);
    z.diagonal().fill_(9);
    return z;
  });
  IDIOM(x.masked_fill(mask, 0));
  IDIOM(torch::masked_fill(x, x > 0, -1.5));
  IDIOM(x.masked_fill(~mask, -std::numeric_limits<float>::infinity()));
  IDIOM(x.masked_scatter(mask, torch::arange(12).to(torch::kFloat)));
  IDIOM(x.scatter(1, k, 9));
  IDIOM(x.scatter(1, k, y));
  IDIOM(torch::zeros({3, 4}).scatter_(1, labels.unsqueeze(1), 1));
  IDIOM(torch::zeros({3, 4}).scatter_add_(1, k, x));
  IDIOM(torch::scatter_add(y, 0, k, x));
  IDIOM(torch::scatter_reduce(y, 1, k, x, "amax"));
  IDIOM(x.scatter_reduce(1, k, y, "sum", /*include_self=*/false));
  IDIOM(x.index_add(0, rows, torch::ones({2, 4})));
  IDIOM(x.clone().index_add_(1, torch::tensor({0, 2}), torch::ones({3, 2}), 0.5));
  IDIOM(x.index_copy(0, rows, y.index_select(0, rows)));
  IDIOM(x.index_fill(1, torch::tensor({1}), -1));
  IDIOM(x.clone().index_fill_(0, rows, 2));
  IDIOM(x.clone().fill_diagonal_(3));
  IDIOM(x.clone().put_(torch::tensor({1, 4}), torch::tensor({9.0f, 8.0f})));
  IDIOM(torch::select_scatter(x, v, 0, 1));
  IDIOM(torch::slice_scatter(x, torch::ones({2, 4}), 0, 1, 3));
  IDIOM(torch::one_hot(labels));
  IDIOM(torch::one_hot(labels, 5).to(torch::kFloat));
  IDIOM_GRAD(x.masked_fill(x > 0, 0) * 2);
}

}  // namespace
