#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <unordered_map>

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/io/checkpoint.h"
#include "sinter/models/families.h"
#include "sinter/models/models.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/view.h"

namespace sinter::models {

namespace {

constexpr size_t kNamesInError = 20;

std::string listed(const char* what, const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size() && i < kNamesInError; ++i) text += format("\n  {}: {}", what, names[i]);
  if (names.size() > kNamesInError) text += format("\n  … and {} more", names.size() - kNamesInError);
  return text;
}

// The type most of the checkpoint's bytes have.
DType stored_type(const CheckpointWeights& weights) {
  std::unordered_map<int, uint64_t> bytes;
  SafeTensorsFile file = weights.open(0);
  for (auto& name : file.names())
    if (auto& info = file.info(name); info.dtype && is_floating(*info.dtype))
      bytes[int(*info.dtype)] += info.end - info.begin;
  check(!bytes.empty(), "models: '{}' holds no tensor of a supported floating-point type", weights.files()[0]);
  auto most = std::max_element(bytes.begin(), bytes.end(), [](auto& a, auto& b) { return a.second < b.second; });
  return DType(most->first);
}

class Loader {
 public:
  Loader(const Family& family, Model& model, const FromOptions& options) : family_(family), options_(options) {
    for (auto& [name, tensor] : model.state_dict()) {
      total_ += bytes_of(tensor);
      if (!has_expert_rows(name)) {
        wanted_.emplace(name, tensor);
        continue;
      }
      for (int64_t expert = 0; expert < tensor.size(0).to_int(); ++expert)
        wanted_.emplace(name_of_row(name, expert), tensor.detach().select(0, expert));
    }
    tied_ = model.config().tie_embeddings;
  }

  void load(const SafeTensorsFile& file) {
    for (auto& name : file.names()) {
      std::string ours = module_name(family_, name);
      auto found = wanted_.find(ours);
      if (found == wanted_.end()) {
        if (!is_ignored(name, ours)) unexpected_.push_back(name);
        continue;
      }
      check(filled_.insert(ours).second, "models: the checkpoint holds '{}' twice, once as '{}'", ours, name);
      fill(found->second, name, file.tensor(name));
    }
  }

  void finish(const std::string& folder) {
    std::vector<std::string> missing;
    for (auto& [name, tensor] : wanted_)
      // Counts of batches are of no use here, and old checkpoints lack them.
      if (!filled_.contains(name) && !name.ends_with("num_batches_tracked")) missing.push_back(name);
    std::sort(missing.begin(), missing.end());
    std::string problems =
        listed("missing", missing) + listed("not in the model", unexpected_) + listed("wrong shape", misshapen_);
    check(problems.empty(), "models: the weights in '{}' do not fit:{}", folder, problems);
  }

 private:
  static int64_t bytes_of(const Tensor& t) { return int64_t(t.numel()) * item_size(t.dtype()); }

  bool is_ignored(const std::string& name, const std::string& ours) const {
    // A tied head may be stored too.
    if (tied_ && (ours == "lm_head.weight" || ours == "embed_out.weight")) return true;
    return std::any_of(family_.ignored.begin(), family_.ignored.end(),
                       [&](const char* part) { return name.find(part) != std::string::npos; });
  }

  void fill(const Tensor& to, const std::string& name, const Tensor& stored) {
    NoGradGuard no_grad;
    Tensor from = is_transposed(family_, name) && stored.dim() == 2 ? stored.t() : stored;
    if (!from.sizes().same_as(to.sizes())) {
      misshapen_.push_back(format("{} is {}, the model has {}", name, from.sizes(), to.sizes()));
      return;
    }
    to.copy_(from.to(to.device()));
    done_ += bytes_of(to);
    if (options_.progress) options_.progress(done_, total_);
  }

  const Family& family_;
  const FromOptions& options_;
  std::unordered_map<std::string, Tensor> wanted_;
  std::set<std::string> filled_;
  std::vector<std::string> unexpected_, misshapen_;
  bool tied_ = false;
  int64_t done_ = 0, total_ = 0;
};

std::shared_ptr<Model> make_empty(const Family& family, const ConfigFile& file, DType dtype, Device device) {
  check(is_floating(dtype), "models: {} is no type for weights", dtype);
  nn::ParameterScope scope(TensorOptions(dtype).device(device), /*initialise=*/false);
  auto model = family.make(file);
  model->requires_grad_(false);
  model->eval();
  model->set_origin(file.dump());
  return model;
}

}  // namespace

std::shared_ptr<Model> from_pretrained(const std::string& folder_or_id, const FromOptions& options) {
  std::string folder = find_checkpoint(folder_or_id);
  ConfigFile file = ConfigFile::read((std::filesystem::path(folder) / "config.json").string());
  const Family& family = family_of(file);
  CheckpointWeights weights(folder);
  auto model = make_empty(family, file, options.dtype ? *options.dtype : stored_type(weights), options.device);
  Loader loader(family, *model, options);
  for (size_t i = 0; i < weights.files().size(); ++i) loader.load(weights.open(i));
  loader.finish(folder);
  return model;
}

std::shared_ptr<Model> from_state(const ConfigFile& file, const NamedTensors& state, Device device) {
  std::optional<DType> dtype;
  for (auto& [name, tensor] : state)
    if (is_floating(tensor.dtype()) && !dtype) dtype = tensor.dtype();
  check(dtype.has_value(), "models: a state without tensors of a floating-point type");
  auto model = make_empty(family_of(file), file, *dtype, device);
  model->load_state_dict(state, {.assign = device.is_cpu()});
  // Taken as they are, tensors keep what they were made with.
  model->requires_grad_(false);
  return model;
}

std::shared_ptr<CausalLM> causal_lm(const std::shared_ptr<Model>& model) {
  auto out = std::dynamic_pointer_cast<CausalLM>(model);
  bool reads = std::dynamic_pointer_cast<EncoderDecoder>(model) != nullptr;
  check(out != nullptr, "models: {} does not generate text{}", model ? model->config().architecture : "an empty handle",
        reads ? " without reading something first: encoder_decoder() is for it" : "");
  return out;
}

std::shared_ptr<EncoderDecoder> encoder_decoder(const std::shared_ptr<Model>& model) {
  auto out = std::dynamic_pointer_cast<EncoderDecoder>(model);
  check(out != nullptr, "models: {} is no encoder-decoder", model ? model->config().architecture : "an empty handle");
  return out;
}

std::shared_ptr<Model> from_config(const std::string& name, const FromOptions& options) {
  return from_config(ConfigFile::parse(config_text(name), name), options);
}

namespace {

// Fills large tensors from one block of draws, each going on where the last one ended: a billion draws would take
// minutes. The block's length is prime, so that no two rows of a matrix begin at the same place of it.
class RandomFill {
 public:
  explicit RandomFill(const TensorOptions& options) : block_(empty({kBlock}, options)) { block_.uniform_(-1, 1); }

  void operator()(const Tensor& tensor, double bound) {
    int64_t count = tensor.numel();
    Tensor flat = tensor.view({count}), scaled = block_ * bound;
    for (int64_t done = 0; done < count;) {
      int64_t length = std::min(count - done, kBlock - at_);
      flat.slice(0, done, done + length).copy_(scaled.slice(0, at_, at_ + length));
      done += length;
      at_ = (at_ + length) % kBlock;
    }
  }

 private:
  static constexpr int64_t kBlock = 1048573;
  Tensor block_;
  int64_t at_ = 0;
};

}  // namespace

// Deviations that keep activations near 1 through any number of layers: 1 / sqrt(fan in) for matrices, ones for norms.
std::shared_ptr<Model> from_config(const ConfigFile& file, const FromOptions& options) {
  DType dtype = options.dtype.value_or(kFloat32);
  auto model = make_empty(family_of(file), file, dtype, options.device);
  NoGradGuard no_grad;
  RandomFill fill(TensorOptions(dtype).device(options.device));
  int64_t done = 0, total = 0;
  auto state = model->state_dict();
  for (auto& [name, tensor] : state) total += tensor.numel() * item_size(tensor.dtype());
  for (auto& [name, tensor] : state) {
    bool is_norm = name.ends_with("norm.weight");
    bool zero = name.ends_with("bias") || name.ends_with("running_mean") || !tensor.is_floating_point() ||
                (is_norm && model->config().norm == NormKind::kUnitOffsetRms);
    if (tensor.dim() >= 2 && !is_norm)
      fill(tensor, std::sqrt(3.0 / double(has_expert_rows(name) ? tensor.size(-1).to_int()
                                                                : int64_t(tensor.numel() / tensor.size(0)))));
    else
      tensor.fill_(zero ? 0 : 1);
    done += tensor.numel() * item_size(tensor.dtype());
    if (options.progress) options.progress(done, total);
  }
  return model;
}

}  // namespace sinter::models
