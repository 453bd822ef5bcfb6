#pragma once
// Buckets: a compiled function whose arguments vary in a size runs on a few sizes only.
//
//   auto fast = bucketed(compile(model), Buckets{.sizes = {64, 128, 256}, .dims = {{0, 1}, {1, 1}}, .mask = 2});
//   Tensor y = fast(tokens, positions, {});  // 100 tokens run as 128; y is cut back to 100
//
// Arguments are padded with zeros (false) to the next bucket, and results are cut to the sizes that the true ones give.
// Each bucket has a program of its own in which the padded size is a plain number, so that kernels are specialised to
// it; it never counts as a size that varies, and each bucket has its own recompile limit. (One program for all sizes is
// what compile() makes by itself.)
//
// Whether results stay right is found out before anything runs: the function is traced with the size symbolic, and an
// op that lets padding into a result or a gradient (a mean over the padded size, say) is an Error with its line. So is
// a decision of the function that the true size would have taken otherwise. passes/padding.h says what is assumed.
//   - The function is one program: a break is an Error. It is called once more than it is captured.
//   - In-place writes to padded arguments reach the caller's tensors. A result is never memory of a padded argument.
//   - A size of 0 or 1 is padded like any other.
//   - Inside another compiled function, and while compiled functions are forced to be eager, nothing is padded.
#include <map>

#include "sinter/base/api.h"
#include "sinter/capture/compile.h"

namespace sinter SINTER_API {

struct Buckets {
  // A dimension of the tensor, or of all the tensors, of one argument. Negative ones count from the end.
  struct Place {
    int argument = 0, dim = 0;
  };
  std::vector<int64_t> sizes = {};  // ascending, from 2 on
  std::vector<Place> dims = {};     // where the size is found; equal in all of them
  // An argument: where a call leaves it undefined, it is bool[bucket] with true for what is real.
  int mask = -1;
  bool pass_larger = false;  // sizes beyond the largest bucket run as they are; else they are an Error
};

namespace capture {

struct PaddingPlan;

// The programs of a bucketed function.
class BucketPolicy {
 public:
  BucketPolicy(std::vector<Buckets> buckets, const Function& compiled);
  ~BucketPolicy();

  const std::vector<Buckets>& buckets() const { return buckets_; }
  const std::string& name() const { return name_; }
  // The function of these buckets, one for each Buckets; 0 stands for sizes that are passed as they are.
  std::shared_ptr<Function> function(const IntList& sizes);
  // The functions that exist, by their buckets.
  std::map<std::vector<int64_t>, std::shared_ptr<Function>> functions() const;
  // Of all of them: see Function.
  bool is_ready() const;
  void wait() const;
  // Null where the call shall be made eagerly.
  std::shared_ptr<const PaddingPlan> plan(Invocation& invocation, std::span<const TracedDim> dims,
                                          SmallVector<int64_t, 8>& sizes);

 private:
  const std::vector<Buckets> buckets_;
  const std::string name_;
  struct State;
  const std::unique_ptr<State> state_;
};

// One call. It visits the tensors of the arguments twice, to measure and to pad them, and those of the results once.
class BucketedCall final : public LeafVisitor {
 public:
  explicit BucketedCall(BucketPolicy& policy) : policy_(policy) {}

  void begin_argument(int index) { argument_ = index; }
  // Between the visits.
  void choose_buckets();
  // After the second: `invocation` has the padded arguments. False when the call shall be made eagerly, unpadded.
  bool prepare(Invocation& invocation);
  Function& function() const { return *function_; }
  // After the function has run.
  void write_back();

  void tensor(Tensor& tensor) override;
  void size(Dim& size) override;
  void number(Scalar&) override {}
  void exact(LeafKind, size_t, const std::string&) override {}
  void enter(const std::string&) override {}
  void leave() override {}

 private:
  enum class Step : uint8_t { kMeasure, kPad, kCut };
  struct Leaf {
    Tensor given, padded;
    int argument;
  };
  struct Group {
    int64_t truth = -1, padded = 0;
    bool has_mask = false;
    Device device;
  };

  void measure(const Tensor& tensor);
  void pad(Tensor& tensor);
  void cut(Tensor& tensor);
  Tensor padded(const Leaf& leaf, const Shape& sizes) const;
  bool shares_memory(const Leaf& leaf) const;

  BucketPolicy& policy_;
  Step step_ = Step::kMeasure;
  int argument_ = 0;
  size_t next_ = 0, next_size_ = 0;
  std::vector<Leaf> leaves_;
  std::vector<Group> groups_;
  std::vector<TracedDim> dims_;
  std::shared_ptr<Function> function_;
  std::shared_ptr<const PaddingPlan> plan_;
  SmallVector<int64_t, 8> truth_;  // of the plan's symbols
};

// Pads the arguments to the buckets that the call chooses for them.
template <class... Stored>
void pad_arguments(BucketedCall& call, std::tuple<Stored...>& arguments) {
  detail::Forward visit{call};
  auto visit_arguments = [&] {
    int i = 0;
    std::apply([&](auto&... argument) { ((call.begin_argument(i++), detail::walk(visit, argument)), ...); }, arguments);
  };
  visit_arguments();
  call.choose_buckets();
  visit_arguments();
}

template <class... Stored, class F>
auto call_bucketed(BucketPolicy& policy, F& f, const Stored&... arguments) {
  using R = std::remove_cvref_t<std::invoke_result_t<F&, const Stored&...>>;
  auto plainly = [&] {
    std::tuple<Stored...> copy(arguments...);
    return std::apply([&](const auto&... argument) -> R { return std::invoke(f, argument...); }, copy);
  };
  if (is_tracing() || stance() == Stance::kForceEager) return plainly();
  std::tuple<Stored...> padded(arguments...);
  BucketedCall call(policy);
  pad_arguments(call, padded);
  auto run = [&](auto&... argument) { return call_compiled<Stored...>(call.function(), f, argument...); };
  {
    auto make_frame = [&](auto&... argument) { return InvocationOf<F, Stored...>(f, argument...); };
    auto invocation = std::apply(make_frame, padded);
    if (!call.prepare(invocation)) return plainly();
  }
  if constexpr (std::is_void_v<R>) {
    std::apply(run, padded);
    call.write_back();
  } else {
    R out = std::apply(run, padded);
    call.write_back();
    detail::Forward visit{call};
    detail::walk<Role::kResult>(visit, out);
    return out;
  }
}

template <class F, class... P>
class Bucketed {
 public:
  Bucketed(std::shared_ptr<F> f, std::shared_ptr<BucketPolicy> policy) : f_(std::move(f)), policy_(std::move(policy)) {}

  auto operator()(P... arguments) const { return call_bucketed<Stored<P>...>(*policy_, *f_, arguments...); }
  BucketPolicy& policy() const { return *policy_; }
  const std::shared_ptr<F>& target() const { return f_; }

 private:
  std::shared_ptr<F> f_;
  std::shared_ptr<BucketPolicy> policy_;
};

template <class F>
class BucketedGeneric {
 public:
  BucketedGeneric(std::shared_ptr<F> f, std::shared_ptr<BucketPolicy> policy)
      : f_(std::move(f)), policy_(std::move(policy)) {}

  template <class... A>
    requires std::invocable<F&, const std::decay_t<A>&...>
  auto operator()(A&&... arguments) const {
    return call_bucketed<std::decay_t<A>...>(*policy_, *f_, arguments...);
  }
  BucketPolicy& policy() const { return *policy_; }
  const std::shared_ptr<F>& target() const { return f_; }

 private:
  std::shared_ptr<F> f_;
  std::shared_ptr<BucketPolicy> policy_;
};

}  // namespace capture

// One Buckets for each size that varies: bucketed(compile(model), {batch, length}).
template <class F, class... P>
auto bucketed(const capture::Compiled<F, P...>& f, std::vector<Buckets> buckets, Where where = Where::current()) {
  UserPosition here(where);
  return capture::Bucketed<F, P...>(f.target(),
                                    std::make_shared<capture::BucketPolicy>(std::move(buckets), f.function()));
}
template <class F, class... P>
auto bucketed(const capture::Compiled<F, P...>& f, Buckets buckets, Where where = Where::current()) {
  return bucketed(f, std::vector{std::move(buckets)}, where);
}
template <class F>
auto bucketed(const capture::CompiledGeneric<F>& f, std::vector<Buckets> buckets, Where where = Where::current()) {
  UserPosition here(where);
  return capture::BucketedGeneric<F>(f.target(),
                                     std::make_shared<capture::BucketPolicy>(std::move(buckets), f.function()));
}
template <class F>
auto bucketed(const capture::CompiledGeneric<F>& f, Buckets buckets, Where where = Where::current()) {
  return bucketed(f, std::vector{std::move(buckets)}, where);
}

}  // namespace sinter
