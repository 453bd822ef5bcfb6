#pragma once
// The encoder's part of generating with an encoder-decoder.
//
//   auto model = models::encoder_decoder(models::from_pretrained("path/to/t5"));
//   SourceReader reader(model);
//   TextGenerator generator(model);
//   std::vector<int64_t> begin = {0};
//   auto result = generator.generate(begin, {.source = reader.read({tokenizer.encode("translate English to German: Hello")})});
#include <functional>
#include <memory>
#include <vector>

#include "sinter/base/api.h"
#include "sinter/generate/text_generator.h"
#include "sinter/models/models.h"

namespace sinter SINTER_API {

class SourceReader {
 public:
  // Of the options those that say how a program is compiled, and the buckets: the lengths that texts are padded to, 32, 64,
  // 128 … where there are none.
  explicit SourceReader(std::shared_ptr<models::EncoderDecoder> model, GeneratorOptions options = {});

  // Texts as tokens, a row each. An Error names the one that is empty, too long, or has an id that the model does not know.
  models::Source read(const std::vector<std::vector<int64_t>>& texts);
  // Features of sounds, [batch, features, frames].
  models::Source read_features(const Tensor& features);

 private:
  int64_t bucket_of(int64_t length) const;

  std::shared_ptr<models::EncoderDecoder> model_;
  std::vector<int64_t> buckets_;
  std::function<models::Source(const Tensor&, const std::optional<Tensor>&)> read_;
};

}  // namespace SINTER_API
