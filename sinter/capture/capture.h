#pragma once
// One run of a function under the recorder, and what becomes of its segments: they are new (built and run), known to have
// been run in this call (compared by hash), or looked up by hash because the function is called every time.
#include "sinter/base/host_effects.h"
#include "sinter/capture/build.h"
#include "sinter/capture/call.h"
#include "sinter/capture/entry.h"
#include "sinter/capture/function_state.h"

namespace sinter::capture {

// A kPrepare capture has come to a question that only running can answer.
struct NeedsAnswer {};

class Capture final : public SegmentHost, public HostEffects {
 public:
  enum class Purpose : uint8_t {
    kGrow,     // a new program, or a new branch of one: `known` segments come first
    kFollow,   // segments are looked up by hash
    kPrepare,  // a new program, as far as it can be built without running anything
    kCompare,  // nothing is run: every segment must be as recorded
    kTrace     // nothing is built or run: the program is kept as CacheEntry::trace, and a break is an Error
  };

  Capture(Function& function, CacheEntry& entry, CallState& call, Invocation& invocation, Purpose purpose);

  // Segments of this call that have been run already, each with its answer.
  void set_known(std::vector<std::pair<std::shared_ptr<Segment>, int64_t>> known) { known_ = std::move(known); }
  // Runs the function. The last segment has been run (or compared) when it returns.
  void run();

  const std::shared_ptr<Segment>& first() const { return first_; }
  std::shared_ptr<Segment> last() const { return last_; }
  // The function's result with the tensors taken out, as this call made it.
  const std::shared_ptr<const void>& prototype() const { return prototype_; }
  // The state is guarded as it is now, before the program changes it.
  void add_state(const IntrusivePtr<HostState>& state);
  // From here on no guard can tell what the state is.
  void add_unforeseen(const IntrusivePtr<HostState>& state) { unforeseen_.push_back(state); }
  Recorder& recorder() { return recorder_; }

  int64_t finish(Recorder& recorder, Draft& draft) override;
  const Tensor& tensor_in(int cell) const override { return call_.cells[size_t(cell)]; }
  Tensor bind(int cell, const CellSource& source) override;
  void place(int cell, const Tensor& tensor) override { call_.cell(cell) = tensor; }
  bool leaves_break() const override;
  void leaf_crosses() const override;
  void must_follow(const Question& question) override;
  bool is_value(uint64_t point, const Scalar& number) override;
  bool runs() const override { return purpose_ == Purpose::kGrow || purpose_ == Purpose::kFollow; }
  bool follows() const override { return entry_.follow; }
  std::vector<Tensor> compute(Draft& draft, std::vector<Value> values) override;

  // --- HostEffects
  void perform(const char* what, const std::function<void()>& apply, std::function<void()> undo) override;
  void call_every_time(const char* what) override;
  void fits_once(const char* what, std::function<void()> undo) override;
  void settle_draws(const char* what) override;
  void refuse(const char* what) override;
  bool grad_flag_changes(TensorImpl& tensor, bool on) override;

  static Capture* current();

 private:
  std::shared_ptr<Segment> find(const Draft& draft) const;
  std::shared_ptr<Segment> make(Recorder& recorder, Draft& draft, bool op_by_op = false);
  std::shared_ptr<Segment> make_within_limit(Recorder& recorder, Draft& draft);
  bool is_tracing() const { return Tracer::current() == &recorder_; }
  // Takes back what the function has changed on the host: nothing of it was run.
  void undo_effects();
  std::shared_ptr<Segment> keep(Recorder& recorder, Draft& draft);
  void link(const std::shared_ptr<Segment>& segment);
  void take_numbers(const Draft& draft);
  void go_on(const std::shared_ptr<Segment>& segment, int64_t answer);
  void compare(const Draft& draft, const Segment& recorded) const;
  void compare_tensors(const Draft& draft, const Segment& recorded) const;
  std::string symbols_in(const std::string& message) const;
  void check_breaks(const Draft& draft) const;
  void trace();
  void settle_outlived(bool unfinished);

  Function& function_;
  CacheEntry& entry_;
  CallState& call_;
  Invocation& invocation_;
  const Purpose purpose_;
  SizeTable sizes_;
  Recorder recorder_;
  std::vector<std::pair<std::shared_ptr<Segment>, int64_t>> known_;
  size_t next_known_ = 0;
  std::shared_ptr<Segment> first_, last_;
  std::shared_ptr<const void> prototype_;
  int64_t last_answer_ = 0;
  uint64_t place_ = 0;          // of the segment under way: the questions before it and their answers, but for numbers
  const uint64_t call_number_;  // see HostNumbers
  bool ran_something_ = false;
  TensorList results_;  // kTrace: as the function gives them back
  std::vector<std::pair<IntrusivePtr<HostState>, uint64_t>> states_;
  std::vector<IntrusivePtr<HostState>> unforeseen_;
  std::vector<std::function<void()>> undo_;
  std::string once_;  // not empty: why the program fits this call alone
};

}  // namespace sinter::capture
