#include "sinter/engine/profile_timer.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "sinter/base/error.h"
#include "sinter/base/stage_times.h"
#include "sinter/base/table.h"
#include "sinter/engine/cost.h"
#include "sinter/engine/report.h"
#include "sinter/runtime/device_runtime.h"

namespace sinter {

namespace {

using Clock = std::chrono::steady_clock;

// What is kept call by call; rows go on counting.
constexpr size_t kMostEvents = 1 << 20, kMostEagerCalls = 1 << 16;
// Compiling less than this shows nowhere.
constexpr double kShortCompile = 1e-6;

EagerCall::Ref ref_of(const TensorArg& arg) {
  if (arg.is_scalar()) {
    Scalar s = arg.scalar();
    return {nullptr, nullptr, 0, {s.is_floating() ? kFloat32 : kInt64, {}, {}, true}, s};
  }
  auto& t = arg.tensor().impl();
  return {&t, t.buffer.get(), t.offset, {t.dtype, Shape(t.sizes), t.device, false}, 0};
}

std::string rate(double per_second) { return per_second > 0 ? fixed(per_second / 1e9, per_second < 1e10 ? 2 : 1) : "-"; }

}  // namespace

Profile::Profile() : state_(std::make_unique<State>()) {
  Profile* none = nullptr;
  check(current_.compare_exchange_strong(none, this), "Profile: another profile is being collected");
}

Profile::Profile(FunctionRef<void()> work) : Profile() {
  work();
  stop();
}

Profile::~Profile() { stop(); }

void Profile::stop() {
  Profile* self = this;
  current_.compare_exchange_strong(self, nullptr);
}

int Profile::State::thread_number() {
  return threads.try_emplace(std::this_thread::get_id(), int(threads.size())).first->second;
}

int Profile::State::row_of(const KernelRow& row) {
  std::string key = row.name + "\n" + row.where + "\n" + row.program;
  auto [it, fresh] = row_index.try_emplace(std::move(key), int(rows.size()));
  if (fresh) rows.push_back(row);
  return it->second;
}

void Profile::KernelRow::add(double taken, const Cost& moved) {
  best = calls == 0 ? taken : std::min(best, taken);
  ++calls;
  seconds += taken;
  cost += moved;
}

void Profile::State::keep(const Event& e, double compiling) {
  compile_seconds += compiling;
  if (events.size() >= kMostEvents) {
    ++left_out;
    return;
  }
  events.push_back(e);
  if (compiling > kShortCompile)
    events.push_back({Event::Kind::kCompile, e.index, e.thread, e.begin, std::min(compiling, e.seconds)});
}

// --- recording -------------------------------------------------------------------------------------------------------

Profile::Timer::Timer(Profile& profile)
    : profile_(*profile.state_), begin_(Clock::now()), compiling_(stage_seconds_of_this_thread()) {}

// Called under the lock, once.
Profile::Event Profile::Timer::event(Event::Kind kind) {
  auto since = [&](Clock::time_point t) { return std::chrono::duration<double>(t - profile_.start).count(); };
  Event out{.kind = kind, .thread = profile_.thread_number(), .begin = since(begin_)};
  out.seconds = since(end_) - out.begin;
  return out;
}

void Profile::Timer::eager(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs,
                           std::span<const Tensor> outputs) {
  end_ = Clock::now();
  double compiling = stage_seconds_of_this_thread() - compiling_;
  auto* where = UserPosition::current();
  KernelRow row{.name = std::string(op.name), .ops = std::string(op.name), .where = {}, .program = {}};
  if (where) row.where = to_string(*where);
  if (!outputs.empty()) row.device = outputs[0].device();
  EagerCall call{.op = &op, .attrs = attrs, .inputs = {}, .outputs = {}, .cost = {}};
  std::vector<const TensorImpl*> from, to;
  for (auto& arg : inputs) {
    call.inputs.push_back(ref_of(arg));
    from.push_back(arg.is_scalar() ? nullptr : &arg.tensor().impl());
  }
  for (auto& t : outputs) {
    call.outputs.push_back(ref_of(t));
    to.push_back(&t.impl());
  }
  if (op.kind != OpKind::kView) call.cost = cost_of(op, attrs, from, to);

  std::lock_guard lock(profile_.mutex);
  Event e = event(Event::Kind::kKernel);
  call.row = e.index = profile_.row_of(row);
  call.thread = e.thread;
  call.begin = e.begin;
  call.end = e.begin + e.seconds;
  call.seconds = std::max(e.seconds - compiling, 0.0);
  profile_.rows[size_t(e.index)].add(call.seconds, call.cost);
  profile_.keep(e, compiling);
  if (profile_.eager.size() < kMostEagerCalls) profile_.eager.push_back(std::move(call));
}

void Profile::Timer::kernel(const void* key, FunctionRef<KernelRow()> describe, std::optional<double> seconds) {
  end_ = Clock::now();
  double compiling = stage_seconds_of_this_thread() - compiling_;
  std::lock_guard lock(profile_.mutex);
  auto known = profile_.kernel_index.find(key);
  if (known == profile_.kernel_index.end()) {
    KernelRow row = describe();
    Cost once = row.cost;
    row.cost = {};
    known = profile_.kernel_index.try_emplace(key, profile_.row_of(row), once).first;
  }
  Event e = event(Event::Kind::kKernel);
  e.index = known->second.first;
  if (seconds) e.seconds = *seconds;
  profile_.rows[size_t(e.index)].add(seconds ? *seconds : std::max(e.seconds - compiling, 0.0), known->second.second);
  profile_.keep(e, compiling);
}

void Profile::Timer::program(const std::string& name) {
  end_ = Clock::now();
  std::lock_guard lock(profile_.mutex);
  Event e = event(Event::Kind::kProgram);
  auto& names = profile_.programs;
  auto it = std::find(names.begin(), names.end(), name);
  e.index = int(it - names.begin());
  if (it == names.end()) names.push_back(name);
  profile_.keep(e, 0);
}

// --- reading ---------------------------------------------------------------------------------------------------------

std::map<std::string, Profile::Row, std::less<>> Profile::rows() const {
  std::lock_guard lock(state_->mutex);
  std::map<std::string, Row, std::less<>> out;
  for (auto& kernel : state_->rows) {
    Row& row = out[kernel.name];
    row.calls += kernel.calls;
    row.seconds += kernel.seconds;
    row.bytes += kernel.cost.bytes();
  }
  return out;
}

std::vector<Profile::KernelRow> Profile::kernels() const {
  std::vector<KernelRow> out;
  {
    std::lock_guard lock(state_->mutex);
    out = state_->rows;
  }
  std::stable_sort(out.begin(), out.end(), [](auto& a, auto& b) { return a.seconds > b.seconds; });
  return out;
}

std::vector<Profile::Event> Profile::events() const {
  std::lock_guard lock(state_->mutex);
  return state_->events;
}

double Profile::compile_seconds() const {
  std::lock_guard lock(state_->mutex);
  return state_->compile_seconds;
}

std::string Profile::table(size_t most) const {
  auto all = kernels();
  KernelRow total{.name = "total", .ops = {}, .where = {}, .program = {}}, rest = total;
  double floors = 0;
  // Of all calls together; the cache that decides is that of one call.
  auto floor = [&](const KernelRow& r) {
    return runtime::ceilings_of(r.device).seconds(double(r.cost.read), double(r.cost.written), r.cost.flops,
                            double(r.cost.bytes()) / double(std::max<int64_t>(r.calls, 1)));
  };
  for (auto& row : all) {
    total.calls += row.calls;
    total.seconds += row.seconds;
    total.cost += row.cost;
    floors += floor(row);
  }
  Table table({"kernel", "where", "calls", "total ms", "mean us", "best us", "share", "MB moved", "GB/s", "GFLOP/s", "of ceiling"});
  auto add = [&](const std::string& name, const KernelRow& r, double least) {
    double seconds = std::max(r.seconds, 1e-12);
    table.row(name, r.where.substr(r.where.rfind('/') + 1), r.calls,
              fixed(r.seconds * 1e3, 3), fixed(r.seconds * 1e6 / double(std::max<int64_t>(r.calls, 1)), 2),
              r.best > 0 ? fixed(r.best * 1e6, 2) : "-",
              fixed(100 * r.seconds / std::max(total.seconds, 1e-12), 0) + "%", fixed(double(r.cost.bytes()) / 1e6, 3),
              rate(double(r.cost.bytes()) / seconds), rate(r.cost.flops / seconds),
              r.cost.bytes() ? fixed(100 * least / seconds, 0) + "%" : "-");
  };
  double rest_floor = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    if (i < most) {
      add((all[i].program.empty() ? "" : all[i].program + ": ") + all[i].name, all[i], floor(all[i]));
      continue;
    }
    rest.calls += all[i].calls;
    rest.seconds += all[i].seconds;
    rest.cost += all[i].cost;
    rest_floor += floor(all[i]);
  }
  if (rest.calls) add(format("{} others", all.size() - most), rest, rest_floor);
  if (total.calls) add("total", total, floors);
  std::string out = table.text();
  if (double compiling = compile_seconds(); compiling > kShortCompile)
    out += format("compiling kernels took {} more\n", seconds_text(compiling));
  std::map<std::string, Device> others;
  bool host = all.empty();
  for (auto& row : all) row.device.is_cpu() ? void(host = true) : void(others.emplace(to_string(row.device), row.device));
  if (host) out += "ceilings: " + runtime::measured_ceilings().text() + "\n";
  for (auto& [name, device] : others) out += format("ceilings of {}: {}\n", name, runtime::ceilings_of(device).text());
  return out;
}

std::string Profile::chrome_trace() const {
  using nlohmann::json;
  std::lock_guard lock(state_->mutex);
  json list = json::array();
  for (auto& [id, number] : state_->threads)
    list.push_back({{"ph", "M"}, {"pid", 1}, {"tid", number}, {"name", "thread_name"},
                    {"args", {{"name", format("thread {}", number)}}}});
  // Whole nanoseconds: what was inside stays inside when it is rounded.
  auto microseconds = [](double seconds) { return double(int64_t(seconds * 1e9)) / 1e3; };
  for (auto& e : state_->events) {
    double begin = microseconds(e.begin);
    json event = {{"ph", "X"}, {"pid", 1}, {"tid", e.thread}, {"ts", begin},
                  {"dur", microseconds(e.begin + e.seconds) - begin}};
    if (e.kind == Event::Kind::kProgram) {
      event["name"] = state_->programs[size_t(e.index)];
      event["cat"] = "program";
    } else {
      auto& row = state_->rows[size_t(e.index)];
      bool compile = e.kind == Event::Kind::kCompile;
      event["name"] = compile ? "compile " + row.name : row.name;
      event["cat"] = compile ? "compile" : row.program.empty() ? "eager" : "kernel";
      double calls = double(std::max<int64_t>(row.calls, 1));
      event["args"] = {{"ops", row.ops},
                       {"where", row.where},
                       {"bytes", double(row.cost.bytes()) / calls},
                       {"flops", row.cost.flops / calls}};
    }
    list.push_back(std::move(event));
  }
  return json{{"displayTimeUnit", "ns"}, {"traceEvents", std::move(list)}, {"otherData", {{"left_out", state_->left_out}}}}.dump();
}

void Profile::write_chrome_trace(const std::string& path) const {
  std::ofstream file(path, std::ios::binary);
  file << chrome_trace();
  file.close();
  check(bool(file), "Profile: {} cannot be written", path);
}

}  // namespace sinter
