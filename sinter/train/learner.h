#pragma once
// A model with its optimiser: one step of training as one compiled program, and the loss on other batches as another.
#include <memory>
#include <span>

#include "sinter/capture/compile.h"
#include "sinter/data/example.h"
#include "sinter/models/models.h"
#include "sinter/optim/optim.h"
#include "sinter/train/feed.h"
#include "sinter/train/loss_log.h"
#include "sinter/train/options.h"

namespace sinter::train {

class Learner {
 public:
  // Trains these parameters, which the model's forward pass reads.
  Learner(std::shared_ptr<models::Model> model, const TensorList& parameters, const TrainOptions& options);
  Learner(const Learner&) = delete;
  ~Learner();

  struct Result {
    double loss = 0, grad_norm = 0, lr = 0;
    double loss_scale = 0;  // 0: gradients are not scaled
    bool skipped = false;   // gradients are not finite, and the step is left out; grad_norm is 0
  };
  // One step of the optimiser, after forward and backward of every batch.
  Result step(std::span<const data::Example<>> batches);
  // The mean loss over all that is held back, and the share of tokens or images that are told right.
  HeldOut look_at_held_out(Feed& feed);

  optim::AdamW& optimizer() { return *optimizer_; }
  optim::GradScaler& scaler() { return scaler_; }
  // To go on after so many steps.
  void set_steps(int64_t steps) { schedule_->set_last_epoch(steps); }
  // Programs that steps have needed so far: one, and more where gradients of several batches are added up or steps are
  // left out.
  int64_t programs() const;
  // Operations of the products in one step, as it is compiled; 0 where nothing is known.
  double flops() const;

 private:
  // Forward and backward; with `last` the step too. The loss, then the norm of the gradients where a step was taken.
  TensorList run(const Tensor& x, const Tensor& y, bool last);
  // [examples, classes] in f32, for as many targets.
  Tensor logits(const Tensor& x) const;

  std::shared_ptr<models::Model> model_;
  TensorList parameters_;
  TrainOptions options_;
  std::unique_ptr<optim::AdamW> optimizer_;
  std::unique_ptr<optim::LRScheduler> schedule_;
  optim::GradScaler scaler_;
  struct Programs;
  std::unique_ptr<Programs> programs_;
};

}  // namespace sinter::train
