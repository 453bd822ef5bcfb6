#pragma once
// Compiled functions with their types left out: a call, what it reads of the host, and the function with its programs.
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sinter/base/api.h"
#include "sinter/base/function_ref.h"
#include "sinter/base/intrusive_ptr.h"
#include "sinter/base/small_vector.h"
#include "sinter/capture/options.h"
#include "sinter/tensor/tensor.h"

namespace sinter {

class BackgroundTasks;

namespace capture {

struct CacheEntry;
struct Guard;
struct Signature;
struct Word;
class SizeTable;

class Capture;
class Captures;
struct CaptureRecord;

}  // namespace capture

}  // namespace sinter

namespace sinter SINTER_API {
namespace capture {

// --- one call: the tensors among the arguments, and the exact bits of everything else. What stays typed is behind two
// virtual calls that only a capture makes

// What a word of `Invocation::words` is.
enum class LeafKind : uint8_t {
  kInt,
  kFloat,
  kBool,
  kText,
  kCount,    // how many elements follow
  kPresent,  // which of several things it is: something or nothing, a tensor or a number
  kObject    // the address of what is told by its identity
};

// The value of an exact leaf of one word as people write it; empty for an object.
std::string exact_text(LeafKind kind, int64_t bits);

// A hash of bytes, for what is seen of a function object.
uint64_t hash_state(const void* data, size_t bytes, uint64_t seed);

// Walks over the leaves of arguments or results in order; may replace them.
class LeafVisitor {
 public:
  virtual ~LeafVisitor() = default;
  virtual void tensor(Tensor& tensor) = 0;
  // A size (a Dim) and a number (a Scalar) may become values of the program; the other leaves are part of it.
  virtual void size(Dim& size) = 0;
  virtual void number(Scalar& number) = 0;
  // Something exact: `words` words of this kind; `text` is its value as people write it.
  virtual void exact(LeafKind, size_t words, const std::string& text) = 0;
  // Steps into a part: "[2]", ".mask".
  virtual void enter(const std::string& part) = 0;
  virtual void leave() = 0;
};

struct ResultBox {
  virtual ~ResultBox() = default;
  virtual void visit(LeafVisitor& visitor) = 0;
};

struct Invocation {
  SmallVector<const Tensor*, 16> tensors;
  SmallVector<int64_t, 24> words;
  int64_t types = 0;  // differs for other types of arguments
  int64_t state = 0;  // differs for another state of the function object

  virtual ~Invocation() = default;
  // Walks over the arguments (not changing them).
  virtual void describe(LeafVisitor& visitor) = 0;
  // Calls the function on a copy of the arguments after `replace` has walked over it.
  virtual std::shared_ptr<ResultBox> invoke(LeafVisitor& replace) = 0;
  // A result with nothing in it; null where there is none, or none can be made.
  virtual std::shared_ptr<ResultBox> blank_result() const = 0;
  // The types of function and arguments, as this build of the program names them.
  virtual const char* type_name() const = 0;
};

// What a call gives back, in the order of the result's leaves.
struct Results {
  std::vector<Tensor> tensors;
  SmallVector<int64_t, 4> sizes;
  std::vector<Tensor> numbers;  // Scalars, as tensors of one element; undefined: as in the prototype
  std::shared_ptr<const void> prototype;
};

// --- state of the host that a traced program reads and a guard can watch: the structure and the flags of a module, say

class HostState : public RefCounted {
 public:
  virtual ~HostState() = default;
  // Differs when something that a program may have read differs; nothing once the object is gone.
  virtual std::optional<uint64_t> fingerprint() const = 0;
  // Whether every change moves the clock; if not, the fingerprint is taken at every call.
  virtual bool moves_clock() const { return true; }
  virtual std::string name() const = 0;

  // Grows with every change of any such state.
  static inline std::atomic<uint64_t> clock{0};
};

// Tells the capture under way on this thread, if any, that its program depends on the state.
void depend_on(const IntrusivePtr<HostState>& state);
// That the program changes the state in a way which no guard foresees: a function that reads it after that is called every
// time.
void changes_unforeseen(const IntrusivePtr<HostState>& state);

// --- the function

// A dimension of the n-th tensor of the arguments that a trace shall have symbolic; those of one group share a symbol.
struct TracedDim {
  int tensor, dim, group;
};

class Function {
 public:
  static std::shared_ptr<Function> make(CompileOptions options, const std::string& where);
  ~Function();

  // Runs the call; false when it shall be made eagerly by the caller.
  bool call(Invocation& invocation, Results& results);
  // Captures what a call needs and adds the work that is left before it can run (plans, kernels); any thread may do it.
  // Nothing is run. Where the program breaks, only its first segment is made.
  void prepare(Invocation& invocation, std::vector<std::function<void()>>& work);
  // What is compiled in the background ({"background", true}); null where nothing is.
  const std::shared_ptr<BackgroundTasks>& tasks() const { return tasks_; }
  // Whether none of it is under way; waits until that is so, and throws what went wrong in between.
  bool is_ready() const;
  void wait() const;
  // The program of this call as CacheEntry::trace, with the present values of its symbols. Nothing is built or run, and a
  // break is an Error. Null once the recompile limit is reached. A function that is traced is never called.
  std::shared_ptr<CacheEntry> trace(Invocation& invocation, std::span<const TracedDim> dims, SmallVector<int64_t, 8>& sizes);
  // Forgets everything captured.
  void reset();

  const CompileOptions& options() const { return options_; }
  const std::string& name() const { return name_; }
  std::vector<std::shared_ptr<CacheEntry>> entries() const;
  // When and why it was captured (captures.h).
  const Captures& captures() const { return *captures_; }

 private:
  friend class Capture;
  Function(CompileOptions options, std::string name);

  std::shared_ptr<CacheEntry> find(const Signature& signature, Invocation& invocation, SmallVector<int64_t, 8>& sizes) const;
  bool run_entry(const std::shared_ptr<CacheEntry>& entry, Invocation& invocation, SmallVector<int64_t, 8> sizes, Results& results);
  // What a new program is captured for: a call, or the work before one.
  struct Wanted {
    Results* results = nullptr;
    std::vector<std::function<void()>>* work = nullptr;
  };
  bool capture_new(const Signature& signature, Invocation& invocation, const Wanted& wanted);
  bool make_program(const Signature& signature, const std::vector<Word>& words, Invocation& invocation, const Wanted& wanted);
  bool capture_with(const SizeTable& sizes, const Signature& signature, const std::vector<Word>& words, Invocation& invocation,
                    const Wanted& wanted, bool leaves_break = false);
  // By program, the first guard that keeps it from serving the call.
  std::vector<Guard> failures(const Signature& signature, const std::vector<Word>& words, const Invocation& invocation) const;
  // Keeps the record; under SINTER_DEBUG the page that explains the function is written anew.
  void note(CaptureRecord record);
  SizeTable choose_sizes(const Signature& signature, const std::vector<Word>& words, const Invocation& invocation,
                         std::span<const TracedDim> traced = {});
  void add(const std::shared_ptr<CacheEntry>& entry);
  void recheck(const std::shared_ptr<CacheEntry>& entry, Invocation& invocation);

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
