#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <unordered_map>

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/io/checkpoint.h"
#include "sinter/models/families.h"
#include "sinter/models/formats/gguf.h"
#include "sinter/models/formats/quantized_format.h"
#include "sinter/models/models.h"
#include "sinter/models/quantize.h"
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

using LinearLayers = std::unordered_map<std::string, nn::LinearImpl*>;

// By the names of their weights.
LinearLayers linear_layers(Model& model) {
  LinearLayers out;
  for (auto& [name, module] : model.named_modules())
    if (auto* layer = module->as<nn::Linear>()) out[name + ".weight"] = layer;
  return out;
}

void put(nn::LinearImpl& layer, nn::QuantizedWeight weight, Device device) {
  for (Tensor* tensor : weight.tensors())
    if (tensor->defined()) *tensor = tensor->to(device);
  nn::set_quantized(layer, weight);
}

// Layers whose weights are quantised in the checkpoint: their tensors are collected, which costs nothing as files are mapped,
// and become codes one layer after the other.
class QuantizedLayers {
 public:
  QuantizedLayers(const Family& family, Model& model, const QuantizedFormat& format)
      : family_(family), format_(format), layers_(linear_layers(model)) {}

  // False: a tensor like others.
  bool take(const std::string& name, const SafeTensorsFile& file) {
    // A weight may have parts of its own: "q_proj.weight.absmax".
    const size_t inner = name.find(".weight."), dot = inner == std::string::npos ? name.rfind('.') : inner;
    if (dot == std::string::npos || !format_.is_part(name.substr(dot + 1), file.info(name))) return false;
    const std::string plain = name.substr(0, dot) + ".weight", ours = module_name(family_, plain);
    auto layer = layers_.find(ours);
    if (layer == layers_.end()) return false;
    // A bias is one of the layer's own where it has any.
    const std::string end = name.substr(dot + 1);
    if (end == "bias" && layer->second->bias.defined()) return false;
    check(!is_transposed(family_, plain), "models: '{}' is quantised, and its checkpoint stores weights as [in, out]", name);
    parts_[ours][end] = file.info(name).dtype ? file.tensor(name) : file.codes(name);
    return true;
  }
  // Gives the names of the weights that they are in place of; `wanted` lets go of each.
  std::vector<std::string> finish(std::unordered_map<std::string, Tensor>& wanted, Device device) {
    NoGradGuard no_grad;
    std::vector<std::string> made;
    for (auto& [name, parts] : parts_) {
      nn::LinearImpl& layer = *layers_.at(name);
      nn::QuantizedWeight weight = format_.weight(name, parts, layer.options.out_features(), layer.options.in_features());
      wanted[name] = Tensor();
      put(layer, weight, device);
      made.push_back(name);
    }
    return made;
  }

 private:
  const Family& family_;
  const QuantizedFormat& format_;
  LinearLayers layers_;
  std::map<std::string, LayerParts> parts_;  // by the names of weights
};

// What has been filled gives its memory back as soon as it is quantised; what is not comes to its device at the end.
class QuantizeOnTheWay {
 public:
  QuantizeOnTheWay(Model& model, const FromOptions& options) : model_(model), device_(options.device) {
    if (!options.quantize.empty()) quantizer_.emplace(model, options.quantize);
  }
  // Where a model is made, and of what: a head that shares the embedding's memory becomes one of its own, which has codes.
  static Device place(const FromOptions& options) { return options.quantize.empty() ? options.device : Device(); }
  static ConfigFile config(const ConfigFile& file, const FromOptions& options) {
    return options.quantize.empty() ? file : untied(file);
  }

  // `tensor` is the last handle beside the layer's own.
  void filled(const std::string& name, Tensor& tensor) {
    if (!quantizer_ || !quantizer_->is_wanted(name)) return;
    tensor = Tensor();
    quantizer_->filled(name, device_);
  }
  // The names of the weight that gives logits and of the embedding; empty where nothing is quantised, or there are none.
  std::pair<std::string, std::string> head() const {
    return quantizer_ ? std::pair(quantizer_->head(), quantizer_->embedding()) : std::pair<std::string, std::string>();
  }
  void finish(const ConfigFile& file) {
    if (!quantizer_) return;
    model_.to(device_);
    model_.set_origin(quantized_config(model_, file));
  }

 private:
  Model& model_;
  Device device_;
  std::optional<Quantizer> quantizer_;
};

class Loader {
 public:
  // `format`: of a checkpoint that is quantised, else null.
  Loader(const Family& family, Model& model, const FromOptions& options, const QuantizedFormat* format)
      : family_(family), options_(options), model_(model), quantize_(model, options) {
    if (format) quantized_.emplace(family, model, *format);
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
      if (quantized_ && quantized_->take(name, file)) continue;
      std::string ours = module_name(family_, name);
      auto found = wanted_.find(ours);
      if (found == wanted_.end()) {
        if (!is_ignored(name, ours)) unexpected_.push_back(name);
        continue;
      }
      check(filled_.insert(ours).second, "models: the checkpoint holds '{}' twice, once as '{}'", ours, name);
      fill(found->second, name, file.tensor(name));
      quantize_.filled(ours, found->second);
    }
  }

  void load(const GgufFile& file) {
    const LinearLayers layers = linear_layers(model_);
    for (auto& tensor : file.tensors()) {
      auto ours = gguf_module_name(model_.config(), tensor.name);
      if (!ours) continue;
      encoded_ = encoded_ || is_encoded(tensor);
      take(file, tensor, *ours, layers);
      // A head of its own that the file does not have: the same blocks again.
      const std::string head = "lm_head.weight";
      if (*ours == "embed_tokens.weight" && layers.contains(head) && !file.find("output.weight") && is_encoded(tensor))
        take(file, tensor, head, layers);
    }
  }

  // `file` is the checkpoint's, in which a head may be tied that is not in the model any more.
  void finish(const std::string& folder, const ConfigFile& file, const ConfigFile& model) {
    if (file.boolean("tie_word_embeddings", true)) fill_head();
    if (quantized_)
      for (auto& name : quantized_->finish(wanted_, options_.device)) filled_.insert(name);
    if (quantized_ || encoded_) {
      model_.to(options_.device);
      model_.set_origin(quantized_config(model_, model));
    }
    std::vector<std::string> missing;
    for (auto& [name, tensor] : wanted_)
      // Counts of batches are of no use here, and old checkpoints lack them.
      if (!filled_.contains(name) && !name.ends_with("num_batches_tracked")) missing.push_back(name);
    std::sort(missing.begin(), missing.end());
    std::string problems =
        listed("missing", missing) + listed("not in the model", unexpected_) + listed("wrong shape", misshapen_);
    check(problems.empty(), "models: the weights in '{}' do not fit:{}", folder, problems);
    quantize_.finish(model);
  }

 private:
  static int64_t bytes_of(const Tensor& t) { return int64_t(t.numel()) * item_size(t.dtype()); }

  bool is_ignored(const std::string& name, const std::string& ours) const {
    // Scales of caches in eight bits: ours is of the model's type.
    if (quantized_ && (name.ends_with(".k_scale") || name.ends_with(".v_scale"))) return true;
    // A tied head may be stored too.
    if (tied_ && (ours == "lm_head.weight" || ours == "embed_out.weight")) return true;
    return std::any_of(family_.ignored.begin(), family_.ignored.end(),
                       [&](const char* part) { return name.find(part) != std::string::npos; });
  }

  void take(const GgufFile& file, const GgufTensor& tensor, const std::string& ours, const LinearLayers& layers) {
    auto found = wanted_.find(ours);
    if (found == wanted_.end()) return unexpected_.push_back(tensor.name);
    check(filled_.insert(ours).second, "models: '{}' holds '{}' twice, once as '{}'", file.path(), ours, tensor.name);
    auto layer = layers.find(ours);
    if (layer == layers.end() || !is_encoded(tensor)) {
      fill(found->second, tensor.name, gguf_tensor(file, tensor, model_.config(), found->second.dtype()));
      return quantize_.filled(ours, found->second);
    }
    if (!tensor.shape.same_as(found->second.sizes()))
      return misshapen_.push_back(format("{} is {}, the model has {}", tensor.name, tensor.shape, found->second.sizes()));
    done_ += bytes_of(found->second);
    found->second = Tensor();
    put(*layer->second, gguf_weight(file, tensor, model_.config()), options_.device);
    if (options_.progress) options_.progress(done_, total_);
  }

  void fill_head() {
    auto [head, table] = quantize_.head();
    if (head.empty() || filled_.contains(head) || !filled_.contains(table)) return;
    Tensor& to = wanted_.at(head);
    const Tensor& from = wanted_.at(table);
    if (!to.sizes().same_as(from.sizes())) return;
    NoGradGuard no_grad;
    to.copy_(from);
    filled_.insert(head);
    quantize_.filled(head, to);
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
  Model& model_;
  QuantizeOnTheWay quantize_;
  std::optional<QuantizedLayers> quantized_;
  std::unordered_map<std::string, Tensor> wanted_;
  std::set<std::string> filled_;
  std::vector<std::string> unexpected_, misshapen_;
  bool tied_ = false;
  bool encoded_ = false;  // some tensors came as blocks of codes
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

std::shared_ptr<Model> from_gguf(const std::string& path, const FromOptions& options) {
  const GgufFile weights(path);
  const ConfigFile file = ConfigFile::parse(gguf::config(weights), path);
  const bool encoded = std::any_of(weights.tensors().begin(), weights.tensors().end(), is_encoded);
  check(!encoded || options.quantize.empty(), "models: the weights in '{}' are quantised already; leave out quantize, or --quantize",
        path);
  // A head whose weight is that of an encoded embedding reads its codes; the embedding itself is a matrix as others.
  const GgufTensor* table = weights.find("token_embd.weight");
  const ConfigFile config = table && is_encoded(*table) ? untied(file) : QuantizeOnTheWay::config(file, options);
  const Family& family = family_of(file);
  auto model = make_empty(family, config, options.dtype.value_or(gguf_type(weights)),
                          encoded ? Device() : QuantizeOnTheWay::place(options));
  Loader loader(family, *model, options, nullptr);
  loader.load(weights);
  loader.finish(path, file, config);
  return model;
}

}  // namespace

std::shared_ptr<Model> from_pretrained(const std::string& folder_or_id, const FromOptions& options) {
  std::string folder = find_checkpoint(folder_or_id);
  if (GgufFile::is_gguf(folder)) return from_gguf(folder, options);
  ConfigFile file = ConfigFile::read((std::filesystem::path(folder) / "config.json").string());
  const Family& family = family_of(file);
  CheckpointWeights weights(folder);
  const auto format = quantized_format(file);
  check(!format || options.quantize.empty(), "models: the weights in '{}' are quantised already; leave out quantize, or --quantize",
        folder);
  const ConfigFile config = QuantizeOnTheWay::config(file, options);
  auto model = make_empty(family, config, options.dtype ? *options.dtype : stored_type(weights),
                          format ? Device() : QuantizeOnTheWay::place(options));
  Loader loader(family, *model, options, format.get());
  for (size_t i = 0; i < weights.files().size(); ++i) loader.load(weights.open(i));
  loader.finish(folder, file, config);
  return model;
}

std::shared_ptr<Model> from_state(const ConfigFile& file, const NamedTensors& state, Device device) {
  std::optional<DType> dtype;
  for (auto& [name, tensor] : state)
    if (is_floating(tensor.dtype()) && !dtype) dtype = tensor.dtype();
  check(dtype.has_value(), "models: a state without tensors of a floating-point type");
  auto model = make_empty(family_of(file), file, *dtype, device);
  make_quantized(*model, file, state, device);
  model->set_origin(file.dump());
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
std::shared_ptr<Model> from_config(const ConfigFile& given, const FromOptions& options) {
  const ConfigFile file = QuantizeOnTheWay::config(given, options);
  DType dtype = options.dtype.value_or(kFloat32);
  auto model = make_empty(family_of(file), file, dtype, QuantizeOnTheWay::place(options));
  NoGradGuard no_grad;
  RandomFill fill(TensorOptions(dtype).device(QuantizeOnTheWay::place(options)));
  QuantizeOnTheWay quantize(*model, options);
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
    quantize.filled(name, tensor);
  }
  quantize.finish(file);
  return model;
}

}  // namespace sinter::models
