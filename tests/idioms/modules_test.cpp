#include "tests/idioms/idioms.h"

namespace {

using namespace torch::nn;

struct NetImpl : torch::nn::Module {
  NetImpl(int64_t in, int64_t hidden) : fc1(in, hidden), fc2(torch::nn::LinearOptions(hidden, 2).bias(false)) {
    register_module("fc1", fc1);
    register_module("fc2", fc2);
    scale = register_parameter("scale", torch::ones({1}));
    seen = register_buffer("seen", torch::zeros({1}));
  }
  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(fc1->forward(x));
    x = torch::dropout(x, /*p=*/0.5, /*training=*/is_training());
    return fc2(x) * scale;
  }
  torch::nn::Linear fc1, fc2;
  torch::Tensor scale, seen;
};
TORCH_MODULE(Net);

struct Plain : torch::nn::Module {
  Plain() {
    conv1 = register_module("conv1", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 4, 3)));
    fc = register_module("fc", torch::nn::Linear(48, 2));
    W = register_parameter("W", torch::zeros({2}));
  }
  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(conv1->forward(x));
    x = x.view({-1, 48});
    return torch::log_softmax(fc->forward(x) + W, /*dim=*/1);
  }
  torch::nn::Conv2d conv1{nullptr};
  torch::nn::Linear fc{nullptr};
  torch::Tensor W;
};

struct StackImpl : torch::nn::Module {
  StackImpl() {
    for (int i = 0; i < 2; ++i) layers->push_back(torch::nn::Linear(4, 4));
    register_module("layers", layers);
  }
  torch::Tensor forward(torch::Tensor x) {
    for (auto& layer : *layers) x = torch::tanh(layer->as<torch::nn::Linear>()->forward(x));
    return x;
  }
  torch::nn::ModuleList layers;
};
TORCH_MODULE(Stack);

struct ModuleIdioms : Idioms {};

TEST_F(ModuleIdioms, OfOnesOwn) {
  IDIOM_DO({
    Net net(4, 5);
    net->eval();
    return filled(net)->forward(x);
  });
  IDIOM_DO({
    auto net = filled(std::make_shared<Plain>());
    return net->forward(img);
  });
  IDIOM_DO({
    Net net(4, 5);
    std::vector<int64_t> sizes;
    for (const auto& p : net->parameters()) sizes.push_back(p.numel());
    return sizes;
  });
  IDIOM_HOLDS_DO({
    Net net(4, 5);
    std::string names;
    for (const auto& pair : net->named_parameters()) names += pair.key() + " ";
    return names == "scale fc1.weight fc1.bias fc2.weight ";
  });
  IDIOM_DO({
    Net net = filled(Net(4, 5));
    int64_t total = 0;
    for (auto& p : net->named_parameters()) total += p.value().numel();
    return total;
  });
  IDIOM(Net(4, 5)->named_parameters()["fc1.weight"].sizes());
  IDIOM(Net(4, 5)->named_parameters().size());
  IDIOM(Net(4, 5)->named_parameters().contains("fc2.bias"));
  IDIOM(Net(4, 5)->named_parameters(/*recurse=*/false).size());
  IDIOM(Net(4, 5)->named_buffers()["seen"]);
  IDIOM(Net(4, 5)->buffers().size());
  IDIOM(Net(4, 5)->children().size());
  IDIOM(Net(4, 5)->named_children().size());
  IDIOM(Net(4, 5)->modules().size());
  IDIOM(Net(4, 5)->modules(/*include_self=*/false).size());
  IDIOM_HOLDS(Net(4, 5)->named_children().keys() == std::vector<std::string>({"fc1", "fc2"}));
  IDIOM_HOLDS_DO({
    Net net(4, 5);
    net->train();
    bool training = net->is_training();
    net->eval();
    return training && !net->is_training() && !net->fc1->is_training();
  });
  IDIOM_DO({
    Net net(4, 5);
    net->apply([](torch::nn::Module& module) {
      torch::NoGradGuard no_grad;
      if (auto* linear = module.as<torch::nn::Linear>()) linear->weight.fill_(0.5);
    });
    return net->fc2->weight;
  });
  IDIOM_DO({
    Net net(4, 5);
    for (auto& module : net->modules(/*include_self=*/false)) {
      torch::NoGradGuard no_grad;
      if (auto* M = dynamic_cast<torch::nn::LinearImpl*>(&*module)) torch::nn::init::constant_(M->weight, 0.1);
    }
    return net->fc1->weight;
  });
  IDIOM_HOLDS_DO({
    Net net(4, 5);
    net->to(torch::kFloat64);
    return net->fc1->weight.dtype() == torch::kFloat64;
  });
  IDIOM_HOLDS_DO({
    Net net(4, 5);
    net->to(torch::kCPU);
    net->to(torch::Device(torch::kCPU), torch::kFloat64);
    return net->fc1->weight.device().is_cpu();
  });
  IDIOM_DO({
    Net net = filled(Net(4, 5));
    net->eval();
    net->zero_grad();
    net(x).sum().backward();
    return std::make_tuple(net->fc1->weight.grad(), net->scale.grad());
  });
  IDIOM_DO({
    Net net(4, 5), copy(4, 5);
    filled(net);
    torch::NoGradGuard no_grad;
    auto source = net->named_parameters();
    for (auto& p : copy->named_parameters()) p.value().copy_(source[p.key()]);
    return copy->fc1->weight;
  });
  IDIOM_HOLDS_DO({
    Net net(4, 5);
    for (auto& p : net->parameters()) p.set_requires_grad(false);
    for (auto& p : net->parameters()) p.requires_grad_(false);
    return !net->fc1->weight.requires_grad();
  });
  IDIOM_HOLDS_DO({
    Net net{nullptr};
    bool empty = net.is_empty();
    net = Net(4, 5);
    return empty && bool(net) && net.ptr()->fc1.get() == &*net->fc1;
  });
  IDIOM_HOLDS_DO({
    std::stringstream out;
    out << torch::nn::Linear(3, 4);
    return out.str().find("torch::nn::Linear") == 0 || out.str().find("Linear") == 0;
  });
  IDIOM_HOLDS_DO({
    std::stringstream out;
    Net net(4, 5);
    net->pretty_print(out);
    return !out.str().empty();
  });
  IDIOM_DO({
    Stack stack;
    return filled(stack)->forward(x);
  });
  IDIOM(Stack()->named_parameters().keys().size());
}

TEST_F(ModuleIdioms, Containers) {
  IDIOM_DO({
    torch::nn::Sequential net(torch::nn::Linear(4, 5), torch::nn::ReLU(), torch::nn::Linear(5, 2));
    return filled(net)->forward(x);
  });
  IDIOM_DO({
    torch::nn::Sequential net(torch::nn::Linear(torch::nn::LinearOptions(4, 3)), torch::nn::Functional(torch::relu),
                              torch::nn::LogSoftmax(1));
    return filled(net)->forward(x);
  });
  IDIOM_DO({
    torch::nn::Sequential net({{"fc", torch::nn::Linear(4, 2)}, {"act", torch::nn::Tanh()}});
    return std::make_tuple(filled(net)->forward(x), net->named_parameters()["fc.weight"]);
  });
  IDIOM_DO({
    torch::nn::Sequential net;
    net->push_back(torch::nn::Linear(4, 3));
    net->push_back("act", torch::nn::Sigmoid());
    net->push_back(torch::nn::Functional(torch::leaky_relu, 0.2));
    return filled(net)->forward(x);
  });
  IDIOM_HOLDS(torch::nn::Sequential(Linear(1, 2), ReLU())->size() == 2);
  IDIOM_HOLDS(torch::nn::Sequential()->is_empty());
  IDIOM_DO({
    torch::nn::Sequential net(Linear(4, 2), ReLU());
    filled(net);
    return net->ptr(0)->as<torch::nn::Linear>()->weight + net[0]->as<torch::nn::LinearImpl>()->weight;
  });
  IDIOM_DO({
    torch::nn::Sequential net(Linear(4, 2), ReLU());
    int64_t parameters = 0;
    for (auto& module : *net) parameters += module.ptr()->parameters().size();
    return parameters;
  });
  IDIOM(torch::nn::Sequential(Linear(4, 2))->at<torch::nn::LinearImpl>(0).options.out_features());
  IDIOM_DO({
    torch::nn::ModuleList list(Linear(4, 4), Tanh());
    filled(list);
    list->push_back(Linear(4, 2));
    return list[0]->as<Linear>()->forward(x).sum() + static_cast<float>(list->size());
  });
  IDIOM_DO({
    torch::nn::ModuleList list;
    list->extend(std::vector<Linear>{Linear(4, 4), Linear(4, 2)});
    return list->at<LinearImpl>(1).weight.sizes();
  });
  IDIOM_DO({
    torch::OrderedDict<std::string, std::shared_ptr<torch::nn::Module>> modules = {
        {"fc", Linear(4, 3).ptr()},
        {"act", ReLU().ptr()},
    };
    torch::nn::ModuleDict dict(modules);
    return filled(dict)["fc"]->as<Linear>()->forward(x);
  });
  IDIOM_HOLDS_DO({
    torch::OrderedDict<std::string, std::shared_ptr<torch::nn::Module>> modules;
    modules.insert("fc", std::make_shared<LinearImpl>(4, 3));
    torch::nn::ModuleDict dict;
    dict->update(modules);
    return dict->contains("fc") && dict->keys()[0] == "fc" && dict->size() == 1 && !dict->empty();
  });
  IDIOM_DO({
    torch::nn::ParameterList list(torch::ones({2}), torch::zeros({3}));
    list->append(torch::ones({1}));
    return list->size() + list->parameters().size();
  });
  IDIOM_DO({
    torch::nn::ParameterDict dict;
    dict->insert("w", torch::ones({2}));
    return dict["w"] + dict->get("w");
  });
  IDIOM_DO({
    torch::nn::AnyModule any(torch::nn::Linear(4, 2));
    filled(any.ptr());
    return any.forward(x);
  });
  IDIOM_DO({
    torch::OrderedDict<std::string, torch::Tensor> dict;
    dict.insert("a", x);
    dict.insert("b", y);
    return dict["a"] + *dict.find("b") + dict.values()[0];
  });
}

TEST_F(ModuleIdioms, Activations) {
  IDIOM(ReLU()(x));
  IDIOM(ReLU(true)(x.clone()));
  IDIOM(ReLU(ReLUOptions().inplace(true))->forward(x.clone()));
  IDIOM(ReLU6(ReLU6Options().inplace(true))(x.clone() * 5));
  IDIOM(LeakyReLU(LeakyReLUOptions().negative_slope(0.2))(x));
  IDIOM(LeakyReLU(torch::nn::LeakyReLUOptions().negative_slope(0.2).inplace(true))(x.clone()));
  IDIOM(ELU(ELUOptions().alpha(0.5))(x));
  IDIOM(SELU()(x));
  IDIOM(CELU(CELUOptions().alpha(2))(x));
  IDIOM(GELU()(x));
  IDIOM(GELU(GELUOptions().approximate("tanh"))(x));
  IDIOM(SiLU()(x));
  IDIOM(Mish()(x));
  IDIOM(Sigmoid()(x));
  IDIOM(Tanh()(x));
  IDIOM(Softplus(SoftplusOptions().beta(2).threshold(10))(x));
  IDIOM(Softsign()(x));
  IDIOM(Tanhshrink()(x));
  IDIOM(Hardtanh(HardtanhOptions().min_val(-0.5).max_val(0.5))(x));
  IDIOM(Hardshrink(HardshrinkOptions().lambda(0.3))(x));
  IDIOM(Softshrink(SoftshrinkOptions(0.3))(x));
  IDIOM(Threshold(ThresholdOptions(0.1, 20))(x));
  IDIOM(PReLU(PReLUOptions().num_parameters(4))(x));
  IDIOM(RReLU(RReLUOptions().lower(0.2).upper(0.2))(x));
  IDIOM(GLU(GLUOptions(1))(x));
  IDIOM(Softmax(1)(x));
  IDIOM(Softmax(SoftmaxOptions(0))(x));
  IDIOM(LogSoftmax(LogSoftmaxOptions(1))(x));
  IDIOM(Softmin(SoftminOptions(1))(x));
  IDIOM(Softmax2d()(img));
  IDIOM(LogSigmoid()(x));
  IDIOM_HOLDS(Dropout(0.5)(x).sizes() == x.sizes());
  IDIOM_HOLDS(Dropout(DropoutOptions().p(0.5).inplace(true))(x.clone()).sizes() == x.sizes());
  IDIOM_HOLDS(Dropout2d(Dropout2dOptions(0.5))(img).sizes() == img.sizes());
  IDIOM_DO({
    Dropout dropout(DropoutOptions(0.5));
    dropout->eval();
    return dropout(x);
  });
  IDIOM(AlphaDropout(0.0)(x));
  IDIOM_GRAD(ReLU(true)(x * 2));
  IDIOM_GRAD(LeakyReLU(LeakyReLUOptions().negative_slope(0.2).inplace(true))(x * 2));
  IDIOM_GRAD(ELU(ELUOptions().inplace(true))(x * 2));
  IDIOM_GRAD(Hardtanh(HardtanhOptions().inplace(true))(x * 2));
}

}  // namespace
