#include "sinter/engine/report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "sinter/base/table.h"
#include "sinter/engine/cost.h"
#include "sinter/engine/device/device_engine.h"
#include "sinter/engine/eager/eager.h"
#include "sinter/engine/executable/plan.h"
#include "sinter/engine/kernel_stages.h"
#include "sinter/ops/contract.h"
#include "sinter/ops/fused.h"
#include "sinter/runtime/device_runtime.h"
#include "sinter/tensor/tracer.h"

namespace sinter {

namespace {

class Reader {
 public:
  explicit Reader(const Plan& plan) : plan_(plan) {}

  KernelReport read(const Step& step) const {
    KernelReport out;
    std::vector<const TensorImpl*> inputs, outputs;
    for (auto& o : step.inputs) inputs.push_back(o.slot < 0 ? nullptr : &geometry(o.slot));
    for (int r : step.results) outputs.push_back(&geometry(r));
    if (step.kind == Step::Kind::kFused) {
      out.name = step.code->name();
      std::vector<std::string> places;
      for (auto* op : ops_in(*step.attrs.as<FusedAttrs>().body)) {
        out.ops.emplace_back(op->op->name);
        places.push_back(op->where);
      }
      out.where = join_places(places);
      // A body that comes from the store has no lines; its kernel has one.
      if (out.where.empty()) out.where = join_places({step.where});
    } else {
      out.name = step.op->name;
      out.ops = {out.name};
      out.where = join_places({step.where});
    }
    out.by = made_by(step);
    out.candidate = step.candidate;
    out.tried = step.tried;
    for (auto* input : inputs) out.operands.push_back(input ? type_text(*input) : "number");
    for (auto* output : outputs) out.results.push_back(type_text(*output));
    if (step.kind == Step::Kind::kWrite) {
      int64_t moved = footprint(geometry(step.target));
      out.cost = {moved, moved, 0};
      if (!step.in_place) out.cost += {footprint(*inputs[0]), footprint(*outputs[0]), 0};
    } else {
      out.cost = cost_of(*step.op, step.attrs, inputs, outputs, step.in_place);
    }
    return out;
  }

  static std::string type_text(const TensorImpl& impl) { return format("{}{}", impl.dtype, impl.sizes); }

 private:
  const TensorImpl& geometry(int slot) const { return plan_.slots[size_t(slot)].geometry.impl(); }

  std::string made_by(const Step& step) const {
    switch (step.kind) {
      case Step::Kind::kFused:
        return step.code->made_by();
      case Step::Kind::kOpaque:
        return "opaque";
      case Step::Kind::kWrite:
      case Step::Kind::kCopy:
        return "copy";
      default:
        break;
    }
    const char* name = eager::template_name(*step.op, plan_.device);
    return name ? name : "loops";
  }

  const Plan& plan_;
};

std::string list_text(const std::vector<std::string>& names) {
  std::string out;
  for (auto& name : names) out += (out.empty() ? "" : ", ") + name;
  return out;
}

// The kernels that were generated for a step: those of its prologue, of its siblings and of what follows its products are
// apart. None where an op's eager kernel or a library runs it. Texts are made anew: what runs keeps none of them.
std::vector<KernelStages> stages_of(const Plan& plan, const Step& step) {
  auto geometry = [&](int slot) { return &plan.slots[size_t(slot)].geometry.impl(); };
  std::vector<const TensorImpl*> inputs, outputs;
  for (auto& operand : step.inputs) inputs.push_back(operand.slot < 0 ? nullptr : geometry(operand.slot));
  for (int result : step.results) outputs.push_back(geometry(result));
  TracerScope none(nullptr);
  KernelList kernels;
  engine_of(plan.device).make_step(step.attrs.as<FusedAttrs>(), inputs, outputs);  // nothing is compiled
  return kernels.take();
}

// The texts of each kernel, which equal kernels share.
void add_texts(const Plan& plan, PlanReport& report) {
  std::map<const CompiledStep*, std::vector<int>> known;
  size_t kernel = 0;
  for (auto& step : plan.steps) {
    if (step.kind == Step::Kind::kView) continue;
    auto& its = report.kernels[kernel++].texts;
    if (!step.code) continue;
    auto [place, fresh] = known.try_emplace(step.code.get());
    if (fresh)
      for (auto& text : stages_of(plan, step)) {
        auto at = std::find(report.texts.begin(), report.texts.end(), text);
        place->second.push_back(int(at - report.texts.begin()));
        if (at == report.texts.end()) report.texts.push_back(std::move(text));
      }
    its = place->second;
  }
}

// Lifetimes counted in kernels.
std::vector<ValueReport> values_of(const Plan& plan) {
  struct Use {
    int first = -1, last = -1, slot = -1;
  };
  std::vector<Use> uses(plan.storages.size());
  int kernel = 0;
  auto use = [&](int slot) {
    if (slot < 0) return;
    Use& u = uses[size_t(plan.slots[size_t(slot)].storage)];
    if (u.first < 0) u = {kernel, kernel, slot};
    u.last = kernel;
  };
  for (auto& step : plan.steps) {
    if (step.kind == Step::Kind::kView) continue;
    for (int result : step.results) use(result);
    for (auto& input : step.inputs) use(input.slot);
    use(step.target);
    ++kernel;
  }
  // What is handed out lives on.
  for (auto& output : plan.outputs)
    if (output.slot >= 0) uses[size_t(plan.slots[size_t(output.slot)].storage)].last = kernel - 1;
  std::vector<ValueReport> out;
  for (size_t s = 0; s < plan.storages.size(); ++s) {
    auto& storage = plan.storages[s];
    if (storage.kind == Storage::Kind::kInput || uses[s].first < 0) continue;
    bool in_arena = storage.kind == Storage::Kind::kArena;
    out.push_back({.place = in_arena                                 ? ValueReport::Place::kArena
                            : storage.kind == Storage::Kind::kOutput ? ValueReport::Place::kResult
                                                                     : ValueReport::Place::kOutside,
                   .type = Reader::type_text(plan.slots[size_t(uses[s].slot)].geometry.impl()),
                   .bytes = storage.block.bytes,
                   .offset = in_arena ? storage.block.offset : -1,
                   .first = uses[s].first,
                   .last = uses[s].last});
  }
  return out;
}

const char* place_name(ValueReport::Place place) {
  return place == ValueReport::Place::kArena ? "arena" : place == ValueReport::Place::kResult ? "result" : "outside";
}

}  // namespace

KernelReport report_of(const Plan& plan, const Step& step) { return Reader(plan).read(step); }

PlanReport report_of(const Plan& plan) {
  PlanReport out;
  out.name = plan.name;
  out.device = plan.device;
  for (auto& step : plan.steps)
    if (step.kind != Step::Kind::kView) out.kernels.push_back(report_of(plan, step));
  add_texts(plan, out);
  out.values = values_of(plan);
  out.arena_bytes = plan.arena_bytes;
  out.live_bytes = plan.live_bytes;
  int64_t inputs = 0;
  for (auto& storage : plan.storages) {
    if (storage.kind == Storage::Kind::kOutput) out.output_bytes += storage.block.bytes;
    if (storage.kind == Storage::Kind::kLoose) out.loose_bytes += storage.block.bytes;
    if (storage.kind == Storage::Kind::kInput) inputs += storage.block.bytes;
  }
  out.untuned_seconds = plan.untuned_seconds;
  out.tuned_seconds = plan.tuned_seconds;
  out.working_bytes = inputs + out.output_bytes + out.loose_bytes + out.arena_bytes;
  return out;
}

Cost PlanReport::total() const {
  Cost out;
  for (auto& kernel : kernels) out += kernel.cost;
  return out;
}

double PlanReport::floor_seconds(const KernelReport& kernel) const {
  return runtime::ceilings_of(device).seconds(double(kernel.cost.read), double(kernel.cost.written), kernel.cost.flops,
                                              double(working_bytes));
}

double PlanReport::floor_seconds() const {
  double out = 0;
  for (auto& kernel : kernels) out += floor_seconds(kernel);
  return out;
}

std::vector<int64_t> PlanReport::bytes_in_use(ValueReport::Place place) const {
  std::vector<int64_t> out(kernels.size());
  for (auto& value : values)
    for (int k = value.first; value.place == place && k <= value.last; ++k) out[size_t(k)] += value.bytes;
  return out;
}

namespace {

// Kernels of which tuning tried several candidates; equal ones once.
std::string tuning_text(const PlanReport& report) {
  std::string out;
  std::vector<const KernelReport*> told;
  for (auto& kernel : report.kernels) {
    if (kernel.tried.empty()) continue;
    if (std::any_of(told.begin(), told.end(), [&](auto* k) { return k->name == kernel.name && k->tried == kernel.tried; })) continue;
    told.push_back(&kernel);
    out += format("{}{}:", out.empty() ? "tuned: " : "       ", kernel.name);
    for (auto& way : kernel.tried) {
      out += format("\n         {} {}, {}", kernel.is_chosen(way) ? "->" : "  ", way.name,
                    std::isfinite(way.seconds) ? seconds_text(way.seconds) : "cannot run");
      if (way.program_seconds > 0) out += format(", the program with it {}", seconds_text(way.program_seconds));
    }
    out += "\n";
  }
  if (report.untuned_seconds > 0)
    out += format("       the program by defaults {}, as tuned {}\n", seconds_text(report.untuned_seconds), seconds_text(report.tuned_seconds));
  return out;
}

}  // namespace

std::string PlanReport::text() const {
  Table table({"kernel", "ops", "by", "where", "read", "written", "MFLOP", "floor"});
  auto row = [&](const std::string& kernel, const std::string& ops, const std::string& by, const std::string& where,
                 const Cost& cost, double floor) {
    table.row(kernel, ops, by, where, bytes_text(double(cost.read)), bytes_text(double(cost.written)),
              cost.flops > 0 ? fixed(cost.flops / 1e6, 1) : "-", seconds_text(floor));
  };
  for (auto& kernel : kernels)
    row(kernel.name, list_text(kernel.ops), kernel.by, kernel.where, kernel.cost, floor_seconds(kernel));
  size_t ops = 0;
  for (auto& kernel : kernels) ops += kernel.ops.size();
  row(format("total: {}", kernels.size()), format("{} ops", ops), "", "", total(), floor_seconds());
  std::string out = table.text();
  out += format("memory: {} of arena for a largest live set of {}", bytes_text(double(arena_bytes)),
                bytes_text(double(live_bytes)));
  if (live_bytes > 0) out += format(" ({}x)", fixed(double(arena_bytes) / double(live_bytes), 2));
  out += format(", {} of results", bytes_text(double(output_bytes)));
  if (loose_bytes > 0) out += format(", {} outside the arena", bytes_text(double(loose_bytes)));
  return out + format(": {} beside the inputs\n", bytes_text(double(peak_bytes()))) + tuning_text(*this);
}

std::string PlanReport::json() const {
  // Null where nothing was timed.
  auto time_json = [](double seconds) { return seconds > 0 && std::isfinite(seconds) ? nlohmann::json(seconds) : nlohmann::json(); };
  nlohmann::json list = nlohmann::json::array();
  auto costs = [](const Cost& cost, double floor) {
    return nlohmann::json{
        {"read_bytes", cost.read}, {"written_bytes", cost.written}, {"flops", cost.flops}, {"floor_seconds", floor}};
  };
  for (auto& kernel : kernels) {
    auto entry = costs(kernel.cost, floor_seconds(kernel));
    nlohmann::json tried = nlohmann::json::array();
    for (auto& way : kernel.tried)
      tried.push_back({{"name", way.name}, {"seconds", time_json(way.seconds)}, {"program_seconds", time_json(way.program_seconds)}});
    entry.update({{"name", kernel.name},
                  {"ops", kernel.ops},
                  {"by", kernel.by},
                  {"where", kernel.where},
                  {"operands", kernel.operands},
                  {"results", kernel.results},
                  {"candidate", kernel.candidate},
                  {"tried", tried},
                  {"texts", kernel.texts}});
    list.push_back(entry);
  }
  nlohmann::json code = nlohmann::json::array(), lives = nlohmann::json::array();
  for (auto& text : texts)
    code.push_back({{"name", text.name}, {"loops", text.loops}, {"schedule", text.schedule}, {"code", text.code}});
  for (auto& value : values)
    lives.push_back({{"place", place_name(value.place)},
                     {"type", value.type},
                     {"bytes", value.bytes},
                     {"offset", value.offset},
                     {"first", value.first},
                     {"last", value.last}});
  nlohmann::json memory = {{"arena_bytes", arena_bytes},
                           {"live_bytes", live_bytes},
                           {"output_bytes", output_bytes},
                           {"loose_bytes", loose_bytes},
                           {"peak_bytes", peak_bytes()},
                           {"values", lives}};
  return nlohmann::json{{"name", name},    {"device", to_string(device)},
                        {"untuned_seconds", time_json(untuned_seconds)}, {"tuned_seconds", time_json(tuned_seconds)},
                        {"graph", graph},  {"kernels", list},
                        {"texts", code},   {"total", costs(total(), floor_seconds())},
                        {"memory", memory}}
      .dump();
}

std::string join_places(const std::vector<std::string>& places) {
  std::vector<std::string> files;
  std::map<std::string, std::pair<int, int>> ranges;
  for (auto& place : places) {
    size_t colon = place.rfind(':');
    if (colon == std::string::npos || colon + 1 == place.size()) continue;
    size_t slash = place.rfind('/', colon);
    std::string file = place.substr(slash == std::string::npos ? 0 : slash + 1, colon - (slash + 1));
    int line = std::atoi(place.c_str() + colon + 1);
    auto [it, fresh] = ranges.try_emplace(file, line, line);
    if (fresh) files.push_back(file);
    it->second = {std::min(it->second.first, line), std::max(it->second.second, line)};
  }
  std::string out;
  for (auto& file : files) {
    auto [first, last] = ranges[file];
    out += (out.empty() ? "" : ", ") + format("{}:{}", file, first) + (last > first ? format("-{}", last) : "");
  }
  return out;
}

std::string bytes_text(double bytes) {
  if (bytes < 1000) return format("{} B", int64_t(bytes));
  const char* units[] = {"kB", "MB", "GB", "TB"};
  size_t i = 0;
  for (bytes /= 1000; bytes >= 999.95 && i + 1 < std::size(units); ++i) bytes /= 1000;
  return fixed(bytes, 1) + " " + units[i];
}

std::string seconds_text(double seconds) {
  if (seconds < 1e-3) return fixed(seconds * 1e6, 2) + " us";
  return seconds < 1 ? fixed(seconds * 1e3, 2) + " ms" : fixed(seconds, 2) + " s";
}

}  // namespace sinter
