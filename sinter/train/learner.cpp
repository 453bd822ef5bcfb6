#include "sinter/train/learner.h"

#include <optional>

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/capture/compiler.h"
#include "sinter/engine/report.h"
#include "sinter/nn/init.h"
#include "sinter/ops/norm.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"

namespace sinter::train {

namespace {

// Decay is for matrices: it would pull norms away from 1 and biases to nothing for no gain.
std::vector<optim::ParamGroup<optim::AdamWOptions>> groups_of(const TensorList& parameters, const TrainOptions& o) {
  auto options = optim::AdamWOptions(o.lr).betas({o.beta1, o.beta2}).weight_decay(o.weight_decay);
  optim::ParamGroup<optim::AdamWOptions> matrices{{}, options},
      others{{}, optim::AdamWOptions(options).weight_decay(0)};
  for (auto& parameter : parameters) (parameter.dim() >= 2 ? matrices : others).params().push_back(parameter);
  std::vector<optim::ParamGroup<optim::AdamWOptions>> groups;
  for (auto* group : {&matrices, &others})
    if (!group->params().empty()) groups.push_back(*group);
  return groups;
}

std::shared_ptr<optim::LRScheduler> decay_of(optim::Optimizer& optimizer, const TrainOptions& o) {
  const int64_t steps = std::max<int64_t>(1, o.steps - o.warmup);
  if (o.schedule == "cosine") return std::make_shared<optim::CosineAnnealingLR>(optimizer, steps, o.final_lr);
  double end = o.schedule == "linear" && o.lr > 0 ? o.final_lr / o.lr : 1;
  return std::make_shared<optim::LinearLR>(optimizer, 1, end, steps);
}

std::unique_ptr<optim::LRScheduler> schedule_of(optim::Optimizer& optimizer, const TrainOptions& o) {
  auto decay = decay_of(optimizer, o);
  std::vector<std::shared_ptr<optim::LRScheduler>> parts = {decay};
  std::vector<int64_t> milestones;
  if (o.warmup > 0) {
    parts.insert(parts.begin(), std::make_shared<optim::LinearLR>(optimizer, 1.0 / double(o.warmup + 1), 1, o.warmup));
    milestones.push_back(o.warmup);
  }
  return std::make_unique<optim::SequentialLR>(optimizer, parts, milestones);
}

}  // namespace

struct Learner::Programs {
  using Step = std::function<TensorList(const Tensor& x, const Tensor& y, bool last)>;
  using HeldOut = std::function<TensorList(const Tensor& x, const Tensor& y)>;
  Step step;
  HeldOut held_out;
  std::function<Explanation()> explain = [] { return Explanation(); };
};

Learner::Learner(std::shared_ptr<models::Model> model, const TensorList& parameters, const TrainOptions& options)
    : model_(std::move(model)),
      parameters_(parameters),
      options_(options),
      optimizer_(std::make_unique<optim::AdamW>(groups_of(parameters, options))),
      schedule_(schedule_of(*optimizer_, options)),
      scaler_(optim::GradScalerOptions().init_scale(options.loss_scale).enabled(options.autocast == "f16")),
      programs_(std::make_unique<Programs>()) {
  optimizer_->init_state();  // memory that is not there is told before anything is compiled
  auto step = [this](const Tensor& x, const Tensor& y, bool last) { return run(x, y, last); };
  auto held_out = [this](const Tensor& x, const Tensor& y) -> TensorList {
    NoGradGuard no_grad;
    Tensor guesses = logits(x), targets = y.reshape({-1});
    return {cross_entropy(guesses, targets), guesses.argmax(-1).eq(targets).to(kFloat32).mean()};
  };
  if (options.mode == "eager") {
    *programs_ = {step, held_out};
    return;
  }
  CompileOptions how{.mode = parse_mode(options.mode), .dynamic = Dynamic::kFalse, .name = "training step"};
  auto compiled = compile(step, how);
  how.name = "held-out loss";
  *programs_ = {compiled, compile(held_out, how), [compiled] { return capture::explain(compiled.function()); }};
}

Learner::~Learner() = default;

int64_t Learner::programs() const { return int64_t(programs_->explain().captures.size()); }

double Learner::flops() const {
  double most = 0;
  for (auto& program : programs_->explain().programs) {
    double flops = 0;
    for (auto& report : program.reports) flops += report ? report->total().flops : 0;
    most = std::max(most, flops);
  }
  return most * double(options_.accumulate);
}

Tensor Learner::logits(const Tensor& x) const {
  std::optional<AutocastGuard> autocast;
  if (options_.autocast != "none") autocast.emplace(x.device().type(), *parse_dtype(options_.autocast));
  if (auto* classifier = dynamic_cast<models::ImageClassifier*>(model_.get()))
    return classifier->forward(x).to(kFloat32);
  Tensor logits = dynamic_cast<models::CausalLM&>(*model_).forward(x);
  return logits.reshape({-1, logits.size(-1)}).to(kFloat32);
}

TensorList Learner::run(const Tensor& x, const Tensor& y, bool last) {
  Tensor value = cross_entropy(logits(x), y.reshape({-1}));
  scaler_.scale(value / double(options_.accumulate)).backward();
  if (!last) return {value.detach()};
  scaler_.unscale_(*optimizer_);
  Tensor norm;
  if (options_.clip > 0) {
    norm = nn::utils::clip_grad_norm_(parameters_, options_.clip);
  } else {
    TensorList gradients;
    for (auto& parameter : parameters_) gradients.push_back(parameter.grad());
    norm = nn::utils::get_total_norm(gradients);
  }
  const bool taken = scaler_.step(*optimizer_);
  scaler_.update();
  // At the end, so that every step begins alike and gradients are nothing that outlives the program.
  optimizer_->zero_grad();
  if (!taken) return {value.detach()};
  return {value.detach(), norm};
}

Learner::Result Learner::step(std::span<const data::Example<>> batches) {
  model_->train();
  Result result{.lr = optimizer_->lr(), .loss_scale = scaler_.is_enabled() ? scaler_.get_scale() : 0};
  TensorList losses, last;
  for (size_t i = 0; i < batches.size(); ++i) {
    last = programs_->step(batches[i].data, batches[i].target, i + 1 == batches.size());
    losses.push_back(last[0]);
  }
  schedule_->step();
  for (auto& loss : losses) result.loss += loss.item<double>() / double(losses.size());
  result.skipped = last.size() == 1;
  if (!result.skipped) result.grad_norm = last[1].item<double>();
  return result;
}

HeldOut Learner::look_at_held_out(Feed& feed) {
  model_->eval();
  HeldOut sum;
  double weight = 0;
  feed.each_held_out([&](const data::Example<>& batch) {
    double count = double(int64_t(batch.target.numel()));
    TensorList means = programs_->held_out(batch.data, batch.target);
    sum.loss += means[0].item<double>() * count;
    sum.accuracy += means[1].item<double>() * count;
    weight += count;
  });
  return {sum.loss / weight, sum.accuracy / weight};
}

}  // namespace sinter::train
