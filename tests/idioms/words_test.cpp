#include "tests/idioms/idioms.h"

// Words around tensors: archives, checks, flat names, what a tensor tells of itself.
namespace {

struct WordIdioms : Idioms {};

struct ScaledImpl : torch::nn::Module {
  ScaledImpl() : fc(3, 2) {
    register_module("fc", fc);
    scale = register_parameter("scale", torch::full({2}, 2.0));
  }
  torch::Tensor forward(torch::Tensor x) { return fc->forward(x) * scale; }
  torch::nn::Linear fc;
  torch::Tensor scale;
};
TORCH_MODULE(Scaled);

TEST_F(WordIdioms, Archives) {
  IDIOM_HOLDS_DO({
    Scaled net, other;
    torch::serialize::OutputArchive out;
    net->save(out);
    out.write("epoch", torch::tensor(3));
    std::stringstream stream;
    out.save_to(stream);
    torch::serialize::InputArchive in;
    in.load_from(stream);
    other->load(in);
    torch::Tensor epoch, missing;
    in.read("epoch", epoch);
    return other->fc->weight.equal(net->fc->weight) && epoch.item<int64_t>() == 3 && !in.try_read("missing", missing);
  });
  IDIOM_HOLDS_DO({
    torch::serialize::OutputArchive out, inner;
    inner.write("a", torch::ones({2}));
    out.write("inner", inner);
    std::stringstream stream;
    out.save_to(stream);
    torch::serialize::InputArchive in, nested;
    in.load_from(stream, torch::kCPU);
    in.read("inner", nested);
    torch::Tensor a;
    nested.read("a", a, /*is_buffer=*/true);
    return a.sum().item<float>() == 2 && nested.keys().size() == 1;
  });
  IDIOM_HOLDS_DO({
    Scaled net;
    torch::optim::Adam adam(net->parameters(), 0.1), again(net->parameters(), 0.2);
    net(torch::ones({1, 3})).sum().backward();
    adam.step();
    torch::serialize::OutputArchive out;
    adam.save(out);
    std::stringstream stream;
    out.save_to(stream);
    torch::serialize::InputArchive in;
    in.load_from(stream);
    again.load(in);
    return true;
  });
  IDIOM_HOLDS_DO({
    std::stringstream stream;
    torch::save(x, stream);
    torch::Tensor y;
    torch::load(y, stream, torch::kCPU);
    return y.equal(x);
  });
}

TEST_F(WordIdioms, Checks) {
  IDIOM_HOLDS_DO({
    TORCH_CHECK(x.defined(), "x is not there");
    TORCH_CHECK(true);
    try {
      TORCH_CHECK(x.dim() == 7, "expected 7 dimensions, got ", x.dim());
    } catch (const c10::Error& error) {
      return std::string(error.what()).find("expected 7 dimensions, got ") != std::string::npos &&
             std::string(error.what_without_backtrace()).find("7 dimensions") != std::string::npos &&
             error.msg().find("7 dimensions") != std::string::npos;
    }
    return false;
  });
  IDIOM_HOLDS_DO({
    try {
      TORCH_CHECK_EQ(x.dim(), 70);
    } catch (const c10::Error&) {
      return true;
    }
    return false;
  });
}

TEST_F(WordIdioms, FlatNames) {
  IDIOM_HOLDS(torch::fft_rfft(x).equal(torch::fft::rfft(x)));
  IDIOM_HOLDS(torch::fft_irfft(torch::fft_rfft(x)).sizes() == x.sizes() || x.size(-1) % 2 == 1);
  IDIOM_HOLDS(torch::special_expit(x).equal(torch::sigmoid(x)));
  IDIOM_HOLDS(torch::special_erf(x).equal(torch::erf(x)));
  IDIOM_HOLDS(torch::special_logsumexp(x, {1}).equal(torch::logsumexp(x, {1})));
  IDIOM_HOLDS(torch::linalg_inv(torch::eye(3)).equal(torch::eye(3)));
  IDIOM_HOLDS(torch::linalg_pinv(torch::diag(torch::tensor({1.0, 1e-3})), 1e-2).allclose(torch::diag(torch::tensor({1.0, 0.0}))));
}

TEST_F(WordIdioms, WhatATensorTells) {
  IDIOM_HOLDS(torch::numel(x) == x.numel());
  IDIOM_HOLDS(torch::is_floating_point(x) && !torch::is_complex(x) && torch::is_signed(x));
  IDIOM_HOLDS(torch::result_type(x, torch::tensor(1.0, torch::kDouble)) == torch::kFloat);
  IDIOM_HOLDS(torch::result_type(torch::ones({2}, torch::kInt), 1.5) == torch::kFloat);
  IDIOM_HOLDS(torch::result_type(torch::ones({2}, torch::kInt), torch::ones({2}, torch::kLong)) == torch::kLong);
  IDIOM_HOLDS(x.toString() == "CPUFloatType" && !x.is_pinned() && x.use_count() >= 1);
  IDIOM_HOLDS_DO({
    std::ostringstream out;
    out << x.options();
    return out.str().find("requires_grad=") != std::string::npos;
  });
  IDIOM_HOLDS(torch::get_num_threads() >= 1);
}

struct Doubled : torch::data::transforms::TensorTransform<torch::Tensor> {
  torch::Tensor operator()(torch::Tensor input) override { return input * 2; }
};
struct Counting : torch::data::datasets::Dataset<Counting> {
  torch::data::Example<> get(size_t index) override {
    return {torch::full({2}, double(index)), torch::tensor(int64_t(index))};
  }
  torch::optional<size_t> size() const override { return 6; }
};

TEST_F(WordIdioms, DatasetsAndTransforms) {
  IDIOM_HOLDS_DO({
    auto dataset = Counting().map(Doubled()).map(torch::data::transforms::Stack<>());
    const size_t size = dataset.size().value();
    if (dataset.get_batch({1, 2}).data.sum().item<double>() != 12) return false;
    auto loader = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(std::move(dataset), 4);
    double sum = 0;
    for (auto& batch : *loader) sum += batch.data.sum().item<double>() + batch.target.sum().item<double>();
    return size == 6 && sum == 2 * 2 * 15 + 15;
  });
  IDIOM_HOLDS_DO({
    namespace T = torch::data::transforms;
    using Example = torch::data::Example<>;
    auto dataset = Counting()
                       .map(T::TensorLambda<>([](torch::Tensor x) { return x + 1; }))
                       .map(T::Lambda<Example>([](Example e) { return Example(e.data, e.target + 1); }))
                       .map(T::Collate<Example>([](std::vector<Example> all) { return T::Stack<>().apply_batch(all); }));
    auto loader = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(std::move(dataset), 6);
    auto batch = *loader->begin();
    return batch.data.sum().item<double>() == 2 * 21 && batch.target.sum().item<double>() == 21;
  });
  IDIOM_HOLDS(Counting().get_batch({1, 2}).size() == 2);
}

struct Centered : torch::nn::Module {
  torch::Tensor forward(torch::Tensor input) { return input - input.mean(); }
};
struct Halves : torch::nn::Module {
  Halves() : fc(register_module("fc", torch::nn::Linear(2, 2))) {}
  torch::Tensor forward(torch::Tensor input) { return fc->forward(input) / 2; }
  torch::nn::Linear fc;
};

TEST_F(WordIdioms, ModulesByValue) {
  IDIOM_HOLDS_DO({
    torch::nn::Sequential net = torch::nn::Sequential(Halves(), Centered());
    net->push_back(Halves());
    torch::Tensor y = net->forward(torch::ones({3, 2}));
    return net->parameters().size() == 4 && y.sizes() == torch::ones({3, 2}).sizes();
  });
}

TEST_F(WordIdioms, ListsOfWhatLiesElsewhere) {
  IDIOM_HOLDS_DO({
    float numbers[3] = {1, 2, 3};
    std::vector<float> list = {1, 2, 3};
    at::ArrayRef<float> a(numbers), b(list), c(numbers, 2);
    return torch::tensor(a).equal(torch::tensor(b)) && a.equals(b) && c.size() == 2 && b.slice(1, 2).vec()[0] == 2;
  });
}

TEST_F(WordIdioms, ResultsIntoTensors) {
  IDIOM_HOLDS_DO({
    torch::Tensor out = torch::empty_like(x), none = torch::empty({0});
    torch::add_out(out, x, x);
    torch::mul_out(none, x, x);
    return out.equal(x + x) && none.equal(x * x);
  });
  IDIOM_HOLDS_DO({
    torch::Tensor out = torch::empty({7, 7, 7});
    try {
      torch::add_out(out, x, x);
    } catch (const c10::Error&) {
      return true;
    }
    return false;
  });
}

TEST_F(WordIdioms, SizesAsCounters) {
  IDIOM_HOLDS_DO({
    int64_t rows = 0;
    for (decltype(x.size(0)) i = 0; i != x.size(0); ++i) rows++;
    const size_t n = 3;
    return rows == x.size(0) && torch::ones(n).numel() == 3 && torch::str("a", 1, "b") == "a1b";
  });
  IDIOM_HOLDS_DO({
    const torch::nn::Linear layer(2, 2);
    const torch::nn::Module& module = *layer;
    return module.as<torch::nn::Linear>() != nullptr && !module.as<torch::nn::Conv2d>();
  });
}

TEST_F(WordIdioms, GroupsSchedulesAndDictionaries) {
  IDIOM_HOLDS_DO({
    torch::nn::Linear a(2, 2), b(2, 2);
    torch::optim::RMSprop o(a->parameters(), torch::optim::RMSpropOptions(0.5));
    o.add_param_group(torch::optim::OptimizerParamGroup(b->parameters()));
    for (auto& group : o.param_groups())
      if (group.has_options()) static_cast<torch::optim::RMSpropOptions&>(group.options()).lr(0.25);
    return o.param_groups().size() == 2 && o.param_groups()[1].options().get_lr() == 0.25;
  });
  IDIOM_HOLDS_DO({
    torch::nn::Linear a(2, 2);
    torch::optim::SGD o(a->parameters(), 1.0);
    using Plateau = torch::optim::ReduceLROnPlateauScheduler;
    Plateau s(o, Plateau::SchedulerMode::min, 0.5, 0);
    for (int i = 0; i < 3; ++i) s.step(1.0);
    return o.param_groups()[0].options().get_lr() == 0.25;
  });
  IDIOM_HOLDS_DO({
    torch::OrderedDict<std::string, torch::Tensor> dict;
    dict.insert("a", x);
    dict.insert("b", x);
    dict.erase("a");
    return dict.size() == 1 && dict.pairs()[0].first == "b";
  });
}

}  // namespace
