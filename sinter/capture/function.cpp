#include "sinter/capture/function.h"

#include <algorithm>

#include "sinter/base/log.h"
#include "sinter/capture/capture.h"
#include "sinter/capture/captures.h"
#include "sinter/capture/explain_html.h"
#include "sinter/capture/stored_program.h"

namespace sinter::capture {

namespace {

std::atomic<Stance> current_stance{Stance::kDefault};

struct Registry {
  std::mutex mutex;
  std::vector<std::weak_ptr<Function>> functions;
  int unnamed = 0;
  static Registry& instance() {
    static auto* registry = new Registry;
    return *registry;
  }
};

const SizeMarks::Mark* mark_of(const Tensor& tensor, int dim) {
  auto& marks = tensor.impl().marks;
  if (!marks) return nullptr;
  for (auto& mark : marks->marks)
    if (mark.dim == dim) return &mark;
  return nullptr;
}

}  // namespace

void set_stance(Stance stance) {
  note_host_change("set_stance()");
  current_stance = stance;
}
Stance stance() { return current_stance; }

bool is_tracing() { return Tracer::current() != nullptr; }

void run_untraced(FunctionRef<void()> host_code) {
  TracerScope none(nullptr);
  host_code();
}

Function::Function(CompileOptions options, std::string name)
    : options_(std::move(options)),
      name_(std::move(name)),
      tasks_(int_option(options_, "background") ? BackgroundTasks::make(tunes(options_.mode)) : nullptr),
      captures_(std::make_shared<Captures>()),
      state_(std::make_unique<State>()) {}

Function::~Function() = default;

bool Function::is_ready() const { return !tasks_ || tasks_->idle(); }

void Function::wait() const {
  if (tasks_) tasks_->wait();
}

std::shared_ptr<Function> Function::make(CompileOptions options, const std::string& where) {
  options = checked(std::move(options));
  auto& registry = Registry::instance();
  std::lock_guard lock(registry.mutex);
  std::string name = options.name;
  if (name.empty()) {
    size_t slash = where.find_last_of('/');
    name = "f" + std::to_string(registry.unnamed++) + "@" + (slash == std::string::npos ? where : where.substr(slash + 1));
  }
  std::shared_ptr<Function> function(new Function(std::move(options), std::move(name)));
  std::erase_if(registry.functions, [](auto& f) { return f.expired(); });
  registry.functions.push_back(function);
  return function;
}

std::vector<std::shared_ptr<Function>> all_functions() {
  auto& registry = Registry::instance();
  std::lock_guard lock(registry.mutex);
  std::vector<std::shared_ptr<Function>> out;
  for (auto& weak : registry.functions)
    if (auto function = weak.lock()) out.push_back(function);
  return out;
}

std::vector<std::shared_ptr<CacheEntry>> Function::entries() const {
  std::lock_guard lock(state_->list);
  return *state_->entries;
}

void Function::reset() {
  std::lock_guard capturing(state_->capturing);
  std::lock_guard lock(state_->list);
  state_->entries = std::make_shared<const Entries>();
  captures_->clear();
  state_->gave_up = false;
}

std::shared_ptr<CacheEntry> Function::find(const Signature& signature, Invocation& invocation, SmallVector<int64_t, 8>& sizes) const {
  std::shared_ptr<const Entries> entries;
  {
    std::lock_guard lock(state_->list);
    entries = state_->entries;
  }
  for (auto& entry : *entries) {
    std::shared_lock<std::shared_mutex> lock;
    if (entry->branches) lock = std::shared_lock(entry->tree);
    if (entry->guards.match(signature, invocation, sizes)) return entry;
  }
  return nullptr;
}

bool Function::call(Invocation& invocation, Results& results) {
  if (stance() == Stance::kForceEager) return false;
  Signature signature;
  sign(invocation, signature);
  SmallVector<int64_t, 8> sizes;
  auto entry = find(signature, invocation, sizes);
  if (!entry) {
    if (state_->gave_up.load(std::memory_order_relaxed)) return false;
    std::lock_guard capturing(state_->capturing);
    // Another thread may have captured it meanwhile.
    entry = find(signature, invocation, sizes);
    if (!entry) return capture_new(signature, invocation, {.results = &results});
  }
  int64_t every = options_.options.empty() ? 0 : int_option(options_, "recheck");
  if (every > 0 && entry->calls.fetch_add(1, std::memory_order_relaxed) % every == every - 1) recheck(entry, invocation);
  return run_entry(entry, invocation, std::move(sizes), results);
}

void Function::prepare(Invocation& invocation, std::vector<std::function<void()>>& work) {
  if (stance() == Stance::kForceEager) return;
  Signature signature;
  sign(invocation, signature);
  SmallVector<int64_t, 8> sizes;
  std::lock_guard capturing(state_->capturing);
  auto entry = find(signature, invocation, sizes);
  if (!entry) {
    // A program that leaves tensors behind is good for one call: the second capture finds them made.
    for (int captures = 0; captures < 2 && !state_->gave_up.load(std::memory_order_relaxed); ++captures) {
      std::vector<std::function<void()>> own;
      if (!capture_new(signature, invocation, {.work = &own})) return;
      if (entries().back()->guards.is_spent()) continue;
      for (auto& task : own) work.push_back(std::move(task));
      return;
    }
    return;
  }
  if (!entry->eager_reason.empty() || !entry->root) return;
  CallState call(invocation);
  call.sizes = std::move(sizes);
  add_preparations(*entry->root, call, false, work);
}

bool Function::run_entry(const std::shared_ptr<CacheEntry>& entry, Invocation& invocation, SmallVector<int64_t, 8> sizes, Results& results) {
  if (!entry->eager_reason.empty()) return false;
  CallState call(invocation);
  call.sizes = std::move(sizes);
  if (!entry->branches) [[likely]] {
    run(*entry->root, call);
    set_grads(*entry->root, call);
    collect_results(*entry->root, call, results);
    return true;
  }
  bool follow = false;
  std::vector<std::pair<std::shared_ptr<Segment>, int64_t>> known;
  std::shared_ptr<Segment> segment, last;
  std::shared_ptr<const void> prototype;
  size_t segments = 0;
  {
    std::shared_lock lock(entry->tree);
    segment = entry->root;
    follow = entry->follow;
    segments = entry->segments.size();
  }
  while (segment && !follow) {
    int64_t answer = run(*segment, call);
    last = segment;
    if (segment->question.kind == Question::Kind::kReturn) break;
    known.emplace_back(segment, answer);
    last = nullptr;
    std::shared_lock lock(entry->tree);
    auto edge = segment->edges.find(answer);
    segment = edge == segment->edges.end() ? nullptr : edge->second;
  }
  if (follow) {
    CaptureClock clock;
    auto call_it = [&] {
      Capture capture(*this, *entry, call, invocation, Capture::Purpose::kFollow);
      capture.run();
      last = capture.last();
      prototype = capture.prototype();
    };
    try {
      call_it();
    } catch (const LeavesCross&) {
      {
        std::unique_lock lock(entry->tree);
        entry->leaves_break = true;
      }
      call_it();
    }
    std::shared_lock lock(entry->tree);
    bool grew = entry->segments.size() > segments;
    Question reason = entry->follow_reason;
    lock.unlock();
    if (grew) note(clock.stop({.kind = CaptureRecord::Kind::kBranch, .entry = entry, .asked = reason}));
  } else if (!last) {
    // An answer that was never seen: the function is called again, and what has been run is known.
    std::lock_guard capturing(state_->capturing);
    CaptureClock clock;
    auto& asked = *known.back().first;
    const Question question = asked.question;
    if (asked.question.kind == Question::Kind::kNumber && int64_t(asked.edges.size()) >= int_option(options_, "edge_limit")) {
      std::unique_lock lock(entry->tree);
      entry->follow = true;
      entry->follow_reason = asked.question;
      log(LogTopic::kBreaks, "{} is called every time from now on: {} at {} has had {} different answers", name_,
          asked.question.what, asked.question.where, asked.edges.size());
    }
    Capture capture(*this, *entry, call, invocation, Capture::Purpose::kGrow);
    capture.set_known(std::move(known));
    capture.run();
    last = capture.last();
    prototype = capture.prototype();
    note(clock.stop({.kind = CaptureRecord::Kind::kBranch, .entry = entry, .asked = question}));
  }
  set_grads(*last, call);
  collect_results(*last, call, results);
  // A segment found by its hash has the tensors of this call, not its numbers.
  if (prototype) results.prototype = std::move(prototype);
  return true;
}

// Which sizes are symbolic in a new capture.
SizeTable Function::choose_sizes(const Signature& signature, const std::vector<Word>& words, const Invocation& invocation,
                                 std::span<const TracedDim> traced) {
  SizeTable table;
  auto earlier = entries();
  std::map<int64_t, int> by_value;
  std::map<int, int> by_group;
  bool overlaps = has_overlaps(invocation);
  for (size_t i = 0; i < words.size(); ++i) {
    auto asked = std::find_if(traced.begin(), traced.end(), [&](const TracedDim& d) {
      return words[i].kind == Word::Kind::kSize && d.tensor == words[i].tensor && d.dim == words[i].dim;
    });
    if (asked != traced.end()) {
      auto [place, fresh] = by_group.try_emplace(asked->group, int(table.symbols().size()));
      if (fresh)
        table.add(words[i].name, signature[i], 2, kAnySize, int(i));
      else
        table.share(place->second, int(i));
      continue;
    }
    if (words[i].kind != Word::Kind::kSize || overlaps) continue;
    int64_t value = signature[i], low = 2, high = kAnySize;
    const SizeMarks::Mark* mark =
        words[i].tensor >= 0 ? mark_of(*invocation.tensors[size_t(words[i].tensor)], words[i].dim) : nullptr;
    bool dynamic = options_.dynamic == Dynamic::kTrue;
    if (mark) {
      dynamic = mark->dynamic;
      low = std::max<int64_t>(mark->low, 2);
      high = mark->high;
    } else if (options_.dynamic == Dynamic::kAuto) {
      for (auto& entry : earlier) {
        auto& other = entry->guards.signature();
        // Only calls that differ in sizes alone tell which sizes vary.
        if (other.size() != signature.size() || entry->guards.words().size() != words.size()) continue;
        bool alike = true;
        for (size_t j = 0; j < words.size() && alike; ++j)
          alike = words[j].kind == Word::Kind::kSize || words[j].kind == Word::Kind::kNumber || other[j] == signature[j];
        dynamic = dynamic || (alike && (other[i] != value || entry->guards.is_symbolic(i)));
      }
    }
    // 0 and 1 broadcast and vanish: they are programs of their own.
    if (!dynamic || value < low || value > high) continue;
    auto shared = by_value.find(value);
    if (shared != by_value.end() && !mark) {
      table.share(shared->second, int(i));
    } else {
      int place = int(table.symbols().size());
      table.add(words[i].name, value, low, high, int(i));
      if (!mark) by_value[value] = place;
    }
  }
  return table;
}

std::vector<Guard> Function::failures(const Signature& signature, const std::vector<Word>& words,
                                      const Invocation& invocation) const {
  std::vector<Guard> out;
  for (auto& entry : entries()) out.push_back(entry->guards.failure(signature, words, invocation));
  return out;
}

void Function::note(CaptureRecord record) {
  captures_->add(std::move(record));
  write_debug_page(*this);
}

void Function::add(const std::shared_ptr<CacheEntry>& entry) {
  std::lock_guard lock(state_->list);
  auto grown = std::make_shared<Entries>(*state_->entries);
  if (!entry->guards.is_spent()) std::erase_if(*grown, [](auto& old) { return old->guards.is_spent(); });
  grown->push_back(entry);
  state_->entries = std::move(grown);
}

bool Function::capture_new(const Signature& signature, Invocation& invocation, const Wanted& wanted) {
  auto earlier = entries();
  std::vector<Word> words = describe(invocation);
  bool is_again = std::any_of(earlier.begin(), earlier.end(), [](auto& entry) { return !entry->guards.is_spent(); });
  if (is_again || (!earlier.empty() && int64_t(earlier.size()) >= int_option(options_, "recompile_limit"))) {
    std::string failure = earlier.back()->guards.failure(signature, words, invocation).text;
    check(stance() != Stance::kFailOnRecompile, "compile: {} would be captured again: {}", name_, failure);
    if (stance() == Stance::kEagerOnRecompile) return false;
    if (int64_t(earlier.size()) >= int_option(options_, "recompile_limit")) {
      state_->gave_up = true;
      note(CaptureClock().stop({.kind = CaptureRecord::Kind::kLimit,
                                .entry = earlier.back(),
                                .failed = failures(signature, words, invocation)}));
      warn("{} was captured {} times, which is its recompile_limit; calls that fit none of these run eagerly from now on. "
           "The guard that failed last: {}. Pass what varies as a Dim or a Scalar, mark_dynamic() it, or raise the limit",
           name_, earlier.size(), failure);
      return false;
    }
  }
  std::vector<Guard> failed = failures(signature, words, invocation);
  if (!failed.empty() && log_enabled(LogTopic::kRecompiles)) {
    std::string text;
    for (size_t i = 0; i < failed.size(); ++i) text += format("\n  program {}: {}", i, failed[i].text);
    log(LogTopic::kRecompiles, "{} is captured again, since no program fits:{}", name_, text);
  }
  CaptureClock clock;
  bool captured = make_program(signature, words, invocation, wanted);
  CaptureRecord record = clock.stop({.kind = failed.empty() ? CaptureRecord::Kind::kFirst : CaptureRecord::Kind::kAgain,
                                     .entry = entries().back(),
                                     .failed = std::move(failed)});
  if (log_enabled(LogTopic::kPerf)) log(LogTopic::kPerf, "{}: {}", name_, record.stages.text());
  note(std::move(record));
  return captured;
}

// From the store, or by calling the function.
bool Function::make_program(const Signature& signature, const std::vector<Word>& words, Invocation& invocation,
                            const Wanted& wanted) {
  SizeTable sizes = choose_sizes(signature, words, invocation);
  // In the background the graph as captured serves until another is compiled: it is needed.
  std::shared_ptr<const Fingerprint> fingerprint = options_.fingerprint && !tasks_ ? options_.fingerprint() : nullptr;
  std::string key;
  if (fingerprint) {
    key = stored_key(*fingerprint, options_, signature, words, sizes, invocation);
    if (auto entry = load_program(key, *fingerprint, options_, name_, signature, words, invocation)) {
      add(entry);
      CallState call(invocation);
      for (auto& symbol : entry->sizes.symbols()) call.sizes.push_back(symbol.value);
      if (!wanted.work) return run_entry(entry, invocation, std::move(call.sizes), *wanted.results);
      add_preparations(*entry->root, call, false, *wanted.work);
      return true;
    }
  }
  try {
    bool captured = capture_with(sizes, signature, words, invocation, wanted);
    if (captured && fingerprint && !entries().back()->guards.is_spent()) save_program(key, *fingerprint, *entries().back(), invocation, name_);
    return captured;
  } catch (const FailsWithSymbols&) {
    return capture_with({}, signature, words, invocation, wanted);
  }
}

bool Function::capture_with(const SizeTable& sizes, const Signature& signature, const std::vector<Word>& words, Invocation& invocation,
                            const Wanted& wanted, bool leaves_break) {
  auto entry = std::make_shared<CacheEntry>(signature, words, sizes);
  entry->leaves_break = leaves_break;
  CallState call(invocation);
  for (auto& symbol : sizes.symbols()) call.sizes.push_back(symbol.value);
  std::shared_ptr<Segment> last;
  try {
    Capture capture(*this, *entry, call, invocation, wanted.work ? Capture::Purpose::kPrepare : Capture::Purpose::kGrow);
    try {
      capture.run();
    } catch (const NeedsAnswer&) {
    }
    entry->root = capture.first();
    last = capture.last();
  } catch (const LeavesCross&) {
    return capture_with(sizes, signature, words, invocation, wanted, true);
  } catch (const CannotCapture& reason) {
    check(!options_.fullgraph, "compile: {} asked for fullgraph, but cannot be captured: {}", name_, reason.reason);
    entry->eager_reason = reason.reason;
    warn("{} runs eagerly on arguments of this kind: {}", name_, reason.reason);
  }
  if (log_enabled(LogTopic::kGuards))
    for (auto& guard : entry->guards.list())
      log(LogTopic::kGuards, "{}: {}{}", name_, guard.text, guard.where.empty() ? "" : " (" + guard.where + ")");
  add(entry);
  if (!last) return false;
  if (wanted.work) {
    add_preparations(*last, call, true, *wanted.work);
    return true;
  }
  set_grads(*last, call);
  collect_results(*last, call, *wanted.results);
  return true;
}

// Traces again without running anything, and compares.
void Function::recheck(const std::shared_ptr<CacheEntry>& entry, Invocation& invocation) {
  if (entry->branches || !entry->eager_reason.empty()) return;
  std::lock_guard capturing(state_->capturing);
  CallState call(invocation);
  for (auto& symbol : entry->sizes.symbols())
    if (symbol.word >= 0) call.sizes.push_back(symbol.value);
  for (auto& [cell, source] : entry->root->bound) call.cell(cell) = bind(call, source);
  Capture capture(*this, *entry, call, invocation, Capture::Purpose::kCompare);
  capture.set_known({{entry->root, 0}});
  capture.run();
}

}  // namespace sinter::capture
