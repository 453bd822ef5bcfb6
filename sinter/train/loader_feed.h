#pragma once
// A feed over two datasets, whatever their types.
#include <memory>
#include <optional>

#include "sinter/data/data_loader.h"
#include "sinter/train/feed.h"

namespace sinter::train {

template <class Train, class HeldOut>
class LoaderFeed final : public Feed {
 public:
  LoaderFeed(Train train, std::optional<HeldOut> held_out, const TrainOptions& options)
      : train_(data::make_data_loader(std::move(train), common(options).shuffle(true).drop_last(true))) {
    if (held_out) held_out_ = data::make_data_loader(std::move(*held_out), common(options));
    holds_out = held_out_ != nullptr;
  }

  data::Example<> next() override {
    if (at_ != train_->end()) ++at_;
    // Also where the position that was loaded is the end of an epoch.
    while (at_ == train_->end()) at_ = train_->begin();
    return *at_;
  }
  NamedTensors state_dict() const override { return train_->state_dict(); }
  void load_state_dict(const NamedTensors& state) override { train_->load_state_dict(state); }
  void each_held_out(FunctionRef<void(const data::Example<>&)> see) override {
    for (auto& batch : *held_out_) see(batch);
  }

 private:
  static data::DataLoaderOptions common(const TrainOptions& options) {
    return data::DataLoaderOptions(options.batch)
        .workers(options.workers)
        .seed(uint64_t(options.seed))
        .device(parse_device(options.device));
  }

  std::unique_ptr<data::DataLoader<Train>> train_;
  std::unique_ptr<data::DataLoader<HeldOut>> held_out_;
  typename data::DataLoader<Train>::Iterator at_;
};

}  // namespace sinter::train
