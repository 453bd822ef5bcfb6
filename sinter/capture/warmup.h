#pragma once
// warmup(): compiles a function before its first call.
//
//   auto fast = compile(model);
//   warmup(fast, std::tuple{ids, mask});                        // for calls like fast(ids, mask)
//   warmup(fast, {{ids, mask}, {short_ids, short_mask}});       // where the parameters are known: several at once
//   warmup(fast, std::tuple{ids, mask},                         // for each batch and each length
//          {{.sizes = {1, 4}, .dims = {{0, 0}, {1, 0}}}, {.sizes = {64, 256}, .dims = {{0, 1}, {1, 1}}}});
//   warmup(bucketed(fast, buckets), std::tuple{ids, mask});     // for each bucket
//
// Examples stand for the calls to come: types, devices and layouts, gradients enabled or not, and numbers as there.
// The function is captured once for each of them that no program fits (so what it does beside tensors happens then),
// and nothing else of it runs: arguments, captured tensors, gradients and the random generator stay as they are. Plans
// and kernels of all programs are then compiled on all threads, and on a terminal a bar shows how far they are. Calls
// may go on meanwhile on other threads.
//
//   - Where a program breaks, what follows the break depends on data: only what comes before it is made.
//   - A backward is made for row-major gradients of the results, as a loss has.
//   - Left to the first call: kernels that a library chooses or an op brings along, and the copy of a result whose order
//     in memory is not the one that the program makes. On a GPU that call also runs step by step, and the next one is
//     recorded (mode reduce-overhead).
//   - Sizes count as in calls: with Dynamic::kAuto a second one makes a program for all of them.
#include "sinter/base/api.h"
#include "sinter/base/function_ref.h"
#include "sinter/capture/buckets.h"

namespace sinter SINTER_API {

// Sizes that calls have in these places: the examples are cut, or padded with zeros, to each of them.
struct WarmupSizes {
  std::vector<int64_t> sizes = {};
  std::vector<Buckets::Place> dims = {};
};

namespace capture {

// Collects what is to be compiled, then does it.
class Warmup {
 public:
  explicit Warmup(std::string name) : name_(std::move(name)) {}

  // One example of a call; `capture` adds its work.
  void add(FunctionRef<void(std::vector<std::function<void()>>& work)> capture);
  // On all threads; rethrows the first Error once all is done.
  void run();

 private:
  const std::string name_;
  std::vector<std::vector<std::function<void()>>> examples_;
};

// The example with each combination of the sizes.
std::vector<std::vector<int64_t>> combinations(std::span<const WarmupSizes> vary);
// Gives the visited tensors of the arguments the sizes that are named.
class Resize final : public LeafVisitor {
 public:
  Resize(std::span<const WarmupSizes> vary, const std::vector<int64_t>& sizes) : vary_(vary), sizes_(sizes) {}
  void begin_argument(int index) { argument_ = index; }
  void tensor(Tensor& tensor) override;
  void size(Dim&) override {}
  void number(Scalar&) override {}
  void exact(LeafKind, size_t, const std::string&) override {}
  void enter(const std::string&) override {}
  void leave() override {}

 private:
  std::span<const WarmupSizes> vary_;
  const std::vector<int64_t>& sizes_;
  int argument_ = 0;
};

template <class... Stored, class Prepare>
void for_each_size(const std::tuple<Stored...>& example, std::span<const WarmupSizes> vary, Prepare&& prepare) {
  for (auto& sizes : combinations(vary)) {
    std::tuple<Stored...> resized = example;
    Resize resize(vary, sizes);
    detail::Forward visit{resize};
    int i = 0;
    std::apply([&](auto&... argument) { ((resize.begin_argument(i++), detail::walk(visit, argument)), ...); }, resized);
    std::apply(prepare, resized);
  }
}

// A call of the function on these arguments, not made but prepared.
template <class... Stored, class F>
void prepare_call(Function& function, F& f, Warmup& warmup, const Stored&... arguments) {
  InvocationOf<F, Stored...> invocation(f, arguments...);
  warmup.add([&](auto& work) { function.prepare(invocation, work); });
}

template <class... Stored, class F>
void prepare_bucketed(BucketPolicy& policy, F& f, Warmup& warmup, const Stored&... arguments) {
  std::tuple<Stored...> padded(arguments...);
  BucketedCall call(policy);
  pad_arguments(call, padded);
  std::apply(
      [&](auto&... argument) {
        InvocationOf<F, Stored...> invocation(f, argument...);
        if (call.prepare(invocation)) warmup.add([&](auto& work) { call.function().prepare(invocation, work); });
      },
      padded);
}

// The buckets of a policy as sizes.
std::vector<WarmupSizes> all_buckets(const BucketPolicy& policy);

}  // namespace capture

template <class F, class... P>
void warmup(const capture::Compiled<F, P...>& fast, const std::vector<std::tuple<capture::Stored<P>...>>& examples,
            const std::vector<WarmupSizes>& vary = {}) {
  capture::Warmup warmup(fast.function().name());
  for (auto& example : examples)
    capture::for_each_size(example, vary, [&](auto&... argument) {
      capture::prepare_call<capture::Stored<P>...>(fast.function(), *fast.target(), warmup, argument...);
    });
  warmup.run();
}
template <class F, class... P, class... A>
  requires(sizeof...(P) == sizeof...(A))
void warmup(const capture::Compiled<F, P...>& fast, const std::tuple<A...>& example,
            const std::vector<WarmupSizes>& vary = {}) {
  warmup(fast, std::vector<std::tuple<capture::Stored<P>...>>{example}, vary);
}

// Modules and generic lambdas take what they are called with.
template <class F, class... A>
void warmup(const capture::CompiledGeneric<F>& fast, const std::vector<std::tuple<A...>>& examples,
            const std::vector<WarmupSizes>& vary = {}) {
  capture::Warmup warmup(fast.function().name());
  for (auto& example : examples)
    capture::for_each_size(example, vary, [&](auto&... argument) {
      capture::prepare_call<A...>(fast.function(), *fast.target(), warmup, argument...);
    });
  warmup.run();
}
template <class F, class... A>
void warmup(const capture::CompiledGeneric<F>& fast, const std::tuple<A...>& example,
            const std::vector<WarmupSizes>& vary = {}) {
  warmup(fast, std::vector<std::tuple<A...>>{example}, vary);
}

// Of one tensor each: warmup(fast, {x, y}).
template <class F>
void warmup(const capture::CompiledGeneric<F>& fast, const std::vector<Tensor>& examples) {
  std::vector<std::tuple<Tensor>> calls(examples.begin(), examples.end());
  warmup(fast, calls);
}

template <class F, class... P, class... A>
  requires(sizeof...(P) == sizeof...(A))
void warmup(const capture::Bucketed<F, P...>& fast, const std::tuple<A...>& example) {
  capture::Warmup warmup(fast.policy().name());
  capture::for_each_size(std::tuple<capture::Stored<P>...>(example), capture::all_buckets(fast.policy()),
                         [&](auto&... argument) {
                           capture::prepare_bucketed<capture::Stored<P>...>(fast.policy(), *fast.target(), warmup, argument...);
                         });
  warmup.run();
}
template <class F, class... A>
void warmup(const capture::BucketedGeneric<F>& fast, const std::tuple<A...>& example) {
  capture::Warmup warmup(fast.policy().name());
  capture::for_each_size(example, capture::all_buckets(fast.policy()), [&](auto&... argument) {
    capture::prepare_bucketed<A...>(fast.policy(), *fast.target(), warmup, argument...);
  });
  warmup.run();
}

}  // namespace sinter
