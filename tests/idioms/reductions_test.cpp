#include "tests/idioms/idioms.h"

namespace {

struct ReductionIdioms : Idioms {};

TEST_F(ReductionIdioms, Sums) {
  IDIOM(x.sum());
  IDIOM(torch::sum(x));
  IDIOM(x.sum(0));
  IDIOM(x.sum(-1, true));
  IDIOM(torch::sum(x, 1, /*keepdim=*/true));
  IDIOM(b.sum({0, 2}));
  IDIOM(torch::sum(b, {1, 2}, true));
  IDIOM(n.sum(torch::kFloat));
  IDIOM(x.sum(0, false, torch::kFloat64));
  IDIOM(torch::sum(x, c10::IntArrayRef{0}));
  IDIOM(x.mean());
  IDIOM(torch::mean(x, 0));
  IDIOM(img.mean({2, 3}));
  IDIOM(x.mean(1, true));
  IDIOM(n.to(torch::kFloat).mean());
  IDIOM(n.mean(torch::kFloat));
  IDIOM(p.prod());
  IDIOM(torch::prod(p, 1));
  IDIOM(p.prod(0, true));
  IDIOM(torch::nansum(x / 0 * 0));
  IDIOM(x.cumsum(1));
  IDIOM(torch::cumsum(x, /*dim=*/0));
  IDIOM(p.cumprod(1));
  IDIOM(x.logcumsumexp(1));
  IDIOM(torch::logsumexp(x, 1));
  IDIOM(x.logsumexp({0, 1}));
  IDIOM(torch::count_nonzero(n));
  IDIOM(n.count_nonzero(c10::IntArrayRef({0})));
  IDIOM(torch::trapezoid(x));
  IDIOM(torch::diff(x));
  IDIOM(x.diff(1, 0));
  IDIOM(torch::nanmean(x));
  IDIOM_GRAD(x.mean());
  IDIOM_GRAD(x.sum(0));
  IDIOM_GRAD(torch::logsumexp(x, 1));
}

TEST_F(ReductionIdioms, Spreads) {
  IDIOM(x.var());
  IDIOM(x.var(/*unbiased=*/false));
  IDIOM(x.var(1));
  IDIOM(x.var({0, 1}, true, true));
  IDIOM(torch::var(x, {0}, /*unbiased=*/false));
  IDIOM(torch::var(x, 1, false, true));
  IDIOM(x.std());
  IDIOM(x.std(0));
  IDIOM(x.std(1, true, true));
  IDIOM(torch::std(x, /*dim=*/1));
  IDIOM(torch::std(x, false));
  IDIOM(torch::std_mean(x, 1));
  IDIOM(torch::var_mean(x, 0));
  IDIOM(x.norm());
  IDIOM(x.norm(1));
  IDIOM(x.norm(2, 1));
  IDIOM(x.norm(2, {1}, true));
  IDIOM(x.norm(2, -1, /*keepdim=*/true));
  IDIOM(torch::norm(x));
  IDIOM(torch::norm(x, 2, 0));
  IDIOM(torch::dist(x, y));
  IDIOM(torch::dist(x, y, 1));
  IDIOM(torch::cov(x));
  IDIOM(torch::corrcoef(x));
  IDIOM_GRAD(x.std(0));
  IDIOM_GRAD(x.norm());
}

TEST_F(ReductionIdioms, Extremes) {
  IDIOM(x.max());
  IDIOM(torch::max(x));
  IDIOM(x.min());
  IDIOM(x.max(1));
  IDIOM(std::get<0>(x.max(1)));
  IDIOM(std::get<1>(x.max(/*dim=*/0)));
  IDIOM(torch::max(x, 1, /*keepdim=*/true));
  IDIOM(std::get<0>(torch::min(x, 0)));
  IDIOM_DO({
    auto [values, indices] = x.max(1);
    return values * 2 + indices;
  });
  IDIOM_DO({
    torch::Tensor values, indices;
    std::tie(values, indices) = torch::max(x, 0);
    return indices;
  });
  IDIOM_DO({
    auto result = x.min(1, true);
    return std::get<0>(result);
  });
  IDIOM(x.argmax());
  IDIOM(x.argmax(1));
  IDIOM(torch::argmax(x, 1, true));
  IDIOM(x.argmin(0));
  IDIOM(x.amax(1));
  IDIOM(torch::amax(x, {0, 1}));
  IDIOM(torch::amin(x, 0, true));
  IDIOM(torch::aminmax(x));
  IDIOM(x.argmax(1).eq(labels).sum().item<int64_t>());
  IDIOM(x.any());
  IDIOM(mask.all());
  IDIOM(mask.any(1));
  IDIOM(torch::all(mask, 0));
  IDIOM(torch::any(mask, 1, true));
  IDIOM(torch::cummax(x, 1));
  IDIOM(x.cummin(0));
  IDIOM_GRAD(x.max());
  IDIOM_GRAD(std::get<0>(x.max(1)));
}

TEST_F(ReductionIdioms, Orders) {
  IDIOM(x.sort());
  IDIOM(torch::sort(x, 1, /*descending=*/true));
  IDIOM(std::get<1>(x.sort(0)));
  IDIOM(torch::sort(x, /*stable=*/true, /*dim=*/0, /*descending=*/true));
  IDIOM(x.argsort(1, false));
  IDIOM(torch::argsort(x, -1, true));
  IDIOM(x.argsort(/*stable=*/true, 0));
  IDIOM(torch::msort(x));
  IDIOM(x.topk(2));
  IDIOM_DO({
    auto [values, indices] = x.topk(2);
    return values;
  });
  IDIOM(std::get<1>(torch::topk(x, 3, 1)));
  IDIOM(std::get<0>(x.topk(2, /*dim=*/0, /*largest=*/false, /*sorted=*/true)));
  IDIOM(torch::kthvalue(x, 2));
  IDIOM(x.median());
  IDIOM(torch::median(x, 1));
  IDIOM(std::get<0>(n.mode(1)));
  IDIOM(torch::quantile(x, 0.5));
  IDIOM(x.quantile(torch::tensor({0.25, 0.75}), 1));
  IDIOM(torch::nanmedian(x));
  IDIOM(std::get<0>(at::_unique(n)));
  IDIOM(at::_unique2(n, true, true, true));
  IDIOM(std::get<0>(torch::unique_dim(k, 0)));
  IDIOM(std::get<0>(torch::unique_consecutive(std::get<0>(n.flatten().sort()))));
  IDIOM(torch::bincount(n.abs().flatten()));
  IDIOM(n.abs().flatten().bincount({}, 12));
  IDIOM(torch::histc(x, 4, -2, 2));
  IDIOM(torch::searchsorted(torch::tensor({-1.0, 0.0, 1.0}), x));
  IDIOM(torch::bucketize(x, torch::tensor({-1.0, 0.0, 1.0})));
  IDIOM(n.nonzero());
  IDIOM(torch::nonzero(mask));
  IDIOM(torch::argwhere(mask));
  IDIOM(mask.nonzero_numpy());
  IDIOM_GRAD(std::get<0>(x.topk(2)));
}

}  // namespace
