#pragma once
// A compiled function with its types left out: the captured programs it has, and what happens in a call.
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sinter/base/function_ref.h"
#include "sinter/capture/frame.h"
#include "sinter/capture/options.h"

namespace sinter {

class BackgroundTasks;

namespace capture {

struct Entry;
struct Signature;
struct Word;
class SizeTable;

class Captures;
struct CaptureRecord;

// A dimension of the n-th tensor of the arguments that a trace shall have symbolic; those of one group share a symbol.
struct TracedDim {
  int tensor, dim, group;
};

class Function {
 public:
  static std::shared_ptr<Function> make(CompileOptions options, const std::string& where);
  ~Function();

  // Runs the call; false when it shall be made eagerly by the caller.
  bool call(Frame& frame, Results& results);
  // Captures what a call needs and adds the work that is left before it can run (plans, kernels); any thread may do it.
  // Nothing is run. Where the program breaks, only its first segment is made.
  void prepare(Frame& frame, std::vector<std::function<void()>>& work);
  // What is compiled in the background ({"background", true}); null where nothing is.
  const std::shared_ptr<BackgroundTasks>& tasks() const { return tasks_; }
  // Whether none of it is under way; waits until that is so, and throws what went wrong in between.
  bool is_ready() const;
  void wait() const;
  // The program of this call as Entry::trace, with the present values of its symbols. Nothing is built or run, and a
  // break is an Error. Null once the recompile limit is reached. A function that is traced is never called.
  std::shared_ptr<Entry> trace(Frame& frame, std::span<const TracedDim> dims, SmallVector<int64_t, 8>& sizes);
  // Forgets everything captured.
  void reset();

  const CompileOptions& options() const { return options_; }
  const std::string& name() const { return name_; }
  std::vector<std::shared_ptr<Entry>> entries() const;
  // When and why it was captured (captures.h).
  const Captures& captures() const { return *captures_; }

 private:
  friend class Capture;
  Function(CompileOptions options, std::string name);

  std::shared_ptr<Entry> find(const Signature& signature, Frame& frame, SmallVector<int64_t, 8>& sizes) const;
  bool run_entry(const std::shared_ptr<Entry>& entry, Frame& frame, SmallVector<int64_t, 8> sizes, Results& results);
  // What a new program is captured for: a call, or the work before one.
  struct Wanted {
    Results* results = nullptr;
    std::vector<std::function<void()>>* work = nullptr;
  };
  bool capture_new(const Signature& signature, Frame& frame, const Wanted& wanted);
  bool make_program(const Signature& signature, const std::vector<Word>& words, Frame& frame, const Wanted& wanted);
  bool capture_with(const SizeTable& sizes, const Signature& signature, const std::vector<Word>& words, Frame& frame,
                    const Wanted& wanted, bool leaves_break = false);
  // By program, the first guard that keeps it from serving the call.
  std::vector<Guard> failures(const Signature& signature, const std::vector<Word>& words, const Frame& frame) const;
  // Keeps the record; under SINTER_DEBUG the page that explains the function is written anew.
  void note(CaptureRecord record);
  SizeTable choose_sizes(const Signature& signature, const std::vector<Word>& words, const Frame& frame,
                         std::span<const TracedDim> traced = {});
  void add(const std::shared_ptr<Entry>& entry);
  void recheck(const std::shared_ptr<Entry>& entry, Frame& frame);

  const CompileOptions options_;
  const std::string name_;
  const std::shared_ptr<BackgroundTasks> tasks_;
  const std::shared_ptr<Captures> captures_;
  struct State;  // see function_state.h
  const std::unique_ptr<State> state_;
};

// All compiled functions that exist.
std::vector<std::shared_ptr<Function>> all_functions();

// What every function does when no program fits a call.
enum class Stance : uint8_t { kDefault, kForceEager, kEagerOnRecompile, kFailOnRecompile };
void set_stance(Stance stance);
Stance stance();

// Whether ops on this thread are recorded into a graph and not run: a function is being captured, or a graph traced.
bool is_tracing();
// Whether a function is being captured on this thread.
bool is_capturing();
// Ends the segment under way, so that host code can run on real tensors; no-op when nothing is captured.
void step_aside(const char* what);
// Calls it with nothing being traced.
void run_untraced(FunctionRef<void()> host_code);
// A number of the host's: read now, and in a captured program before every run of it. What `read` refers to must be guarded.
Scalar host_number(std::function<double()> read);
// The real tensor behind a traced one.
Tensor real_tensor(const Tensor& tensor);
// A real tensor as one of the program under way.
Tensor enter_tensor(const Tensor& tensor);

}  // namespace capture

}  // namespace sinter
