#include "sinter/capture/capture.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <sstream>

#include "sinter/autograd/autograd.h"
#include "sinter/base/hash.h"
#include "sinter/base/log.h"
#include "sinter/base/stage_times.h"
#include "sinter/capture/compiler.h"
#include "sinter/ops/creation.h"

namespace sinter::capture {

namespace {

thread_local Capture* current_capture = nullptr;

class CurrentScope {
 public:
  explicit CurrentScope(Capture* capture) : previous_(current_capture) { current_capture = capture; }
  ~CurrentScope() { current_capture = previous_; }

 private:
  Capture* previous_;
};

// Puts traced stand-ins in the place of the arguments.
class Replace final : public LeafVisitor {
 public:
  Replace(Recorder& recorder, const Invocation& invocation, const CacheEntry& entry, const SizeTable& sizes)
      : recorder_(recorder), invocation_(invocation), words_(entry.guards.words()), signature_(entry.guards.signature()) {
    for (auto& symbol : sizes.symbols()) {
      if (symbol.word < 0) continue;
      symbols_[symbol.word] = Dim::symbol(symbol.name);
      for (int word : symbol.same) symbols_[word] = Dim::symbol(symbol.name);
    }
    for (size_t i = 0; i < words_.size(); ++i)
      if (words_[i].kind == Word::Kind::kProperties) first_word_.push_back(int(i));
  }

  void tensor(Tensor& tensor) override {
    size_t index = tensors_++;
    if (!tensor.defined()) return;
    const Tensor& real = *invocation_.tensors[index];
    const std::string& name = words_[size_t(first_word_[index])].name;
    bool needs_grad = signature_[size_t(first_word_[index])] >> 40 & 1;
    if (int leader = overlap_leader(invocation_, index); leader >= 0) {
      if (needs_grad) throw CannotCapture{"arguments that need gradients overlap in memory"};
      auto& memory = memories_[leader];
      if (!memory) memory = recorder_.add_memory(leader, meet_memory(leader));
      tensor = recorder_.add_overlapping(memory, real);
      return;
    }
    for (size_t i = 0; i < index; ++i)
      if (invocation_.tensors[i]->defined() && invocation_.tensors[i]->impl().buffer == real.impl().buffer) {
        tensor = recorder_.same_argument(real);
        return;
      }
    Type type{.dtype = real.dtype(), .shape = {}, .device = real.device()};
    for (int64_t d = 0; d < real.dim(); ++d) {
      auto found = symbols_.find(first_word_[index] + 2 + int(d));
      type.shape.push_back(found != symbols_.end() ? found->second : Dim(real.impl().sizes[size_t(d)]));
    }
    tensor = recorder_.add_argument(int(index), real, type, name, needs_grad);
  }

  void size(Dim& size) override {
    auto found = symbols_.find(next_word());
    if (found != symbols_.end()) size = found->second;
  }
  void number(Scalar& number) override {
    next_word();
    int word = next_word();
    number = recorder_.add_number(word - int(kHeaderWords), number.dtype(), words_[size_t(word)].name);
  }
  void exact(LeafKind, size_t words, const std::string&) override { word_ += int(words); }
  void enter(const std::string&) override {}
  void leave() override {}

 private:
  int next_word() { return int(kHeaderWords) + word_++; }

  Tensor meet_memory(int leader) {
    const Tensor& argument = *invocation_.tensors[size_t(leader)];
    int64_t elements = int64_t(argument.impl().buffer->bytes()) / item_size(argument.dtype());
    return make_view_of_all(argument, elements);
  }
  static Tensor make_view_of_all(const Tensor& argument, int64_t elements) {
    TracerScope none(nullptr);
    return make_view(argument, {elements}, {1}, 0);
  }

  Recorder& recorder_;
  const Invocation& invocation_;
  const std::vector<Word>& words_;
  const Signature& signature_;
  std::map<int, Dim> symbols_;
  std::vector<int> first_word_;
  std::map<int, IntrusivePtr<Storage>> memories_;
  size_t tensors_ = 0;
  int word_ = 0;
};

// Takes the tensors, sizes and numbers out of the result, which then is the prototype of later ones.
class TakeResults final : public LeafVisitor {
 public:
  void tensor(Tensor& t) override { tensors.push_back(std::exchange(t, Tensor())); }
  void size(Dim& d) override { sizes.push_back(std::exchange(d, Dim(0))); }
  void number(Scalar& s) override {
    numbers.push_back(-1);
    if (!s.is_lazy()) return;
    numbers.back() = 0;
    lazy.push_back(TensorArg(s).tensor());
    s = Scalar(0);
  }
  void exact(LeafKind, size_t, const std::string&) override {}
  void enter(const std::string&) override {}
  void leave() override {}

  TensorList tensors, lazy;
  std::vector<Dim> sizes;
  std::vector<int> numbers;  // for each Scalar: -1 as in the prototype, else its place among the tensors
};

// A detached tensor is made anew by every trace: what counts is the memory that it looks at.
bool same_look(const TensorImpl& a, const TensorImpl& b) {
  return a.buffer == b.buffer && a.offset == b.offset && a.sizes == b.sizes && a.strides == b.strides;
}

bool same_bytes(const TensorImpl& a, const TensorImpl& b) {
  return a.sizes == b.sizes && a.dtype == b.dtype && a.buffer->bytes() == b.buffer->bytes() &&
         std::memcmp(a.buffer->data(), b.buffer->data(), size_t(a.numel * item_size(a.dtype))) == 0;
}

}  // namespace

Capture::Capture(Function& function, CacheEntry& entry, CallState& call, Invocation& invocation, Purpose purpose)
    : function_(function), entry_(entry), call_(call), invocation_(invocation), purpose_(purpose), sizes_(entry.sizes),
      recorder_(*this, sizes_), call_number_(entry.numbers.begin_call()) {
  // The values of this call, not of the one that was captured first.
  for (size_t place = 0; place < sizes_.symbols().size(); ++place) {
    auto& symbol = sizes_.symbols()[place];
    // What the data decides is not known before the program comes there again.
    if (symbol.word < 0)
      sizes_.bind(symbol.name, -1);
    else if (place < call.sizes.size())
      sizes_.bind(symbol.name, call.sizes[place]);
  }
}

Capture* Capture::current() { return current_capture; }

void Capture::run() {
  StageTimer timer(CompileStage::kCapture);
  CurrentScope current(this);
  TracerScope tracing(&recorder_);
  const Generator::Draw first_draw = default_generator().position();
  HostEffects::Scope effects(this);
  // For a capture that begins anew: what was held on to may have been computed, with draws.
  auto rewind = [&] {
    recorder_.release(true);
    undo_effects();
    HostEffects::Scope none(nullptr);
    default_generator().set_position(first_draw);
  };
  try {
    trace();
  } catch (const CannotCapture& reason) {
    if (ran_something_)
      recorder_.release(true);
    else
      rewind();
    for (auto& sharing : recorder_.sharings()) entry_.guards.add_sharing(sharing);
    for (auto& sharing : recorder_.grad_sharings()) entry_.guards.add_grad_sharing(sharing);
    if (ran_something_ || !known_.empty() || (purpose_ != Purpose::kGrow && purpose_ != Purpose::kPrepare))
      throw_error(format("compile: {} cannot be captured: {}. Part of it has run already; keep it eager with "
                         "compiler::disable()", function_.name(), reason.reason));
    throw;
  } catch (const LeavesCross&) {
    rewind();
    throw;
  } catch (const NeedsAnswer&) {
    // Built only now that the function's own tensors are gone: what is left outlives it.
    Draft& draft = recorder_.unfinished();
    recorder_.compute_held();
    auto made = make(recorder_, draft);
    link(made);
    first_ = last_ = made;
    settle_outlived(true);
    undo_effects();
    throw;
  } catch (...) {
    bool may_run = purpose_ == Purpose::kGrow || purpose_ == Purpose::kFollow;
    bool is_new = purpose_ == Purpose::kGrow || purpose_ == Purpose::kPrepare;
    if (is_new && !ran_something_ && known_.empty() && sizes_.has_argument_sizes()) {
      rewind();
      throw FailsWithSymbols{};
    }
    // What was written before an exception persists as in eager, gradients too.
    if (may_run && next_known_ >= known_.size() && recorder_.flush()) set_grads(*last_, call_);
    recorder_.release(true);
    if (!may_run) undo_effects();
    try {
      throw;
    } catch (const OutOfMemoryError&) {
      throw;
    } catch (const Error& error) {
      std::string note = symbols_in(error.message());
      if (note.empty()) throw;
      throw error.with(note);
    }
  }
  settle_outlived(false);
  if (!runs()) undo_effects();
}

// Calls the function on traced tensors; its results are gone when it returns.
void Capture::trace() {
  Replace replace(recorder_, invocation_, entry_, sizes_);
  bool records = autograd::grad_enabled();
  auto box = invocation_.invoke(replace);
  if (autograd::grad_enabled() != records) call_every_time("set_grad_enabled()");
  prototype_ = box;
  TakeResults taken;
  if (box) box->visit(taken);
  // Lazy numbers travel as tensors behind the others.
  int next = int(taken.tensors.size());
  for (auto& number : taken.numbers)
    if (number >= 0) number = next++;
  for (auto& lazy : taken.lazy) taken.tensors.push_back(lazy.clone());
  taken.lazy.clear();
  if (purpose_ == Purpose::kTrace) results_ = taken.tensors;
  recorder_.finish(taken.tensors, std::move(taken.sizes), std::move(taken.numbers), box);
  results_.clear();
}

// Host code that holds on to tensors may do otherwise when it is called again: what was captured fits this call alone. Those
// made of the arguments, which a captured program would not set again, are left without a value: using one is an Error.
void Capture::settle_outlived(bool unfinished) {
  auto [real, lost] = recorder_.release(unfinished);
  if (entry_.follow) return;
  if (!once_.empty()) entry_.guards.spend(once_ + " changes the host once, so that what was captured with it fits one call");
  if (real.empty() && lost.empty()) return;
  entry_.guards.spend(lost.empty()
                          ? format("host code keeps a tensor made at {}, so that what was captured with it fits one call", real)
                          : format("host code keeps a tensor made at {}, which depends on the arguments (return it, or write "
                                   "it into a tensor made outside with copy_)", lost));
}

// The host's numbers as this call has them.
void Capture::take_numbers(const Draft& draft) {
  call_.numbers.clear();
  for (auto& number : draft.segment.host_numbers) call_.numbers.push_back(number.value);
  call_.read_numbers = recorder_.read_numbers();
}

std::vector<Tensor> Capture::compute(Draft& draft, std::vector<Value> values) {
  auto outputs = draft.graph.outputs();
  draft.graph.set_outputs(std::move(values));
  draft.segment.places = sizes_.places();
  take_numbers(draft);
  auto tensors = evaluate(draft.segment, draft.graph, sizes_, call_);
  draft.graph.set_outputs(std::move(outputs));
  return tensors;
}

Tensor Capture::bind(int cell, const CellSource& source) {
  TracerScope none(nullptr);
  if (source.kind != CellSource::Kind::kMade) call_.cell(cell) = capture::bind(call_, source);
  return call_.cell(cell);
}

void Capture::check_breaks(const Draft& draft) const {
  auto& question = draft.segment.question;
  if (question.kind == Question::Kind::kReturn) return;
  std::string advice = advice_for(question);
  check(!function_.options().fullgraph, "compile: {} asked for fullgraph, but {} at {} breaks the graph. {}",
        function_.name(), question.what, question.where, advice);
  if (log_enabled(LogTopic::kBreaks))
    log(LogTopic::kBreaks, "{}: {} at {} ends segment {}. {}", function_.name(), question.what, question.where,
        recorder_.segments(), advice);
}

// " (s0 is argument 0.size(1) = 5)" for every symbol that a message names.
std::string Capture::symbols_in(const std::string& message) const {
  std::string note;
  for (auto& symbol : sizes_.symbols()) {
    auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
    for (size_t at = 0; (at = message.find(symbol.name, at)) != std::string::npos; at += symbol.name.size()) {
      size_t end = at + symbol.name.size();
      if ((at > 0 && is_word(message[at - 1])) || (end < message.size() && is_word(message[end]))) continue;
      note += format("{}{} is {}", note.empty() ? "; here " : ", ", symbol.name, symbol.source);
      if (symbol.value >= 0) note += format(" = {}", symbol.value);
      break;
    }
  }
  return note;
}

// Tensors that the function reaches by itself must be the ones of the record.
void Capture::compare_tensors(const Draft& draft, const Segment& recorded) const {
  auto& bound = draft.segment.bound;
  for (size_t i = 0; i < bound.size() && i < recorded.bound.size(); ++i) {
    auto &[cell, now] = bound[i];
    auto& then = recorded.bound[i].second;
    bool same = true;
    if (now.kind == CellSource::Kind::kCaptured) same = same_look(now.tensor.impl(), then.tensor.impl());
    if (now.kind == CellSource::Kind::kConstant) same = same_bytes(now.tensor.impl(), then.tensor.impl());
    if (same) continue;
    std::string where = "?";
    for (auto& node : draft.graph.nodes()) {
      bool uses = std::any_of(node.inputs.begin(), node.inputs.end(), [&](const Value& value) {
        auto& inputs = draft.graph.inputs();
        for (size_t j = 0; j < inputs.size(); ++j)
          if (draft.segment.inputs[j].kind == InputSource::Kind::kCell && draft.segment.inputs[j].index == cell &&
              inputs[j] == value)
            return true;
        return false;
      });
      if (!uses) continue;
      where = node.where;
      break;
    }
    throw_error(format("compile: {} uses another tensor at {} than when it was captured: state that the guards cannot see "
                       "has changed. Pass the tensor as an argument, write to it in place, or call compiler::reset()",
                       function_.name(), where));
  }
}

// The first line that differs from the recorded trace.
void Capture::compare(const Draft& draft, const Segment& recorded) const {
  if (draft.segment.hash == recorded.hash) return compare_tensors(draft, recorded);
  std::string now_text = draft.graph.text(true);
  std::istringstream now(now_text), then(recorded.text);
  std::string a, b;
  while (true) {
    bool has_a = bool(std::getline(now, a)), has_b = bool(std::getline(then, b));
    if (!has_a && !has_b) break;
    if (!has_a) a = "(nothing)";
    if (!has_b) b = "(nothing)";
    if (a != b) {
      // A number has no line of its own: that of the op which takes it.
      std::string user = a;
      while (user.find("  // ") == std::string::npos && std::getline(now, user)) continue;
      size_t at = user.find("  // ");
      throw_error(format("compile: {} does not trace to the same program twice{}: state that the guards cannot see has "
                         "changed, or it is not deterministic. Before:\n  {}\nnow:\n  {}\nPass what changes as an argument, "
                         "or call compiler::reset()",
                         function_.name(), at == std::string::npos ? "" : " (" + user.substr(at + 5) + ")", b, a));
    }
    a.clear();
    b.clear();
  }
  throw_error(format("compile: {} does not end in the same way twice ({} at {})", function_.name(),
                     draft.segment.question.what, draft.segment.question.where));
}

std::shared_ptr<Segment> Capture::make(Recorder& recorder, Draft& draft, bool op_by_op) {
  check_breaks(draft);
  int number = int(entry_.segments.size());
  std::string label = format("{}.{}", function_.name(), number);
  auto segment = build(recorder, draft, sizes_, function_.options(), label, op_by_op ? nullptr : function_.tasks_, op_by_op);
  segment->number = number;
  return segment;
}

// A new segment; beyond the recompile limit one that runs op by op, in this call alone.
std::shared_ptr<Segment> Capture::make_within_limit(Recorder& recorder, Draft& draft) {
  int& forms = entry_.forms[place_];
  int64_t limit = int_option(function_.options(), "recompile_limit");
  if (forms < limit) {
    auto segment = make(recorder, draft);
    link(segment);
    ++forms;
    return segment;
  }
  Question asked = last_ ? last_->question : entry_.follow_reason;
  if (entry_.crowded.kind == Question::Kind::kReturn) {
    std::unique_lock lock(entry_.tree);
    entry_.crowded = asked;
    warn("{}: what follows {} at {} was compiled in {} forms, which is the recompile_limit; other forms of it run op by op "
         "from now on. Numbers fed into ops as operands are values and need no new form, sizes and other attributes do: {}, "
         "or raise the limit", function_.name(), asked.what, asked.where, forms, advice_for(asked));
  }
  must_follow(asked);
  return make(recorder, draft, true);
}

// Hangs the segment under the one before it.
void Capture::link(const std::shared_ptr<Segment>& segment) {
  std::unique_lock lock(entry_.tree);
  for (auto& [cell, source] : segment->bound)
    if (source.kind == CellSource::Kind::kCaptured) entry_.guards.add_captured(source.tensor, source.name);
  // A function that is called every time sees for itself which gradients there are.
  for (auto& read : segment->grad_reads)
    if (!entry_.follow && read.leaf.kind != CellSource::Kind::kMade) entry_.guards.add_grad(read);
  for (auto& [state, fingerprint] : states_) entry_.guards.add_state(state, fingerprint);
  for (auto& sharing : recorder_.sharings()) entry_.guards.add_sharing(sharing);
  for (auto& sharing : recorder_.grad_sharings()) entry_.guards.add_grad_sharing(sharing);
  entry_.written_captured = recorder_.written_captured();
  entry_.writes_arguments = recorder_.writes_arguments();
  entry_.guards.keep_apart(entry_.written_captured, entry_.writes_arguments);
  entry_.sizes = sizes_;
  entry_.guards.complete(sizes_);
  // Never once others have the entry, who ask it without a lock.
  if (!entry_.branches && (entry_.follow || segment->question.kind != Question::Kind::kReturn)) entry_.branches = true;
  if (entry_.follow) segment->actions.clear();  // the function itself acts
  auto& known = entry_.by_hash[hash_mix(segment->hash, segment->paths)];
  if (!known || known->run != segment->run) {
    entry_.segments.push_back(segment);
    known = segment;
  }
  if (last_ && purpose_ == Purpose::kGrow && !recorder_.is_failing()) last_->edges[last_answer_] = segment;
}

// A segment that computes the same as the draft does, of this branch or another; null where there is none.
std::shared_ptr<Segment> Capture::find(const Draft& draft) const {
  std::shared_lock lock(entry_.tree);
  auto found = entry_.by_hash.find(hash_mix(draft.segment.hash, draft.segment.paths));
  if (found == entry_.by_hash.end()) return nullptr;
  // The order of a result's dimensions in memory is no part of the hash: it may follow from the sizes of a call.
  for (size_t i = 0; i < draft.segment.outputs.size(); ++i)
    if (draft.segment.outputs[i].order != found->second->outputs[i].order) return nullptr;
  // What was frozen is part of the kernels.
  auto& now = draft.segment.bound;
  auto& then = found->second->bound;  // the gradient may have met more
  if (int_option(function_.options(), "freeze"))
    for (size_t i = 0; i < now.size(); ++i)
      if (now[i].second.kind == CellSource::Kind::kCaptured &&
          !same_look(now[i].second.tensor.impl(), then[i].second.tensor.impl()))
        return nullptr;
  return found->second;
}

// The segment as a branch of its own: the same executables on the tensors and numbers of the draft.
std::shared_ptr<Segment> branch_of(const Segment& segment, const Draft& draft) {
  auto branch = std::make_shared<Segment>(segment);
  branch->edges.clear();
  for (size_t i = 0; i < draft.segment.bound.size(); ++i) branch->bound[i].second.tensor = draft.segment.bound[i].second.tensor;
  branch->host_numbers = draft.segment.host_numbers;
  branch->question = draft.segment.question;
  branch->grad_reads = draft.segment.grad_reads;
  branch->prototype = draft.segment.prototype;
  return branch;
}

// The segment has been run, and this is the answer.
void Capture::go_on(const std::shared_ptr<Segment>& segment, int64_t answer) {
  if (!first_) first_ = segment;
  last_ = segment;
  last_answer_ = answer;
  auto& question = segment->question;
  place_ = hash_mix(place_, hash_text(question.where, uint64_t(question.kind)));
  if (question.kind != Question::Kind::kNumber) place_ = hash_mix(place_, uint64_t(answer));
}

int64_t Capture::finish(Recorder& recorder, Draft& draft) {
  if (next_known_ < known_.size()) {
    auto& [segment, answer] = known_[next_known_++];
    compare(draft, *segment);
    go_on(segment, answer);
    return answer;
  }
  if (purpose_ == Purpose::kTrace) {
    first_ = last_ = keep(recorder, draft);
    return 0;
  }
  if (purpose_ == Purpose::kPrepare) {
    if (draft.segment.question.kind != Question::Kind::kReturn) throw NeedsAnswer{};
    auto made = make(recorder, draft);
    link(made);
    first_ = last_ = made;
    return 0;
  }
  take_numbers(draft);
  std::shared_ptr<Segment> segment = find(draft);
  if (!segment) {
    SINTER_INTERNAL_ASSERT(purpose_ != Purpose::kCompare, "a segment was not recorded");
    std::unique_lock building(function_.state_->capturing);
    // Another thread may have built it meanwhile.
    segment = find(draft);
    if (!segment) segment = make_within_limit(recorder, draft);
  } else if (purpose_ == Purpose::kGrow && !entry_.follow) {
    segment = branch_of(*segment, draft);
    link(segment);
  }
  int64_t answer;
  {
    StageTimer kernels(CompileStage::kNone);
    TracerScope none(nullptr);
    answer = capture::run(*segment, call_, true);
    // At the end it is the caller's to do, once nothing can fail any more.
    if (segment->question.kind != Question::Kind::kReturn) set_grads(*segment, call_);
  }
  ran_something_ = ran_something_ || segment->run;
  go_on(segment, answer);
  return answer;
}

bool Capture::is_value(uint64_t point, const Scalar& number) {
  if (next_known_ < known_.size()) {
    auto& values = known_[next_known_].first->host_numbers;
    return std::any_of(values.begin(), values.end(), [&](const HostNumber& value) { return value.point == point; });
  }
  // Before the host has read anything, its numbers are those of the arguments, on which there are guards.
  bool has_read = purpose_ == Purpose::kFollow || (purpose_ == Purpose::kGrow && last_);
  return has_read && entry_.numbers.is_value(call_number_, place_, point, number);
}

bool Capture::leaves_break() const { return entry_.leaves_break; }

void Capture::leaf_crosses() const {
  // Where no segment may end, this one's question says so.
  if (function_.options().fullgraph || purpose_ == Purpose::kTrace || entry_.leaves_break) return;
  if (!known_.empty() || purpose_ == Purpose::kCompare)
    throw CannotCapture{"a tensor made inside requires a gradient before a break, where none did when it was captured"};
  throw LeavesCross{};
}

void Capture::must_follow(const Question& question) {
  check(purpose_ != Purpose::kCompare || entry_.follow, "compile: {} at {} was not there when the function was captured",
        question.what, question.where);
  if (entry_.follow || purpose_ == Purpose::kCompare) return;
  std::unique_lock lock(entry_.tree);
  entry_.follow = true;
  entry_.follow_reason = question;
  log(LogTopic::kBreaks, "{} is called every time from now on, because of {} at {}", function_.name(), question.what,
      question.where);
}

void Capture::add_state(const IntrusivePtr<HostState>& state) {
  if (std::ranges::find(unforeseen_, state) != unforeseen_.end())
    return call_every_time(format("reading {} that the function has changed", state->name()).c_str());
  for (auto& [known, fingerprint] : states_)
    if (known == state) return;
  states_.emplace_back(state, state->fingerprint().value_or(0));
}

}  // namespace sinter::capture
