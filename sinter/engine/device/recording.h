#pragma once
// A program's launches, recorded once and replayed by every later call.
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sinter/base/function_ref.h"

namespace sinter {

// The recording under way on this thread: what is queued meanwhile does not run.
class Recording {
 public:
  Recording() : previous_(current_) { current_ = this; }
  virtual ~Recording() { current_ = previous_; }
  Recording(const Recording&) = delete;
  static Recording* current() { return current_; }

 private:
  static inline thread_local Recording* current_ = nullptr;
  Recording* previous_;
};

// One call in flight of a plan as a recording: when it is made, what of the caller's it reads through the parameter block
// (step/arguments.h), and when it has to be made again.
//
// The first call runs step by step. The second is recorded: memory that lay at the same place in both calls (weights, a
// cache) is taken to stay there and its address is part of the recording; everything else, and every result, is reached
// through the block. A call in which such memory has moved after all records once more, with it in the block; after a few
// times the program runs step by step for good, and the log (cudagraphs) says why.
class Replay {
 public:
  // `moving`: by cell, those that are new in every call.
  explicit Replay(std::vector<bool> moving) : moving_(std::move(moving)) {}
  virtual ~Replay() = default;

  enum class Next : uint8_t { kRun, kRecord, kReplay };
  // What to do with a call whose cells hold these values. After kRecord: `record`, then `launch` if that went well.
  Next next(std::span<const int64_t> cells);
  bool is_moving(size_t cell) const { return moving_[cell]; }
  // Records what `queue` does under a Recording. False when it cannot be: then calls run step by step from now on.
  virtual bool record(FunctionRef<void()> queue) = 0;
  virtual void launch(std::span<const int64_t> cells) = 0;

 protected:
  virtual bool is_recorded() const = 0;
  virtual void give_up(const std::string& why) = 0;

  std::vector<bool> moving_;
  std::vector<int64_t> last_;
  int recordings_ = 0;
  bool gave_up_ = false;
};

}  // namespace sinter
