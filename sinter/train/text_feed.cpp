#include "sinter/train/feed.h"

#include <filesystem>

#include "sinter/base/error.h"
#include "sinter/base/hash.h"
#include "sinter/data/tokens.h"
#include "sinter/io/file.h"
#include "sinter/io/tokenizer/tokenizer.h"
#include "sinter/train/loader_feed.h"

namespace sinter::train {

namespace {

// Some of the ids that go in are others: a model that may not trust each of them learns less by heart.
struct ReplaceIds {
  double share;
  int64_t vocab_size;

  data::Example<> operator()(data::Example<> example, data::Random& random) const {
    auto* ids = example.data.data_ptr<int64_t>();
    for (int64_t i = 0; i < example.data.numel(); ++i)
      if (random.uniform() < share) ids[i] = random.below(vocab_size);
    return example;
  }
};

}  // namespace

std::unique_ptr<Feed> text_feed(const TrainOptions& o, const models::ModelConfig& model, const Tokenizer& tokenizer) {
  check(model.max_positions == 0 || o.length <= model.max_positions,
        "train: --length {} is more than the {} positions of the model", o.length, model.max_positions);
  check(!std::filesystem::is_directory(o.data), "train: '{}' is a folder; {} is trained on a text file", o.data,
        model.architecture);
  auto ids = tokenizer.encode(MappedFile("train", o.data).bytes(), /*add_special_tokens=*/false);
  const auto all = std::span<const int64_t>(ids);
  const size_t held = size_t(double(all.size()) * o.held_out), kept = all.size() - held;
  auto windows = [&](std::span<const int64_t> part, const char* what, int64_t stride, int64_t least) {
    check(int64_t(part.size()) > o.length && (int64_t(part.size()) - 1 - o.length) / stride + 1 >= least,
          "train: '{}' has {} tokens, {} of them {}, too few for a batch of {} windows of {}: give a longer text, or a "
          "smaller "
          "--length, --batch{}",
          o.data, all.size(), part.size(), what, least, o.length,
          o.held_out > 0 ? " or another --held-out (0: none)" : "");
    return data::TokenDataset::from_ids(part, data::TokenOptions(o.length).stride(stride).vocab_size(model.vocab_size));
  };
  auto train = windows(all.first(kept), "to train on", 1, o.batch).map(ReplaceIds{o.noise, model.vocab_size});
  std::optional<data::TokenDataset> held_out;
  if (o.held_out > 0) held_out = windows(all.subspan(kept), "held back", o.length, 1);
  auto feed = std::make_unique<LoaderFeed<decltype(train), data::TokenDataset>>(std::move(train), held_out, o);
  feed->unit = "tokens";
  feed->units = o.batch * o.length;
  feed->fingerprint = hash_bytes(ids.data(), ids.size() * sizeof(int64_t), 0);
  feed->summary = format("{} tokens, {} of them held back", all.size(), held);
  return feed;
}

}  // namespace sinter::train
