#include "sinter/package/compiled_model.h"

#include <algorithm>

#include "sinter/base/error.h"
#include "sinter/capture/compiler.h"
#include "sinter/ops/creation.h"

namespace sinter {

namespace {

std::optional<Tensor> find(const NamedTensors& tensors, std::string_view name) {
  for (auto& [its_name, tensor] : tensors)
    if (its_name == name) return tensor;
  return {};
}

Tensor required(const NamedTensors& tensors, std::string_view name) {
  auto found = find(tensors, name);
  check(found.has_value(), "package: the forward pass needs the input '{}'", name);
  return *found;
}

CompileOptions how(const std::shared_ptr<models::Model>& model, Mode mode, const OptionMap& options) {
  CompileOptions out{.mode = mode, .fullgraph = true, .dynamic = Dynamic::kTrue, .options = options, .name = "forward"};
  out.fingerprint = [model] { return model->fingerprint("forward"); };
  return out;
}

}  // namespace

std::function<NamedTensors(const NamedTensors&)> compile_forward(const std::shared_ptr<models::Model>& model, Mode mode,
                                                                 const OptionMap& options) {
  CompileOptions compile_options = how(model, mode, options);
  if (auto encoder = std::dynamic_pointer_cast<models::TextEncoder>(model)) {
    auto fast = compile([encoder](const Tensor& ids, const std::optional<Tensor>& mask,
                                  const std::optional<Tensor>& types) { return encoder->forward(ids, mask, types); },
                        compile_options);
    return [fast](const NamedTensors& in) -> NamedTensors {
      return {{"last_hidden_state", fast(required(in, "input_ids"), find(in, "attention_mask"), find(in, "token_type_ids"))}};
    };
  }
  if (auto classifier = std::dynamic_pointer_cast<models::ImageClassifier>(model)) {
    auto fast = compile([classifier](const Tensor& pixels) { return classifier->forward(pixels); }, compile_options);
    return [fast](const NamedTensors& in) -> NamedTensors { return {{"logits", fast(required(in, "pixel_values"))}}; };
  }
  auto fast = compile([model](const NamedTensors& in) { return model->run(in); }, compile_options);
  return [fast](const NamedTensors& in) { return fast(in); };
}

std::vector<NamedTensors> example_inputs(const models::Model& model, std::vector<int64_t> batches,
                                         std::vector<int64_t> lengths, Device device) {
  std::vector<NamedTensors> out;
  auto& config = model.config();
  bool encodes = dynamic_cast<const models::TextEncoder*>(&model), sees = dynamic_cast<const models::ImageClassifier*>(&model);
  if (!encodes && !sees) return out;
  if (lengths.empty())
    for (int64_t length = 16; length <= std::min<int64_t>(512, config.max_positions - 2); length *= 2) lengths.push_back(length);
  for (int64_t batch : {1, 2})
    if (std::find(batches.begin(), batches.end(), batch) == batches.end()) batches.push_back(batch);
  for (int64_t batch : batches) {
    if (sees) {
      Tensor pixels = zeros({batch, config.channels, config.image_size, config.image_size}, model.parameters().at(0).dtype());
      out.push_back({{"pixel_values", pixels.to(device)}});
      continue;
    }
    for (int64_t length : lengths) {
      Tensor ids = zeros({batch, length}, kInt64).to(device), mask = ones({batch, length}, kInt64).to(device);
      out.push_back({{"input_ids", ids}});
      out.push_back({{"input_ids", ids}, {"attention_mask", mask}});
      out.push_back({{"input_ids", ids}, {"attention_mask", mask}, {"token_type_ids", ids}});
    }
  }
  return out;
}

}  // namespace sinter
