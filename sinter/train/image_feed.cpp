#include <filesystem>

#include "sinter/base/error.h"
#include "sinter/base/hash.h"
#include "sinter/data/image_folder.h"
#include "sinter/data/transforms.h"
#include "sinter/train/loader_feed.h"

namespace sinter::train {

namespace {

// What pictures are brought to: as the model was trained, else as its family is.
struct Scale {
  std::vector<double> mean, deviation;

  Scale(const models::ModelConfig& model, const CheckpointFiles& files) {
    if (auto text = files.read("preprocessor_config.json")) {
      ConfigFile config = ConfigFile::parse(*text, files.path("preprocessor_config.json"));
      mean = config.numbers("image_mean");
      deviation = config.numbers("image_std");
    }
    const bool is_vit = model.model_type == "vit";
    if (mean.empty()) mean = is_vit ? std::vector{0.5, 0.5, 0.5} : std::vector{0.485, 0.456, 0.406};
    if (deviation.empty()) deviation = is_vit ? std::vector{0.5, 0.5, 0.5} : std::vector{0.229, 0.224, 0.225};
    if (model.channels == 1) mean.resize(1), deviation.resize(1);
  }
};

}  // namespace

std::unique_ptr<Feed> image_feed(const TrainOptions& o, const models::ModelConfig& model,
                                 const CheckpointFiles& files) {
  using namespace data::transforms;
  check(model.channels == 3 || model.channels == 1, "train: pictures of {} channels cannot be read", model.channels);
  data::ImageFolder images(o.data, model.channels == 1 ? data::ImageMode::kGray : data::ImageMode::kRGB);
  const int64_t held = int64_t(double(images.size()) * o.held_out), kept = images.size() - held;
  check(kept >= o.batch,
        "train: '{}' has {} pictures, {} of them to train on, too few for a batch of {}: give a smaller --batch",
        o.data, images.size(), kept, o.batch);
  check(held > 0 || o.held_out == 0, "train: {} % of {} pictures are none: give a larger --held-out, or 0",
        100 * o.held_out, images.size());
  const int64_t side = model.image_size, larger = side * 8 / 7;
  const Scale scale(model, files);
  Normalize normalize(scale.mean, scale.deviation);
  auto parts = data::random_split(images, {kept, held}, uint64_t(o.seed));
  auto train =
      parts[0].map(Resize(larger)).map(RandomCrop(side)).map(RandomHorizontalFlip()).map(ToFloat()).map(normalize);
  auto looked_at = parts[1].map(Resize(larger)).map(CenterCrop(side)).map(ToFloat()).map(normalize);
  std::optional<decltype(looked_at)> held_out;
  if (held > 0) held_out = looked_at;
  auto feed =
      std::make_unique<LoaderFeed<decltype(train), decltype(looked_at)>>(std::move(train), std::move(held_out), o);
  feed->unit = "images";
  feed->units = o.batch;
  for (int64_t i = 0; i < images.size(); ++i)
    feed->fingerprint = hash_text(std::filesystem::relative(images.path(i), o.data).string(), feed->fingerprint);
  feed->summary = format("{} images of {} classes, {} of them held back", images.size(), images.classes().size(), held);
  return feed;
}

}  // namespace sinter::train
