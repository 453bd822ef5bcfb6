#include "sinter/engine/report.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "sinter/base/table.h"
#include "sinter/engine/eager/eager.h"
#include "sinter/engine/executable/plan.h"
#include "sinter/ops/contract.h"
#include "sinter/ops/fused.h"
#include "sinter/runtime/cuda/ceilings.h"

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
      for (auto& node : step.attrs.as<FusedAttrs>().body->nodes()) {
        if (node.op->kind == OpKind::kInput || node.op->kind == OpKind::kScalar || node.op->kind == OpKind::kView) continue;
        out.ops.emplace_back(node.op->name);
        places.push_back(node.where);
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
    if (step.kind == Step::Kind::kWrite) {
      int64_t moved = footprint(geometry(step.target));
      out.cost = {moved, moved, 0};
      if (!step.in_place) out.cost += {footprint(*inputs[0]), footprint(*outputs[0]), 0};
    } else {
      out.cost = cost_of(*step.op, step.attrs, inputs, outputs, step.in_place);
    }
    return out;
  }

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

}  // namespace

KernelReport report_of(const Plan& plan, const Step& step) { return Reader(plan).read(step); }

PlanReport report_of(const Plan& plan) {
  PlanReport out;
  out.name = plan.name;
  out.device = plan.device;
  for (auto& step : plan.steps)
    if (step.kind != Step::Kind::kView) out.kernels.push_back(report_of(plan, step));
  out.arena_bytes = plan.arena_bytes;
  out.live_bytes = plan.live_bytes;
  int64_t inputs = 0;
  for (auto& storage : plan.storages) {
    if (storage.kind == Storage::Kind::kOutput) out.output_bytes += storage.block.bytes;
    if (storage.kind == Storage::Kind::kLoose) out.loose_bytes += storage.block.bytes;
    if (storage.kind == Storage::Kind::kInput) inputs += storage.block.bytes;
  }
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
  return out + "\n";
}

std::string PlanReport::json() const {
  nlohmann::json list = nlohmann::json::array();
  auto costs = [](const Cost& cost, double floor) {
    return nlohmann::json{
        {"read_bytes", cost.read}, {"written_bytes", cost.written}, {"flops", cost.flops}, {"floor_seconds", floor}};
  };
  for (auto& kernel : kernels) {
    auto entry = costs(kernel.cost, floor_seconds(kernel));
    entry.update({{"name", kernel.name}, {"ops", kernel.ops}, {"by", kernel.by}, {"where", kernel.where}});
    list.push_back(entry);
  }
  nlohmann::json memory = {{"arena_bytes", arena_bytes},
                           {"live_bytes", live_bytes},
                           {"output_bytes", output_bytes},
                           {"loose_bytes", loose_bytes}};
  return nlohmann::json{
      {"name", name}, {"kernels", list}, {"total", costs(total(), floor_seconds())}, {"memory", memory}}
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
