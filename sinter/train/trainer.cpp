#include "sinter/train/trainer.h"

#include <chrono>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/io/file.h"
#include "sinter/io/tokenizer/tokenizer.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/train/learner.h"
#include "sinter/train/run_folder.h"
#include "sinter/train/start.h"

namespace sinter::train {

using nlohmann::json;
namespace fs = std::filesystem;

namespace {

constexpr const char *kState = "trainer.json", *kTensors = "trainer.safetensors", *kLines = "loss.jsonl",
                     *kTable = "loss.csv";
constexpr const char *kParameter = "parameter.", *kBuffer = "buffer.", *kOptimizer = "optimizer.", *kData = "data.",
                     *kScaler = "scaler.";

// Gradients that overflow f16 below it overflow for another reason.
constexpr double kLeastScale = 1e-3;

void add_all(NamedTensors& to, const char* prefix, const NamedTensors& from) {
  for (auto& [name, tensor] : from) to.emplace_back(prefix + name, tensor.detach().cpu());
}

// Those whose names begin so, without it.
NamedTensors part_of(const NamedTensors& all, std::string_view prefix) {
  NamedTensors out;
  for (auto& [name, tensor] : all)
    if (name.starts_with(prefix)) out.emplace_back(name.substr(prefix.size()), tensor);
  return out;
}

void fill(const NamedTensors& targets, const NamedTensors& values, const std::string& folder) {
  NoGradGuard no_grad;
  for (auto& [name, target] : targets) {
    auto found = std::find_if(values.begin(), values.end(), [&, n = name](auto& value) { return value.first == n; });
    check(found != values.end() && found->second.sizes().same_as(target.sizes()),
          "train: the state in '{}' does not fit the model: '{}' is missing or of another shape", folder, name);
    target.copy_(found->second.to(target.device()));
  }
}

json read_state(const std::string& folder) {
  MappedFile file("train", (fs::path(folder) / kState).string());
  json state = json::parse(file.bytes(), nullptr, /*allow_exceptions=*/false);
  check(state.is_object() && state.contains("step") && state.contains("options"), "train: '{}/{}' is damaged", folder,
        kState);
  return state;
}

void write_file(const std::string& path, const std::string& text) {
  PendingFile file("train", path);
  file.write(text);
  file.commit();
}

// Paths that hold wherever a run is gone on with.
TrainOptions with_whole_paths(TrainOptions options) {
  for (auto* path : {&options.model, &options.config, &options.tokenizer, &options.data, &options.adapter})
    if (!path->empty() && fs::exists(*path)) *path = fs::absolute(*path).lexically_normal().string();
  return options;
}

}  // namespace

struct Trainer::State {
  TrainOptions options;
  std::unique_ptr<RunFolder> folder;
  Start start;
  std::unique_ptr<Feed> feed;
  std::unique_ptr<Learner> learner;
  std::unique_ptr<LossLog> log;
  int64_t step = 0;

  // The model, the data and what learns, as the options have them; `checkpoint` is empty at the beginning of a run.
  void make(const std::string& checkpoint) {
    manual_seed(uint64_t(options.seed));
    start = make_start(options, checkpoint);
    feed = make_feed();
    TensorList parameters;
    for (auto& [name, tensor] : start.trained()) parameters.push_back(tensor);
    learner = std::make_unique<Learner>(start.model, parameters, options);
  }

  std::unique_ptr<Feed> make_feed() const {
    const models::Model& model = *start.model;
    if (dynamic_cast<const models::ImageClassifier*>(&model)) return image_feed(options, model.config(), start.files);
    check(dynamic_cast<const models::CausalLM*>(&model) != nullptr,
          "train: {} neither predicts tokens nor classifies images; such models are trained by a program of one's own: "
          "see \"A training loop\" in the guide",
          model.config().architecture);
    check(start.files.read("tokenizer.json").has_value(),
          "train: '{}' has no tokenizer.json, which text needs; --tokenizer names a folder that has one",
          start.files.name());
    return text_feed(options, model.config(), Tokenizer::from_pretrained(start.files));
  }

  void load(const std::string& checkpoint) {
    json state = read_state(checkpoint);
    check(state["data"] == feed->fingerprint, "train: '{}' is not what the run was begun with; give that file (--data)",
          options.data);
    NamedTensors tensors = load_safetensors((fs::path(checkpoint) / kTensors).string());
    fill(start.trained(), part_of(tensors, kParameter), checkpoint);
    fill(start.model->named_buffers(), part_of(tensors, kBuffer), checkpoint);
    learner->optimizer().load_state_dict(part_of(tensors, kOptimizer));
    learner->scaler().load_state_dict(part_of(tensors, kScaler));
    feed->load_state_dict(part_of(tensors, kData));
    default_generator().set_position({state["seed"].get<int64_t>(), state["draws"].get<int64_t>()});
    step = state["step"];
    learner->set_steps(step);
  }

  void save_weights(const std::string& to) {
    if (start.adapter && !options.merge) {
      start.adapter->save(to, options.model, start.saved);
      return;
    }
    std::optional<models::Lora::Merged> merged;
    if (start.adapter) merged.emplace(*start.adapter);
    models::save_pretrained(*start.model, to, start.saved);
  }

  void fill_checkpoint(const std::string& to) {
    save_weights(to);
    for (auto& [name, text] : start.files.files()) {
      fs::create_directories((fs::path(to) / name).parent_path());
      write_file((fs::path(to) / name).string(), text);
    }
    NamedTensors tensors;
    add_all(tensors, kParameter, start.trained());
    add_all(tensors, kBuffer, start.model->named_buffers());
    add_all(tensors, kOptimizer, learner->optimizer().state_dict());
    add_all(tensors, kScaler, learner->scaler().state_dict());
    add_all(tensors, kData, feed->state_dict());
    save_safetensors((fs::path(to) / kTensors).string(), tensors);
    auto draws = default_generator().position();
    json state = {{"step", step},
                  {"options", json::parse(to_json(options))},
                  {"data", feed->fingerprint},
                  {"seed", draws.seed},
                  {"draws", draws.offset}};
    write_file((fs::path(to) / kState).string(), state.dump(2) + "\n");
  }

  void save(Observer& observer) {
    log->sync();
    try {
      folder->write(step, options.keep, [&](const std::string& to) { fill_checkpoint(to); });
    } catch (const std::exception& error) {
      auto kept = folder->latest();
      throw_error(format("train: the checkpoint of step {} was not written: {}; {}", step, error.what(),
                         kept ? format("'{}' is as it was, and --resume goes on from it", folder->checkpoint(*kept))
                              : "there was none before"));
    }
    log->write_csv(folder->file(kTable));
    observer.on_saved(step, folder->checkpoint(step));
  }

  void take_step(Observer& observer) {
    auto begin = std::chrono::steady_clock::now();
    std::vector<data::Example<>> batches;
    for (int64_t i = 0; i < options.accumulate; ++i) batches.push_back(feed->next());
    auto result = learner->step(batches);
    ++step;
    check(std::isfinite(result.loss) && std::isfinite(result.grad_norm),
          "train: the {} is {} at step {}; a smaller --lr, a longer --warmup or a smaller --clip may help. Checkpoints "
          "are as they were",
          std::isfinite(result.loss) ? "norm of the gradients" : "loss",
          std::isfinite(result.loss) ? result.grad_norm : result.loss, step);
    check(!result.skipped || result.loss_scale > kLeastScale,
          "train: the gradients are not finite at step {} even with the loss times {}; a smaller --lr, a longer --warmup or "
          "--autocast bf16 may help. Checkpoints are as they were",
          step, result.loss_scale);
    double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    StepRecord record{.step = step,
                      .loss = result.loss,
                      .lr = result.lr,
                      .grad_norm = result.grad_norm,
                      .seconds = seconds,
                      .units_per_s = double(feed->units * options.accumulate) / seconds,
                      .loss_scale = result.loss_scale,
                      .skipped = result.skipped};
    observer.on_step(record, log->add(record, feed->unit));
  }

  void look_at_held_out(Observer& observer) {
    HeldOut held_out = learner->look_at_held_out(*feed);
    check(std::isfinite(held_out.loss),
          "train: the loss on what is held back is {} at step {}; a smaller --lr, a longer --warmup or a smaller --clip may "
          "help. Checkpoints are as they were", held_out.loss,
          step);
    std::string line = log->add(held_out);
    observer.on_held_out(log->steps().back(), line);
  }

  std::string summary() const {
    int64_t trained = 0, all = start.model->parameter_count();
    for (auto& [name, tensor] : start.trained()) trained += tensor.numel();
    return format("{} parameters{}, {}", all, start.adapter ? format(", an adapter of {}", trained) : "",
                  feed->summary);
  }

  bool is_due(int64_t every) const { return step == options.steps || (every > 0 && step % every == 0); }
};

Trainer::Trainer(const TrainOptions& options, bool resume, const std::set<std::string>& given)
    : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.options = with_whole_paths(options);
  if (!resume) options.check();
  s.folder = std::make_unique<RunFolder>(options.out);
  auto latest = s.folder->latest();
  check(!latest || resume, "train: '{}' holds a run already; --resume goes on with it, another --out begins a new one",
        options.out);
  std::string checkpoint = latest ? s.folder->checkpoint(*latest) : "";
  if (latest) s.options = resumed(s.options, given, read_state(checkpoint)["options"].dump());
  s.options.check();
  s.make(checkpoint);
  if (latest) s.load(checkpoint);
  s.log = std::make_unique<LossLog>(s.folder->file(kLines), s.step);
}

Trainer::~Trainer() = default;
const LossLog& Trainer::log() const { return *state_->log; }
const TrainOptions& Trainer::options() const { return state_->options; }
double Trainer::flops() const { return state_->learner->flops(); }
const std::string& Trainer::unit() const { return state_->feed->unit; }

TrainResult Trainer::run(Observer& observer) {
  State& s = *state_;
  const int64_t first = s.step;
  observer.on_start(s.summary(), first, s.options.steps);
  bool stopped = false;
  while (s.step < s.options.steps && !stopped) {
    s.take_step(observer);
    if (s.feed->holds_out && s.is_due(s.options.eval_every)) s.look_at_held_out(observer);
    stopped = observer.wants_to_stop();
    if (stopped || s.is_due(s.options.save_every)) s.save(observer);
  }
  auto latest = s.folder->latest();
  return {.checkpoint = latest ? s.folder->checkpoint(*latest) : "",
          .steps = s.step - first,
          .stopped = s.step < s.options.steps,
          .programs = s.learner->programs()};
}

}  // namespace sinter::train
