#include "tests/idioms/idioms.h"

// What is said in several statements.
namespace {

struct StatementIdioms : Idioms {};

TEST_F(StatementIdioms, All) {
  IDIOM_DO({
    torch::set_num_threads(1);
    return x.sum();
  });
  IDIOM_DO({
    torch::manual_seed(1);
    at::manual_seed(1);
    return x;
  });
  IDIOM_DO({
    auto [values, indices] = x.max(1);
    return values + indices;
  });
  IDIOM_DO({
    std::tuple<torch::Tensor, torch::Tensor> r = torch::max(x, 1);
    return std::get<0>(r);
  });
  IDIOM_DO({
    torch::Tensor a, b;
    std::tie(a, b) = x.sort(1);
    return a;
  });
  IDIOM_DO({
    std::vector<at::Tensor> v2 = x.unbind(0);
    return at::stack(v2, 0);
  });
  IDIOM_DO({
    torch::TensorList list = {x, y};
    return torch::cat(list, 0);
  });
  IDIOM_DO({
    at::ArrayRef<int64_t> dims = {0, 1};
    return x.sum(dims);
  });
  IDIOM_DO({
    std::array<int64_t, 2> dims = {0, 1};
    return x.sum(dims);
  });
  IDIOM_DO({
    auto shape = x.sizes().vec();
    shape.push_back(1);
    return x.view(shape);
  });
  IDIOM_DO({
    torch::Tensor t = torch::rand({2, 2});
    t = t.to(torch::kFloat64);
    return t.dtype() == torch::kFloat64;
  });
  IDIOM_DO({
    const torch::Tensor& t = x;
    return t.mul(2);
  });
  IDIOM_DO({
    torch::Tensor t = x.clone();
    t.index_put_({torch::indexing::Slice(), torch::indexing::Slice(0, 2)}, 0.0);
    return t;
  });
  IDIOM_DO({
    torch::Tensor t = x.clone();
    t.index({0}) = 5;
    return t;
  });
  IDIOM_DO({
    torch::Tensor t = x.clone();
    t[0][1] *= 3;
    return t;
  });
  IDIOM_DO({
    torch::Tensor t = x.clone();
    t.mul_(2).add_(1).clamp_(-1, 3);
    return t;
  });
  IDIOM_DO({
    auto t = torch::zeros({3});
    for (int64_t i = 0; i < t.size(0); i++) t[i] = i * i;
    return t;
  });
  IDIOM_DO({
    auto foo_a = x.accessor<float, 2>();
    float trace = 0;
    for (int i = 0; i < foo_a.size(0); i++) trace += foo_a[i][i];
    return trace;
  });
  IDIOM_DO({
    float sum = 0;
    const float* ptr = x.const_data_ptr<float>();
    for (int64_t i = 0; i < x.numel(); ++i) sum += ptr[i];
    return sum;
  });
  IDIOM_DO({
    std::vector<float> data(x.data_ptr<float>(), x.data_ptr<float>() + x.numel());
    return torch::tensor(data).view({3, 4});
  });
  IDIOM_DO({
    torch::nn::Linear net(2, 3);
    for (const auto& item : net->named_parameters()) {
      const auto& key = item.key();
      (void)key;
    }
    return net->parameters().size();
  });
  IDIOM_DO({
    torch::nn::Sequential net(torch::nn::Linear(4, 3));
    auto copy = std::dynamic_pointer_cast<torch::nn::SequentialImpl>(filled(net)->clone());
    return copy->forward(x);
  });
  IDIOM_DO({
    torch::nn::Linear net(4, 3);
    filled(net);
    auto copy = net->clone();
    return copy->parameters()[0];
  });
  IDIOM_DO({
    torch::nn::Linear a(4, 3);
    torch::nn::Linear same = a;
    return a->weight.is_same(same->weight);
  });
  IDIOM_DO({
    auto net = torch::nn::Linear(4, 3);
    auto ptr = net.ptr();
    std::shared_ptr<torch::nn::Module> base = ptr;
    return base->parameters().size();
  });
  IDIOM_DO({
    torch::nn::ModuleHolder<torch::nn::LinearImpl> h(4, 3);
    return h->options.out_features();
  });
  IDIOM_DO({
    torch::nn::Sequential net(torch::nn::Linear(4, 3));
    net->extend(std::vector<torch::nn::Linear>{torch::nn::Linear(3, 3)});
    return net->size();
  });
  IDIOM_DO({
    torch::nn::Sequential net(torch::nn::Linear(4, 3));
    return net->at<torch::nn::LinearImpl>(0).weight.sizes();
  });
  IDIOM_DO({
    torch::nn::Sequential net(torch::nn::Linear(4, 3));
    return net->ptr<torch::nn::LinearImpl>(0)->weight.sizes();
  });
  IDIOM_DO({
    torch::nn::Sequential net(torch::nn::Linear(4, 3));
    return net[0]->name() == "torch::nn::LinearImpl" || true;
  });
  IDIOM_DO({
    torch::nn::Sequential net;
    net->push_back(torch::nn::Linear(4, 3));
    net->push_back(torch::nn::ReLU());
    return filled(net)->forward(x);
  });
  IDIOM_DO({
    torch::nn::Sequential s1(torch::nn::Linear(4, 4)), s2(torch::nn::Linear(4, 2));
    torch::nn::Sequential both;
    for (auto& mod : *s1) both->push_back(mod);
    for (auto& mod : *s2) both->push_back(mod);
    return filled(both)->forward(x);
  });
  IDIOM_DO({
    torch::nn::Sequential net(torch::nn::Linear(4, 3));
    net->to(torch::kFloat64);
    return net->forward(x.to(torch::kFloat64)).dtype() == torch::kFloat64;
  });
  IDIOM_DO({
    torch::nn::Dropout drop(0.5);
    drop->train();
    return drop->is_training();
  });
  IDIOM_DO({
    torch::nn::Dropout drop(0.5);
    drop->options.p(0.2);
    return drop->options.p();
  });
  IDIOM_DO({
    torch::nn::Linear fc(4, 3);
    fc->to(torch::kCPU, torch::kFloat64, /*non_blocking=*/true);
    return fc->weight.dtype() == torch::kFloat64;
  });
  IDIOM_DO({
    torch::nn::Linear fc(4, 3);
    fc->zero_grad(/*set_to_none=*/false);
    return fc->weight.grad().defined();
  });
  IDIOM_DO({
    torch::nn::Linear fc(4, 3);
    torch::nn::init::xavier_uniform_(fc->weight);
    torch::nn::init::constant_(fc->bias, 0.01);
    return fc->bias;
  });
  IDIOM_DO({
    torch::nn::Linear fc(4, 3);
    torch::nn::init::kaiming_normal_(fc->weight, 0.0, torch::kFanIn, torch::kLeakyReLU);
    return fc->weight.sizes();
  });
  IDIOM_DO({
    torch::nn::Linear fc(4, 3);
    torch::NoGradGuard no_grad;
    fc->weight.copy_(torch::ones({3, 4}));
    fc->bias.zero_();
    return fc(x);
  });
  IDIOM_DO({
    torch::nn::Linear fc(4, 3);
    fc->weight = torch::ones({3, 4});
    return fc->forward(x).sizes();
  });
  IDIOM_DO({
    torch::Tensor t = x.clone().requires_grad_();
    torch::optim::SGD opt({t}, 0.1);
    for (auto param_group : opt.param_groups()) param_group.options().set_lr(param_group.options().get_lr() * 0.5);
    return opt.param_groups().size();
  });
  IDIOM_DO({
    auto t = torch::randn({2, 2});
    t.requires_grad_(true);
    auto b2 = (t * t).sum();
    return b2.requires_grad();
  });
  IDIOM_DO({
    torch::Tensor t = x.clone().set_requires_grad(true);
    auto g = torch::autograd::grad({t.pow(2).sum()}, {t}, {}, /*retain_graph=*/torch::nullopt, /*create_graph=*/true);
    return g[0];
  });
  IDIOM_DO({
    at::parallel_for(0, 4, 1, [&](int64_t begin, int64_t end) {
      (void)begin;
      (void)end;
    });
    return x;
  });
  IDIOM_DO({
    torch::OrderedDict<std::string, int> dict;
    dict.insert("a", 1);
    return dict["a"] + static_cast<int>(dict.size());
  });
  IDIOM_DO({
    torch::Device device = torch::kCPU;
    torch::nn::Linear fc(4, 3);
    fc->to(device);
    return x.to(device).device() == device;
  });
  IDIOM_DO({
    torch::Device device("cpu");
    auto options = torch::TensorOptions().dtype(torch::kFloat32).device(device);
    return torch::zeros({2}, options);
  });
  IDIOM_DO({
    torch::Tensor t;
    if (!t.defined()) t = x;
    return t;
  });
  IDIOM_DO({
    torch::Tensor t = x;
    t.reset();
    return t.defined();
  });
  IDIOM_DO({
    torch::Tensor t = x.clone().requires_grad_();
    torch::optim::SGD optimizer({t}, torch::optim::SGDOptions(0.1));
    auto closure = [&]() {
      optimizer.zero_grad();
      auto loss = t.pow(2).sum();
      loss.backward();
      return loss;
    };
    torch::Tensor loss = optimizer.step(closure);
    return std::make_tuple(t.detach(), loss.detach());
  });
  IDIOM_DO({
    torch::optim::Adam optimizer({x.clone().requires_grad_(), y.clone().requires_grad_()}, 1e-3);
    return optimizer.parameters().size();
  });
  IDIOM_DO({
    torch::nn::Linear net(4, 3);
    filled(net);
    auto copy = std::dynamic_pointer_cast<torch::nn::LinearImpl>(net->clone());
    torch::NoGradGuard no_grad;
    net->weight.zero_();
    return copy->forward(x);
  });
}

}  // namespace
