#pragma once
// A run of training from its options: loads or makes the model, takes the steps, writes checkpoints and losses, and
// goes on where a run was ended.
#include <memory>
#include <set>
#include <string>

#include "sinter/train/loss_log.h"
#include "sinter/train/options.h"

namespace sinter::train {

// What is told while a run goes on; the lines are those of the log.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void on_start(const std::string& /*summary*/, int64_t /*first_step*/, int64_t /*steps*/) {}
  virtual void on_step(const StepRecord& /*record*/, const std::string& /*line*/) {}
  virtual void on_held_out(const StepRecord& /*record*/, const std::string& /*line*/) {}
  // Asked after each step: true saves a checkpoint and ends the run.
  virtual bool wants_to_stop() { return false; }
  // A checkpoint is in this folder.
  virtual void on_saved(int64_t /*step*/, const std::string& /*folder*/) {}
};

struct TrainResult {
  std::string checkpoint;  // the folder of the last one
  int64_t steps = 0;       // taken by this process
  bool stopped = false;    // before the last one, because the observer wanted it
  int64_t programs = 0;    // that they needed
};

class Trainer {
 public:
  // With `resume` the newest checkpoint in options.out is gone on from, where there is one; `given` names the options
  // that were told and are not just defaults. Without, such a checkpoint is an Error.
  Trainer(const TrainOptions& options, bool resume, const std::set<std::string>& given);
  ~Trainer();

  // Takes the steps that are left. A loss or gradient that is not finite is an Error that names the step; checkpoints
  // stay as they were.
  TrainResult run(Observer& observer);
  // All steps so far.
  const LossLog& log() const;
  const TrainOptions& options() const;
  // Operations of the products in one step, once one was taken; 0 where nothing is known.
  double flops() const;
  // "tokens".
  const std::string& unit() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sinter::train
