#include "sinter/generate/source_reader.h"

#include <algorithm>

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/capture/compiler.h"
#include "sinter/ops/creation.h"

namespace sinter {

namespace {

constexpr int64_t kFirstBucket = 32;

}  // namespace

SourceReader::SourceReader(std::shared_ptr<models::EncoderDecoder> model, GeneratorOptions options)
    : model_(std::move(model)), buckets_(std::move(options.buckets)) {
  check(bool(model_), "SourceReader: no model");
  std::sort(buckets_.begin(), buckets_.end());
  auto read = [model = model_](const Tensor& input, const std::optional<Tensor>& mask) {
    return model->read(input, mask);
  };
  if (options.eager) {
    read_ = read;
    return;
  }
  CompileOptions how{.mode = options.mode, .fullgraph = true, .dynamic = Dynamic::kFalse, .options = options.options};
  how.options.try_emplace("recompile_limit", int64_t(64));
  how.name = "read";
  how.fingerprint = [model = model_] { return model->fingerprint("read"); };
  read_ = compile(read, how);
}

int64_t SourceReader::bucket_of(int64_t length) const {
  auto found = std::lower_bound(buckets_.begin(), buckets_.end(), length);
  if (found != buckets_.end()) return *found;
  int64_t bucket = kFirstBucket, most = model_->config().max_positions;
  while (bucket < length) bucket *= 2;
  return most > 0 ? std::min(bucket, most) : bucket;
}

models::Source SourceReader::read(const std::vector<std::vector<int64_t>>& texts) {
  check(!texts.empty(), "read: there is no text");
  auto& config = model_->config();
  size_t longest = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    check(!texts[i].empty(), "read: text {} is empty", i);
    check(config.max_positions <= 0 || int64_t(texts[i].size()) <= config.max_positions,
          "read: text {} has {} tokens, the model {} positions; shorten it", i, texts[i].size(), config.max_positions);
    for (int64_t id : texts[i])
      check(id >= 0 && id < config.vocab_size, "read: text {} has the id {}; the model knows 0 to {}", i, id,
            config.vocab_size - 1);
    longest = std::max(longest, texts[i].size());
  }
  int64_t rows = int64_t(texts.size()), length = bucket_of(int64_t(longest));
  std::vector<int64_t> ids(size_t(rows * length), 0), mask(ids.size(), 0);
  for (int64_t r = 0; r < rows; ++r) {
    auto& text = texts[size_t(r)];
    std::copy(text.begin(), text.end(), ids.begin() + r * length);
    std::fill_n(mask.begin() + r * length, text.size(), 1);
  }
  NoGradGuard no_grad;
  Device device = model_->parameters().at(0).device();
  return read_(tensor(ids).view({rows, length}).to(device), tensor(mask).view({rows, length}).to(device));
}

models::Source SourceReader::read_features(const Tensor& features) {
  NoGradGuard no_grad;
  Tensor weight = model_->parameters().at(0);
  return read_(features.to(weight.dtype()).to(weight.device()), std::nullopt);
}

}  // namespace sinter
