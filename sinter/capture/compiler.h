#pragma once
// Switches and questions around compile().
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sinter/base/api.h"
#include "sinter/base/stage_times.h"
#include "sinter/capture/compile.h"
#include "sinter/engine/backend.h"
#include "sinter/engine/profile.h"

namespace sinter SINTER_API {

// --- what became of a compiled function, for people: programs, guards, breaks with their cause and a remedy

struct PlanReport;

struct Explanation {
  struct Break {
    std::string what, where, advice;
  };
  struct Guard {
    std::string text, where;
  };
  // A time at which the function was captured, or would have been.
  struct Capture {
    std::string kind = {};  // "first"; "recompile"; "branch": a program has grown; "limit": nothing was captured
    std::string why = {}, where = {};  // in words, and the line that it is about, if there is one
    std::vector<Guard> failed = {};    // of a recompile: by program there was, the first of its guards that did not hold
    int program = -1;                  // the one made or grown; -1: it is gone
    double start = 0, seconds = 0;     // start: since the first capture of the process began
    StageTimes stages = {};            // of the whole process meanwhile; threads add up
  };
  // What a share of activation_memory comes to.
  struct Activations {
    double share = 1;
    int64_t bytes = 0;   // kept for gradients
    double seconds = 0;  // of computing more again, at the least
  };
  struct Program {
    std::vector<std::string> graphs;           // one a segment, as captured, with the user's lines
    std::vector<std::string> backward_graphs;  // of its gradients, before the passes; empty where it has none
    std::vector<std::string> plans;            // how each is executed
    // The kernels of each graph and of its backward, their bytes and floors (engine/report.h); null where nothing is
    // planned: another backend's, or one whose sizes no call has told yet.
    std::vector<std::shared_ptr<const PlanReport>> reports, backward_reports;
    std::vector<std::vector<Activations>> activations;  // by graph; empty for one without gradients
    std::vector<Guard> guards;
    std::vector<Break> breaks;
    int ops = 0;
    std::string note;                 // "called every time, because …"; empty in the plain case
  };

  std::string name;
  std::vector<Capture> captures;  // in the order of time
  std::vector<Program> programs;  // one for each set of guards

  int recompile_count() const;
  int graph_count() const;
  int break_count() const;
  int op_count() const;
  std::string text() const;
  // The fusion report alone: for each graph its kernels with their ops, template, bytes and floor time, and its memory.
  std::string fusion() const;
  // All of it for machines: an object {name, captures: [{kind, why, where, failed, program, start_seconds, seconds,
  // stages}], programs: [{ops, note, guards, breaks, graphs: [{text, report, activations, backward_text, backward}]}]}.
  std::string json() const;
  // All of it to look at: one page that needs nothing else, neither a network nor scripts to be read.
  std::string html() const;
};

std::ostream& operator<<(std::ostream& out, const Explanation& explanation);

namespace capture {

Explanation explain(const Function& function);
// What to do about a break.
std::string advice_for(const struct Question& question);

}  // namespace capture

namespace compiler {

// Forgets every captured program of the process; compiled functions capture anew at their next call.
void reset();

// Whether the code that asks is being captured.
bool is_compiling();

// The names that CompileOptions::backend may have.
using sinter::list_backends;

// What all compiled functions do from now on: "default"; "force_eager": run eagerly; "eager_on_recompile": run eagerly
// where no captured program fits; "fail_on_recompile": an Error there.
void set_stance(std::string_view stance);

// Sizes from which capture shall not conclude: the dimension is symbolic from the start (within [min, max]), or never.
struct SizeRange {
  int64_t min = 2, max = int64_t(1) << 40;
};
void mark_dynamic(const Tensor& tensor, int64_t dim, const SizeRange& range = {}, Where where = Where::current());
void mark_static(const Tensor& tensor, int64_t dim, Where where = Where::current());

// Of a function compiled with {"background", true}. `is_ready`: nothing that its calls have asked for so far is still
// being compiled. `wait` waits for that, and throws what went wrong in between, if anything did (the function then runs
// op by op). Others are always ready.
template <class F>
bool is_ready(const F& f) {
  if constexpr (requires { f.policy(); })
    return f.policy().is_ready();
  else
    return f.function().is_ready();
}
template <class F>
void wait(const F& f) {
  if constexpr (requires { f.policy(); })
    f.policy().wait();
  else
    f.function().wait();
}

namespace detail {

// Real tensors in the place of traced ones, and back.
struct ToReal final : capture::LeafVisitor {
  void tensor(Tensor& t) override { t = capture::real_tensor(t); }
  void size(Dim& d) override { d = d.to_int(); }
  void number(Scalar& s) override {
    if (s.is_lazy()) s = s.is_floating() ? Scalar(s.to_double()) : Scalar(s.to_int());
  }
  void exact(capture::LeafKind, size_t, const std::string&) override {}
  void enter(const std::string&) override {}
  void leave() override {}
};
struct ToTraced final : capture::LeafVisitor {
  void tensor(Tensor& t) override { t = capture::enter_tensor(t); }
  void size(Dim&) override {}
  void number(Scalar&) override {}
  void exact(capture::LeafKind, size_t, const std::string&) override {}
  void enter(const std::string&) override {}
  void leave() override {}
};

template <class F>
class Disabled {
 public:
  explicit Disabled(F f) : f_(std::move(f)) {}

  template <class... A>
  auto operator()(A&&... arguments) const {
    using R = std::remove_cvref_t<std::invoke_result_t<const F&, const std::decay_t<A>&...>>;
    if (!capture::is_capturing()) return R(std::invoke(f_, std::forward<A>(arguments)...));
    std::tuple<std::decay_t<A>...> copy(arguments...);
    ToReal to_real;
    capture::detail::Forward outward{to_real};
    // Numbers that the program does not know yet are asked for before it is left.
    capture::step_aside("a function kept out by compiler::disable()");
    std::apply([&](auto&... argument) { (capture::detail::walk(outward, argument), ...); }, copy);
    auto run = [&] { return std::apply([&](const auto&... argument) -> R { return std::invoke(f_, argument...); }, copy); };
    if constexpr (std::is_void_v<R>) {
      capture::run_untraced(run);
    } else {
      std::optional<R> result;
      capture::run_untraced([&] { result.emplace(run()); });
      ToTraced to_traced;
      capture::detail::Forward inward{to_traced};
      capture::detail::walk<capture::Role::kResult>(inward, *result);
      return R(std::move(*result));
    }
  }

 private:
  F f_;
};

}  // namespace detail

// Keeps a function out of captured programs: it runs as it is, on real tensors, in every call. A function that calls one
// is itself called every time; what surrounds it is compiled.
template <class F>
auto disable(F&& f) {
  return detail::Disabled<std::decay_t<F>>(std::forward<F>(f));
}

// All that the cache directory holds (compiled kernels, choices of the autotuner) as one file, and back: a new machine of
// the same kind then compiles nothing. Both give the number of entries; load_artifacts counts those that were not there
// yet. The file is native code: load none that you would not run. Errors say what is wrong with a file.
size_t save_artifacts(const std::string& file);
size_t load_artifacts(const std::string& file);

// Where the compile time of this process went, in seconds by stage; what is compiled on several threads at once counts
// on each. SINTER_LOGS=perf says the same of every capture.
inline StageTimes compile_times() { return stage_times(); }

// Calls the function, compiled or not, and tells how long each of its kernels took. A first call also captures and
// compiles, so call it once before.
template <class F, class... A>
Profile profile(const F& f, A&&... arguments) {
  auto call = [&] { std::invoke(f, arguments...); };
  return Profile(FunctionRef<void()>(call));
}

// Calls the function as compiled and tells what became of it.
template <class F, class... A>
Explanation explain(const F& f, A&&... arguments) {
  if constexpr (requires { f.function(); }) {
    f(std::forward<A>(arguments)...);
    return capture::explain(f.function());
  } else {
    auto compiled = compile(f);
    compiled(std::forward<A>(arguments)...);
    return capture::explain(compiled.function());
  }
}

}  // namespace compiler

}  // namespace sinter
