#include "tests/idioms/idioms.h"

namespace {

struct OptimIdioms : Idioms {
  // Three steps on a small problem; what the weight has become.
  template <class Optimizer>
  torch::Tensor trained(Optimizer& optimizer, const torch::Tensor& weight) {
    for (int step = 0; step < 3; ++step) {
      optimizer.zero_grad();
      (x.matmul(weight) - w).square().mean().backward();
      optimizer.step();
    }
    return weight.detach();
  }
  torch::Tensor weight = formula({4}, 9).requires_grad_();
  torch::Tensor bias = formula({1}, 3).requires_grad_();
};

TEST_F(OptimIdioms, Kinds) {
  IDIOM_DO({
    torch::optim::SGD optimizer({weight}, /*lr=*/0.01);
    return trained(optimizer, weight);
  });
  IDIOM_DO({
    torch::optim::SGD optimizer({weight}, torch::optim::SGDOptions(0.1).momentum(0.9));
    return trained(optimizer, weight);
  });
  IDIOM_DO({
    torch::optim::SGD optimizer({weight}, torch::optim::SGDOptions(0.01).momentum(0.5).nesterov(true).weight_decay(1e-3));
    return trained(optimizer, weight);
  });
  IDIOM_DO({
    torch::optim::Adam optimizer({weight}, torch::optim::AdamOptions(1e-3));
    return trained(optimizer, weight);
  });
  IDIOM_DO({
    torch::optim::Adam optimizer({weight}, /*lr=*/1e-2);
    return trained(optimizer, weight);
  });
  IDIOM_DO({
    torch::optim::Adam optimizer({weight}, torch::optim::AdamOptions(2e-4).betas(std::make_tuple(0.5, 0.999)));
    return trained(optimizer, weight);
  });
  IDIOM_DO({
    torch::optim::Adam optimizer({weight}, torch::optim::AdamOptions(1e-3).betas({0.9, 0.95}).eps(1e-6).amsgrad(true));
    return trained(optimizer, weight);
  });
  IDIOM_DO({
    torch::optim::AdamW optimizer({weight}, torch::optim::AdamWOptions(1e-2).weight_decay(0.1));
    return trained(optimizer, weight);
  });
  IDIOM_DO({
    torch::optim::RMSprop optimizer({weight}, torch::optim::RMSpropOptions(1e-2).alpha(0.9).momentum(0.1).centered(true));
    return trained(optimizer, weight);
  });
  IDIOM_DO({
    torch::optim::Adagrad optimizer({weight}, torch::optim::AdagradOptions(1e-1).lr_decay(0.01));
    return trained(optimizer, weight);
  });
  IDIOM_DO({
    torch::optim::LBFGS optimizer({weight}, torch::optim::LBFGSOptions(0.5).max_iter(3).line_search_fn("strong_wolfe"));
    auto closure = [&]() {
      optimizer.zero_grad();
      auto loss = (x.matmul(weight) - w).square().mean();
      loss.backward();
      return loss;
    };
    torch::Tensor loss = optimizer.step(closure);
    return std::make_tuple(loss.detach(), weight.detach());
  });
  IDIOM_DO({
    torch::optim::LBFGS optimizer(std::vector<torch::Tensor>{weight}, torch::optim::LBFGSOptions(0.1).history_size(5).max_eval(4));
    for (int step = 0; step < 2; ++step) {
      optimizer.step([&] {
        optimizer.zero_grad();
        torch::Tensor loss = (x.matmul(weight) - w).square().mean();
        loss.backward();
        return loss;
      });
    }
    return weight.detach();
  });
}

TEST_F(OptimIdioms, Groups) {
  IDIOM_DO({
    torch::optim::Adam optimizer({weight}, torch::optim::AdamOptions(1e-3));
    for (auto& group : optimizer.param_groups()) static_cast<torch::optim::AdamOptions&>(group.options()).lr(0.1);
    return trained(optimizer, weight);
  });
  IDIOM_DO({
    torch::optim::SGD optimizer({weight}, 0.01);
    optimizer.param_groups()[0].options().set_lr(0.1);
    return optimizer.param_groups()[0].options().get_lr();
  });
  IDIOM_DO({
    torch::optim::SGD optimizer({weight}, 0.01);
    auto& options = static_cast<torch::optim::SGDOptions&>(optimizer.param_groups().front().options());
    options.lr(options.lr() * 0.5);
    return options.lr() + options.momentum();
  });
  IDIOM_DO({
    torch::optim::SGD optimizer({weight, bias}, 0.01);
    return optimizer.param_groups()[0].params().size() + optimizer.param_groups().size();
  });
  IDIOM_DO({
    std::vector<torch::optim::OptimizerParamGroup> groups;
    groups.push_back(torch::optim::OptimizerParamGroup({weight}));
    groups.emplace_back(std::vector<torch::Tensor>{bias},
                        std::make_unique<torch::optim::SGDOptions>(torch::optim::SGDOptions(0.5)));
    torch::optim::SGD optimizer(groups, torch::optim::SGDOptions(0.01));
    optimizer.zero_grad();
    (x.matmul(weight) + bias).mean().backward();
    optimizer.step();
    return std::make_tuple(weight.detach(), bias.detach());
  });
}

TEST_F(OptimIdioms, Schedules) {
  IDIOM_DO({
    torch::optim::SGD optimizer({weight}, 1.0);
    torch::optim::StepLR scheduler(optimizer, /*step_size=*/2, /*gamma=*/0.5);
    for (int epoch = 0; epoch < 5; ++epoch) {
      optimizer.step();
      scheduler.step();
    }
    return optimizer.param_groups()[0].options().get_lr();
  });
}

TEST_F(OptimIdioms, Gradients) {
  IDIOM_DO({
    (weight * 3).sum().backward();
    torch::nn::utils::clip_grad_norm_({weight}, 1.0);
    return weight.grad();
  });
  IDIOM_DO({
    weight.mutable_grad() = torch::full({4}, 2.0);
    torch::nn::utils::clip_grad_value_({weight}, 0.5);
    return weight.grad();
  });
  IDIOM(torch::nn::utils::parameters_to_vector({weight, bias}));
  IDIOM_DO({
    torch::nn::utils::vector_to_parameters(torch::arange(5).to(torch::kFloat), {weight, bias});
    return std::make_tuple(weight.detach(), bias.detach());
  });
}

TEST_F(OptimIdioms, Programs) {
  // Linear regression by hand.
  IDIOM_DO({
    torch::Tensor W = torch::zeros({4}, torch::requires_grad());
    for (int epoch = 0; epoch < 5; ++epoch) {
      torch::Tensor loss = (x.mv(W) - w).pow(2).mean();
      loss.backward();
      {
        torch::NoGradGuard no_grad;
        W -= 0.05 * W.grad();
        W.grad().zero_();
      }
    }
    return W.detach();
  });
  // An XOR network.
  IDIOM_DO({
    torch::nn::Sequential net(torch::nn::Linear(2, 4), torch::nn::Tanh(), torch::nn::Linear(4, 1), torch::nn::Sigmoid());
    filled(net);
    torch::Tensor inputs = torch::tensor({{0.0f, 0.0f}, {0.0f, 1.0f}, {1.0f, 0.0f}, {1.0f, 1.0f}});
    torch::Tensor targets = torch::tensor({0.0f, 1.0f, 1.0f, 0.0f}).unsqueeze(1);
    torch::optim::Adam optimizer(net->parameters(), torch::optim::AdamOptions(0.05));
    torch::Tensor loss;
    for (int i = 0; i < 5; ++i) {
      optimizer.zero_grad();
      loss = torch::binary_cross_entropy(net->forward(inputs), targets);
      loss.backward();
      optimizer.step();
    }
    return loss.detach();
  });
  // A classifier's step and its accuracy.
  IDIOM_DO({
    torch::nn::Sequential model(torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 4, 3).padding(1)), torch::nn::BatchNorm2d(4),
                                torch::nn::ReLU(), torch::nn::AdaptiveAvgPool2d(1), torch::nn::Flatten(),
                                torch::nn::Linear(4, 3));
    filled(model);
    torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
    torch::Tensor target = torch::tensor({2, 0});
    float running = 0;
    for (size_t epoch = 1; epoch <= 2; ++epoch) {
      model->train();
      optimizer.zero_grad();
      auto output = model->forward(img);
      auto loss = torch::nll_loss(torch::log_softmax(output, 1), target);
      loss.backward();
      optimizer.step();
      running += loss.template item<float>();
    }
    model->eval();
    torch::NoGradGuard no_grad;
    auto correct = model->forward(img).argmax(1).eq(target).sum().item<int64_t>();
    return torch::tensor(running) + correct;
  });
  // A GAN's two steps, the second with a detached input.
  IDIOM_DO({
    torch::nn::Linear generator(4, 4), discriminator(4, 1);
    filled(generator), filled(discriminator);
    torch::optim::Adam d_optimizer(discriminator->parameters(), torch::optim::AdamOptions(2e-4).betas(std::make_tuple(0.5, 0.5)));
    torch::Tensor fake = generator->forward(x);
    torch::Tensor d_loss = F::binary_cross_entropy_with_logits(discriminator->forward(fake.detach()), torch::zeros({3, 1}));
    d_loss.backward();
    d_optimizer.step();
    torch::Tensor g_loss = F::binary_cross_entropy_with_logits(discriminator->forward(fake), torch::ones({3, 1}));
    g_loss.backward();
    return std::make_tuple(d_loss, g_loss, generator->weight.grad());
  });
}

}  // namespace
