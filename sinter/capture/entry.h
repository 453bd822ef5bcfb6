#pragma once
// One captured program of a function: when it fits a call, and the tree of its segments.
#include <atomic>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <unordered_map>

#include "sinter/capture/function.h"
#include "sinter/capture/host_numbers.h"
#include "sinter/capture/segment.h"
#include "sinter/capture/signature.h"
#include "sinter/capture/sizes.h"

namespace sinter::capture {

// A guard as people read it.
struct Guard {
  std::string text;   // "argument 0.size(1) == 8"
  std::string where;  // the line that caused it; empty where the call itself did
};

// What a captured program relies on; plain data, checked in order.
class Guards {
 public:
  // From the signature at capture; `symbols` has the words that are symbolic.
  Guards(const Signature& signature, std::vector<Word> words, const SizeTable& sizes);

  Guards(const Guards&) = delete;

  // Once the capture is over: facts about sizes, tensors by identity, states of the host, gradients present.
  void complete(const SizeTable& sizes);
  void add_captured(const Tensor& tensor, const std::string& name);
  void add_state(const IntrusivePtr<HostState>& state, uint64_t fingerprint);
  void add_grad(const GradRead& read);
  void add_sharing(const Sharing& sharing);
  void add_grad_sharing(const GradSharing& sharing);
  // No argument may lie in the memory of the tensors that the program writes to by itself, nor, where it writes to an
  // argument, in that of any tensor it reaches by itself.
  void keep_apart(std::span<const Tensor> written, bool writes_arguments);

  // No call fits any more: the program was right once, and the reason says why.
  void spend(std::string reason);
  bool is_spent() const { return spent_.load(std::memory_order_relaxed); }

  // Whether the call fits; if it does, the values of the symbols.
  bool match(const Signature& signature, const Invocation& invocation, SmallVector<int64_t, 8>& sizes) const;
  // The first guard that fails, with its old and new value and the line that caused it. `words` describe the call.
  Guard failure(const Signature& signature, const std::vector<Word>& words, const Invocation& invocation) const;

  // Whether it rests on more than the call, tensors by identity and states of the host.
  bool watches_memory() const { return !grads_.empty() || !sharings_.empty() || !grad_sharings_.empty(); }
  bool watches(const IntrusivePtr<HostState>& state) const;
  size_t state_count() const { return states_.size(); }

  std::vector<Guard> list() const;
  uint64_t hash() const;
  const Signature& signature() const { return signature_; }
  const std::vector<Word>& words() const { return words_; }
  bool is_symbolic(size_t word) const { return place_[word] >= 0; }

 private:
  bool match_words(const Signature& signature) const;
  bool match_state() const;
  // What is wrong with the gradients of leaves, and with their memory; empty when nothing is.
  std::string grad_failure(const Invocation& invocation) const;
  // What is wrong with the memory of the arguments; empty when nothing is.
  std::string sharing_failure(const Invocation& invocation) const;
  static Tensor grad_of(const CellSource& leaf, const Invocation& invocation);

  Signature signature_;
  std::vector<Word> words_;
  std::vector<int> place_;  // for each word the symbol it gives, or -1
  std::vector<bool> free_;  // words that may be anything
  struct Fact {
    SizeFact fact;
    DimProgram a, b;
  };
  std::vector<SizeSymbol> symbols_;
  std::vector<Fact> facts_;
  struct Captured {
    Tensor tensor;
    std::string name;
    DType dtype;
    Device device;
    IntList sizes, strides;
    bool requires_grad, needs_grad;
    uint32_t hooks;  // autograd::hooks_version
  };
  std::vector<Captured> captured_;
  std::vector<std::pair<IntrusivePtr<HostState>, uint64_t>> states_;
  bool has_unclocked_state_ = false;
  std::vector<GradRead> grads_;
  std::vector<Sharing> sharings_;
  std::vector<GradSharing> grad_sharings_;
  std::vector<const Buffer*> reached_;  // memory of the captured tensors, sorted, where gradients are read
  std::vector<const Buffer*> apart_;  // sorted
  std::string spent_reason_;
  std::atomic<bool> spent_{false};
  mutable std::atomic<uint64_t> geometry_clock_{~uint64_t(0)}, state_clock_{~uint64_t(0)};
};

struct PaddingPlan;  // see padding_plan.h

// A program as recorded, neither built nor run.
struct Trace {
  Graph graph;                 // gives what a call leaves behind, then the gradients of the operands
  std::vector<Value> results;  // the tensors that the function gives back, views followed; empty: undefined
  int64_t gradients = 0;       // how many; the tangents they come from are operands
};

struct CacheEntry {
  CacheEntry(const Signature& signature, std::vector<Word> words, const SizeTable& sizes)
      : guards(signature, std::move(words), sizes), sizes(sizes) {}

  Guards guards;
  SizeTable sizes;              // when a new branch is captured it goes on from here
  std::shared_ptr<Segment> root;
  bool branches = false;        // the tree may grow while other threads walk it
  std::string eager_reason;     // not empty: calls of this kind run eagerly, and why
  bool follow = false;          // the function is called every time
  Question follow_reason;
  bool leaves_break = false;    // see LeavesCross
  std::shared_mutex tree;       // of edges and of the segments by hash
  std::unordered_map<uint64_t, std::shared_ptr<Segment>> by_hash;
  std::unordered_map<uint64_t, int> forms;  // how many segments were built at a place of the program
  Question crowded;                         // the one after which there were too many; kReturn: none
  HostNumbers numbers;
  std::vector<std::shared_ptr<Segment>> segments;                  // in the order of capture
  std::atomic<int64_t> calls{0};
  bool is_stored = false;         // found in the store: the function was never called
  // What keep_apart() was told, for the store.
  std::vector<Tensor> written_captured;
  bool writes_arguments = false;
  // Of a function that is only traced.
  std::shared_ptr<Trace> trace;
  std::shared_ptr<const PaddingPlan> plan;
};

}  // namespace sinter::capture
