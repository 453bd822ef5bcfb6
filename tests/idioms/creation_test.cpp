#include "tests/idioms/idioms.h"

namespace {

struct CreationIdioms : Idioms {};

TEST_F(CreationIdioms, OfLiterals) {
  IDIOM(torch::tensor(3));
  IDIOM(torch::tensor(2.5));
  IDIOM(torch::tensor(true));
  IDIOM(torch::tensor({1, 2, 3}));
  IDIOM(torch::tensor({1.5, -2.5}));
  IDIOM(torch::tensor({1.5f, 2.5f}));
  IDIOM(torch::tensor({true, false, true}));
  IDIOM(torch::tensor({{1, 2}, {3, 4}}));
  IDIOM(torch::tensor({{1.0, 2.0}, {3.0, 4.0}}, torch::kFloat64));
  IDIOM(torch::tensor({{{1, 2}}, {{3, 4}}}, torch::dtype(torch::kFloat32)));
  IDIOM(torch::tensor({1, 2, 3}, torch::kFloat));
  IDIOM(torch::tensor({1, 2, 3}, torch::TensorOptions().dtype(torch::kInt32)));
  IDIOM(torch::tensor(std::vector<int64_t>{4, 5}));
  IDIOM(torch::tensor(std::vector<float>{0.5f, 1.5f}));
  IDIOM(torch::tensor(std::vector<double>{0.5, 1.5}, torch::kFloat32));
  IDIOM(at::tensor({1.5, 2.5}, at::kDouble));
  IDIOM_HOLDS(torch::tensor({1.0, 2.0}, torch::requires_grad()).requires_grad());
  IDIOM_HOLDS(torch::tensor({1.0, 2.0}, torch::dtype(torch::kFloat64).requires_grad(true)).requires_grad());
}

TEST_F(CreationIdioms, OfShapes) {
  IDIOM(torch::zeros({2, 3}));
  IDIOM(torch::ones({2, 3}, torch::kInt64));
  IDIOM(torch::ones(4));
  IDIOM(torch::zeros({}));
  IDIOM(torch::zeros({0, 3}));
  IDIOM(torch::full({2, 2}, 7));
  IDIOM(torch::full({2, 2}, 3.14));
  IDIOM(torch::full({3}, 1.5, torch::kFloat64));
  IDIOM(torch::full({2}, true));
  IDIOM(torch::zeros({2, 2}, torch::dtype(torch::kFloat64).device(torch::kCPU)));
  IDIOM(torch::ones({2}, torch::TensorOptions().dtype(torch::kInt16).layout(torch::kStrided).device(torch::kCPU, 0)));
  IDIOM(torch::ones({2, 2}, torch::device(torch::kCPU).dtype(torch::kHalf)));
  IDIOM(torch::zeros({3}, x.options()));
  IDIOM(torch::zeros(x.sizes()));
  IDIOM(torch::zeros({x.size(0), 2}));
  IDIOM(torch::zeros(torch::IntArrayRef({2, 3})));
  IDIOM_DO({
    std::vector<int64_t> shape = {2, 4};
    return torch::ones(shape);
  });
  IDIOM_DO({
    auto options = torch::TensorOptions().dtype(torch::kFloat64).requires_grad(false);
    torch::Tensor z = torch::zeros({2}, options);
    return z + 1;
  });
  IDIOM(torch::empty({2, 5}).sizes());
  IDIOM(torch::empty({2, 3}, torch::kInt64).zero_());
  IDIOM(torch::empty({0}).numel());
  IDIOM(torch::empty({2, 3}).fill_(1));
  IDIOM(torch::empty_strided({2, 3}, {1, 2}).strides());
  IDIOM(torch::eye(3));
  IDIOM(torch::eye(2, 3));
  IDIOM(torch::eye(2, torch::kInt64));
}

TEST_F(CreationIdioms, LikeOthers) {
  IDIOM(torch::zeros_like(x));
  IDIOM(torch::ones_like(n));
  IDIOM(torch::ones_like(x, torch::kInt64));
  IDIOM(torch::zeros_like(n, torch::dtype(torch::kFloat32)));
  IDIOM(torch::full_like(x, 1, torch::kFloat64));
  IDIOM(torch::full_like(n, 3));
  IDIOM(torch::empty_like(x).sizes());
  IDIOM(x.new_zeros({2, 2}));
  IDIOM(n.new_ones({3}));
  IDIOM(x.new_full({2}, 1.5));
  IDIOM(x.new_empty({2, 3}).sizes());
  IDIOM(x.new_zeros({2}, torch::kInt64));
  IDIOM(x.new_empty_strided({2, 3}, {3, 1}).sizes());
  IDIOM_HOLDS(torch::rand_like(x).sizes() == x.sizes());
  IDIOM_HOLDS(torch::randn_like(n, torch::kFloat32).dtype() == torch::kFloat32);
  IDIOM_HOLDS(torch::randint_like(x, 5).lt(5).all().item<bool>());
}

TEST_F(CreationIdioms, Ranges) {
  IDIOM(torch::arange(5));
  IDIOM(torch::arange(5.0));
  IDIOM(torch::arange(2, 7));
  IDIOM(torch::arange(0, 10, 2));
  IDIOM(torch::arange(0, 1, 0.25));
  IDIOM(torch::arange(5, torch::kFloat32));
  IDIOM(torch::arange(1, 5, torch::dtype(torch::kFloat64)));
  IDIOM(torch::arange(x.size(0)));
  IDIOM(torch::arange(5, 0, -1));
  IDIOM(torch::arange(12).view({3, 4}));
  IDIOM(torch::arange(0, 6).reshape({2, 3}).to(torch::kFloat));
  IDIOM(torch::range(0, 4, torch::kFloat32));
  IDIOM(torch::range(1, 3, 0.5));
  IDIOM(torch::linspace(0, 1, 5));
  IDIOM(torch::linspace(-2, 2, 9, torch::kFloat64));
  IDIOM(torch::logspace(0, 2, 3));
  IDIOM(torch::logspace(0, 4, 5, 2));
  IDIOM(torch::meshgrid({torch::arange(3), torch::arange(2)}, "ij"));
  IDIOM(torch::meshgrid({torch::arange(3), torch::arange(2)}, "xy"));
  IDIOM(torch::tril_indices(3, 3));
  IDIOM(torch::triu_indices(2, 4, 1));
  IDIOM(torch::cartesian_prod({torch::tensor({1, 2}), torch::tensor({3, 4})}));
  IDIOM(torch::combinations(torch::tensor({1, 2, 3})));
}

TEST_F(CreationIdioms, FromMemory) {
  IDIOM_DO({
    float data[] = {1, 2, 3, 4, 5, 6};
    return torch::from_blob(data, {2, 3}).clone();
  });
  IDIOM_DO({
    std::vector<double> data = {1, 2, 3, 4};
    return torch::from_blob(data.data(), {2, 2}, torch::kFloat64).clone();
  });
  IDIOM_DO({
    std::vector<int64_t> data = {1, 2, 3};
    auto t = torch::from_blob(data.data(), {static_cast<int64_t>(data.size())}, torch::TensorOptions().dtype(torch::kInt64));
    return t * 2;
  });
  IDIOM_DO({
    std::vector<float> data = {1, 2, 3, 4, 5, 6};
    return torch::from_blob(data.data(), {3, 2}, {1, 3}, torch::kFloat32).contiguous();
  });
  IDIOM_DO({
    int freed = 0;
    float* data = new float[2]{1, 2};
    {
      torch::Tensor t = torch::from_blob(data, {2}, [&](void* memory) {
        delete[] static_cast<float*>(memory);
        ++freed;
      });
    }
    return freed;
  });
  IDIOM_DO({
    unsigned char pixels[] = {0, 127, 255};
    return torch::from_blob(pixels, {3}, torch::kByte).to(torch::kFloat32).div(255);
  });
  IDIOM_DO({
    torch::Tensor t = torch::zeros({2, 2});
    float* data = t.data_ptr<float>();
    for (int i = 0; i < t.numel(); ++i) data[i] = i * 0.5f;
    return t;
  });
  IDIOM_DO({
    std::vector<float> out(x.data_ptr<float>(), x.data_ptr<float>() + x.numel());
    return out.size() + out[3];
  });
  IDIOM_DO({
    auto a = x.accessor<float, 2>();
    float sum = 0;
    for (int i = 0; i < a.size(0); i++)
      for (int j = 0; j < a.size(1); j++) sum += a[i][j];
    return sum;
  });
  IDIOM_DO({
    torch::Tensor t = torch::zeros({3});
    auto a = t.accessor<float, 1>();
    for (int64_t i = 0; i < a.size(0); ++i) a[i] = static_cast<float>(i);
    return t;
  });
  IDIOM(std::get<0>(std::make_tuple(x.const_data_ptr<float>()[0], 0)));
  IDIOM_HOLDS(x.data_ptr() == x.data_ptr<float>());
}

TEST_F(CreationIdioms, Random) {
  IDIOM_HOLDS_DO({
    torch::manual_seed(0);
    torch::Tensor a = torch::rand({2, 3});
    torch::manual_seed(0);
    return torch::equal(a, torch::rand({2, 3}));
  });
  IDIOM_HOLDS(torch::rand({100}).lt(1).all().item<bool>());
  IDIOM_HOLDS(torch::randn({1000}).mean().abs().item<float>() < 0.3);
  IDIOM_HOLDS(torch::randn({2, 3}, torch::kFloat64).dtype() == torch::kFloat64);
  IDIOM_HOLDS(torch::rand({2}, torch::requires_grad()).requires_grad());
  IDIOM_HOLDS(torch::randint(10, {50}).max().item<int64_t>() < 10);
  IDIOM_HOLDS(torch::randint(3, 10, {50}).min().item<int64_t>() >= 3);
  IDIOM_HOLDS(torch::randint(0, 2, {4}, torch::kInt32).scalar_type() == torch::kInt32);
  IDIOM(std::get<0>(torch::randperm(6).sort()));
  IDIOM_HOLDS(torch::normal(2.0, 0.1, {100}).mean().item<float>() > 1);
  IDIOM_HOLDS(at::normal(torch::zeros({3}), torch::ones({3})).size(0) == 3);
  IDIOM_HOLDS(torch::bernoulli(u).le(1).all().item<bool>());
  IDIOM_HOLDS(torch::multinomial(p, 2).size(1) == 2);
  IDIOM_HOLDS(p.multinomial(8, /*replacement=*/true).lt(4).all().item<bool>());
  IDIOM_HOLDS(torch::empty({50}).uniform_(-1, 1).abs().le(1).all().item<bool>());
  IDIOM_HOLDS(torch::empty({50}).normal_(0, 1).isfinite().all().item<bool>());
  IDIOM_HOLDS(torch::empty({50}).random_(10).lt(10).all().item<bool>());
  IDIOM_HOLDS(torch::empty({50}).exponential_().gt(0).all().item<bool>());
  IDIOM_HOLDS(torch::zeros({50}).bernoulli_(0.5).le(1).all().item<bool>());
  IDIOM_HOLDS(torch::dropout(x, 0.5, /*train=*/true).sizes() == x.sizes());
  IDIOM(torch::dropout(x, 0.5, /*train=*/false));
  IDIOM_HOLDS(torch::empty({9}).geometric_(0.5).ge(1).all().item<bool>());
  IDIOM_HOLDS(torch::empty({9}).log_normal_().gt(0).all().item<bool>());
}

}  // namespace
