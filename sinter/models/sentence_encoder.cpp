#include "sinter/models/sentence_encoder.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/io/checkpoint.h"
#include "sinter/nn/linear.h"
#include "sinter/nn/normalization.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/norm.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"

namespace sinter::models {

namespace fs = std::filesystem;

// x is [batch, tokens, size] up to the pooling, [batch, size] behind it; seen [batch, tokens, 1] is 1 where there is a token.
class SentenceEncoder::Step : public nn::Module {
 public:
  virtual Tensor apply(const Tensor& x, const Tensor& seen) = 0;
};

namespace {

using Step = SentenceEncoder::Step;

// --- from the states of all tokens to one vector

Tensor mean_of(const Tensor& x, const Tensor& weights) { return (x * weights).sum(1) / weights.sum(1).clamp_min(1e-9); }

Tensor place_of(const Tensor& x) {
  return arange_of_size(x.size(1), TensorOptions(kInt64).device(x.device())).unsqueeze(0).unsqueeze(-1);
}

struct NamedPooling {
  const char *name, *old_key;  // as pooling_mode, and as older files ask for it
  Tensor (*function)(const Tensor& x, const Tensor& seen);
};

constexpr NamedPooling kPoolings[] = {
    {"cls", "pooling_mode_cls_token", [](const Tensor& x, const Tensor&) { return x.select(1, 0); }},
    {"max", "pooling_mode_max_tokens",
     [](const Tensor& x, const Tensor& seen) {
       return where(seen > 0, x, -std::numeric_limits<double>::infinity()).amax({1});
     }},
    {"mean", "pooling_mode_mean_tokens", mean_of},
    {"mean_sqrt_len_tokens", "pooling_mode_mean_sqrt_len_tokens",
     [](const Tensor& x, const Tensor& seen) { return (x * seen).sum(1) / seen.sum(1).clamp_min(1e-9).sqrt(); }},
    {"weightedmean", "pooling_mode_weightedmean_tokens",
     [](const Tensor& x, const Tensor& seen) { return mean_of(x, seen * (place_of(x) + 1).to(x.dtype())); }},
    {"lasttoken", "pooling_mode_lasttoken",
     [](const Tensor& x, const Tensor& seen) {
       Tensor last = (seen.to(kInt64) * place_of(x)).amax({1}, true);
       return x.gather(1, last.expand({x.size(0), 1, x.size(2)})).squeeze(1);
     }},
};

// Of several kinds the results stand one after the other.
class Pooling : public Step {
 public:
  explicit Pooling(const ConfigFile& file) {
    auto wanted = file.texts("pooling_mode");
    std::string names;
    for (auto& known : kPoolings) {
      if (file.boolean(known.old_key, false) || std::find(wanted.begin(), wanted.end(), known.name) != wanted.end())
        kinds_.push_back(&known);
      names += (names.empty() ? "" : ", ") + std::string(known.name);
    }
    check(!kinds_.empty() && wanted.size() <= kinds_.size(),
          "config: '{}' asks for no pooling that is known; known are {}", file.name(), names);
  }
  Tensor apply(const Tensor& x, const Tensor& seen) override {
    check(x.dim() == 3, "pooling: behind another one, there are no tokens left");
    TensorList parts;
    for (auto* kind : kinds_) parts.push_back(kind->function(x, seen));
    return parts.size() == 1 ? parts[0] : cat(parts, -1);
  }

 private:
  std::vector<const NamedPooling*> kinds_;
};

// --- and from vector to vector

struct UnitLength : Step {
  Tensor apply(const Tensor& x, const Tensor&) override { return normalize(x, 2, -1); }
};

class Dense : public Step {
 public:
  explicit Dense(const ConfigFile& file) {
    std::string kind = file.text("activation_function", "torch.nn.modules.activation.Tanh");
    kind = kind.substr(kind.rfind('.') + 1);
    check(kind == "Tanh" || kind == "Identity" || kind == "ReLU" || kind == "GELU",
          "config: '{}' has the activation_function '{}'; known are Tanh, Identity, ReLU, GELU", file.name(), kind);
    activation_ = kind == "Tanh" ? "tanh" : kind == "ReLU" ? "relu" : kind == "GELU" ? "gelu" : "";
    linear_ = register_module(
        "linear",
        nn::Linear(
            nn::LinearOptions(file.size("in_features"), file.size("out_features")).bias(file.boolean("bias", true))));
  }
  Tensor apply(const Tensor& x, const Tensor&) override {
    Tensor y = linear_(x);
    if (activation_ == "tanh") return tanh(y);
    if (activation_ == "relu") return relu(y);
    return activation_ == "gelu" ? gelu(y) : y;
  }

 private:
  std::string activation_;
  nn::Linear linear_{nullptr};
};

class Norm : public Step {
 public:
  explicit Norm(const ConfigFile& file) { norm_ = register_module("norm", nn::LayerNorm(file.size("dimension"))); }
  Tensor apply(const Tensor& x, const Tensor&) override { return norm_(x); }

 private:
  nn::LayerNorm norm_{nullptr};
};

struct ModuleEntry {
  std::string type, path;
};

// What modules.json lists behind the encoder.
std::vector<ModuleEntry> listed_modules(const CheckpointFiles& files) {
  constexpr const char* kFile = "modules.json";
  auto text = files.read(kFile);
  if (!text) return {};
  auto list = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  std::string name = files.path(kFile);
  check(list.is_array(), "'{}' is no list of modules", name);
  std::vector<ModuleEntry> out;
  for (auto& entry : list) {
    check(entry.is_object() && entry.contains("type") && entry["type"].is_string() && entry.contains("path") &&
              entry["path"].is_string(),
          "'{}' has a module without type and path", name);
    ModuleEntry module{entry["type"], entry["path"]};
    module.type = module.type.substr(module.type.rfind('.') + 1);
    check(fs::path(module.path).is_relative() && module.path.find("..") == std::string::npos,
          "'{}' has a module at '{}', which is no folder of it", name, module.path);
    out.push_back(module);
  }
  check(!out.empty() && out[0].type == "Transformer" && out[0].path.empty(),
        "'{}' does not begin with a Transformer in the folder itself", name);
  out.erase(out.begin());
  return out;
}

void load(Step& step, const fs::path& folder) {
  NoGradGuard no_grad;
  CheckpointWeights weights(folder.string());
  SafeTensorsFile file = weights.open(0);
  for (auto& [name, to] : step.state_dict()) {
    check(file.contains(name), "models: the weights in '{}' lack '{}'", folder.string(), name);
    Tensor from = file.tensor(name);
    check(from.sizes().same_as(to.sizes()), "models: '{}' in '{}' is {}, its config.json says {}", name,
          folder.string(), from.sizes(), to.sizes());
    to.copy_(from.to(to.device()));
  }
}

std::shared_ptr<Step> make_step(const ModuleEntry& entry, const fs::path& root, const Tensor& like) {
  fs::path folder = root / entry.path;
  auto config = [&] { return ConfigFile::read((folder / "config.json").string()); };
  if (entry.type == "Pooling") return std::make_shared<Pooling>(config());
  if (entry.type == "Normalize") return std::make_shared<UnitLength>();
  nn::ParameterScope scope(TensorOptions(like.dtype()).device(like.device()), /*initialise=*/false);
  std::shared_ptr<Step> step;
  if (entry.type == "Dense") step = std::make_shared<Dense>(config());
  if (entry.type == "LayerNorm") step = std::make_shared<Norm>(config());
  check(step != nullptr,
        "models: '{}' has a module of the type '{}'; known are Transformer, Pooling, Dense, LayerNorm, Normalize",
        root.string(), entry.type);
  load(*step, folder);
  return step;
}

int64_t max_tokens_of(const CheckpointFiles& files, int64_t positions) {
  for (auto [name, key] : {std::pair{"sentence_bert_config.json", "max_seq_length"},
                           std::pair{"tokenizer_config.json", "model_max_length"}})
    if (auto text = files.read(name)) {
      ConfigFile file = ConfigFile::parse(*text, files.path(name));
      // A tokenizer without a limit says 10^30.
      if (file.contains(key) && file.number(key) <= double(positions)) return file.size(key);
    }
  return positions;
}

}  // namespace

SentenceEncoder::SentenceEncoder(std::shared_ptr<TextEncoder> encoder, std::vector<std::shared_ptr<Step>> steps,
                                 int64_t max_tokens)
    : Model(encoder->config()), encoder_(std::move(encoder)), steps_(std::move(steps)), max_tokens_(max_tokens) {
  register_module("encoder", std::static_pointer_cast<nn::Module>(encoder_));
  for (size_t i = 0; i < steps_.size(); ++i)
    register_module(format("step{}", i), std::static_pointer_cast<nn::Module>(steps_[i]));
}

Tensor SentenceEncoder::forward(const Tensor& ids, const Tensor& attention_mask) {
  Tensor x = encoder_->forward(ids, attention_mask, {});
  Tensor seen = ne(attention_mask, 0).unsqueeze(-1).to(x.dtype());
  for (auto& step : steps_) x = step->apply(x, seen);
  return x;
}

NamedTensors SentenceEncoder::run(const NamedTensors& inputs) {
  Tensor ids, mask;
  for (auto& [name, tensor] : inputs) {
    if (name == "input_ids") ids = tensor;
    if (name == "attention_mask") mask = tensor;
  }
  check(ids.defined(), "{}: needs the input 'input_ids'", config().architecture);
  return {{"sentence_embedding", forward(ids, mask.defined() ? mask : ones_like(ids))}};
}

std::pair<Tensor, Tensor> SentenceEncoder::tokenize(std::span<const std::string> texts, const Tokenizer& tokenizer,
                                                    int64_t multiple) const {
  check(!texts.empty(), "SentenceEncoder: there is no text");
  std::vector<std::vector<int64_t>> rows;
  size_t longest = 1;
  for (auto& text : texts) {
    auto ids = tokenizer.encode(text);
    if (int64_t(ids.size()) > max_tokens_) {
      bool ends = tokenizer.is_special(ids.back());
      int64_t last = ids.back();
      ids.resize(size_t(max_tokens_));
      if (ends) ids.back() = last;
    }
    longest = std::max(longest, ids.size());
    rows.push_back(std::move(ids));
  }
  int64_t count = int64_t(rows.size()), length = (int64_t(longest) + multiple - 1) / multiple * multiple;
  length = std::min(length, std::max(max_tokens_, int64_t(longest)));
  int64_t padding = tokenizer.pad_id().value_or(0);
  std::vector<int64_t> ids(size_t(count * length), padding), mask(ids.size(), 0);
  for (int64_t r = 0; r < count; ++r) {
    auto& row = rows[size_t(r)];
    std::copy(row.begin(), row.end(), ids.begin() + r * length);
    std::fill_n(mask.begin() + r * length, row.size(), 1);
  }
  Device device = parameters().at(0).device();
  return {tensor(ids).view({count, length}).to(device), tensor(mask).view({count, length}).to(device)};
}

Tensor SentenceEncoder::encode(const std::vector<std::string>& texts, const Tokenizer& tokenizer) {
  NoGradGuard no_grad;
  auto [ids, mask] = tokenize(texts, tokenizer);
  return forward(ids, mask);
}

std::shared_ptr<SentenceEncoder> sentence_encoder(const std::string& folder_or_id, const FromOptions& options) {
  std::string folder = find_checkpoint(folder_or_id);
  auto encoder = std::dynamic_pointer_cast<TextEncoder>(from_pretrained(folder, options));
  check(encoder != nullptr, "models: '{}' is no encoder of texts, so it gives no embeddings", folder);
  CheckpointFiles files(folder);
  std::vector<std::shared_ptr<Step>> steps;
  for (auto& entry : listed_modules(files)) steps.push_back(make_step(entry, folder, encoder->parameters().at(0)));
  if (steps.empty())
    steps.push_back(std::make_shared<Pooling>(ConfigFile::parse(R"({"pooling_mode": "mean"})", "mean")));
  auto out = std::make_shared<SentenceEncoder>(encoder, steps, max_tokens_of(files, encoder->config().max_positions));
  out->requires_grad_(false);
  out->eval();
  return out;
}

}  // namespace sinter::models
