#pragma once
// The fusion report: what an executable does, kernel by kernel, in bytes and operations, and the memory it needs.
#include <memory>
#include <string>
#include <vector>

#include "sinter/base/api.h"
#include "sinter/engine/profile.h"

namespace sinter SINTER_API {

// A generated kernel at every stage.
struct KernelStages {
  std::string name;
  std::string loops, schedule, code;  // as `sinter show` prints them

  bool operator==(const KernelStages&) const = default;
};

// One of the ways to run a step that tuning timed; the first is the default.
struct TriedCandidate {
  std::string name;
  double seconds = 0;          // by itself; infinite: it cannot run
  double program_seconds = 0;  // of the whole program with it; 0: not tried there

  bool operator==(const TriedCandidate&) const = default;
};

struct KernelReport {
  std::string name;              // "exp_sum_div"; the op's where it stands alone
  std::vector<std::string> ops;  // what it computes, views left out
  // What runs it: "loops" (generated), "gemm" or "gemv" (few rows) or "convolution" (with what is fused behind it),
  // "attention", "opaque" (an op's own code), "copy".
  std::string by;
  std::string where;  // the user's lines: "model.cpp:41-47"
  std::vector<std::string> operands, results;  // "bf16[32, 256]"; "number"
  std::string candidate;                       // what tuning chose in place of the default
  std::vector<TriedCandidate> tried;           // empty: there is one way only, or nothing was tuned
  bool is_chosen(const TriedCandidate& way) const { return candidate.empty() ? &way == &tried[0] : way.name == candidate; }
  std::vector<int> texts;                      // of its generated code, among the plan's; empty: it has none of its own
  Cost cost;
};

// Memory that a plan gives to a value and to what takes it over.
struct ValueReport {
  enum class Place : uint8_t { kArena, kResult, kOutside };
  Place place = Place::kArena;
  std::string type;  // of the first value: "f32[8, 64]"
  int64_t bytes = 0;
  int64_t offset = -1;      // in the arena
  int first = 0, last = 0;  // the kernels between which it is in use, both included
};

struct PlanReport {
  std::string name;
  Device device;
  std::string graph;                  // after the passes, as it was planned
  std::vector<KernelReport> kernels;  // in the order in which they run
  std::vector<KernelStages> texts;      // equal ones once
  std::vector<ValueReport> values;
  int64_t arena_bytes = 0;   // of temporaries
  int64_t live_bytes = 0;    // the largest live set: no arena can be smaller
  int64_t output_bytes = 0;  // results made fresh at each call
  int64_t loose_bytes = 0;   // temporaries outside the arena
  double untuned_seconds = 0, tuned_seconds = 0;  // of the whole program, where tuning compared both; else 0
  int64_t working_bytes = 0; // inputs, outputs and arena together: decides from which cache the floors are told

  // The memory that a call needs beside its inputs.
  int64_t peak_bytes() const { return arena_bytes + output_bytes + loose_bytes; }
  Cost total() const;
  // The least time at this machine's measured bandwidth and peak; the first call in a process measures them.
  double floor_seconds(const KernelReport& kernel) const;
  double floor_seconds() const;
  // By kernel, the bytes in use while it runs: of values in such a place.
  std::vector<int64_t> bytes_in_use(ValueReport::Place place) const;
  std::string text() const;
  std::string json() const;
};

struct Plan;
struct Step;
PlanReport report_of(const Plan& plan);
KernelReport report_of(const Plan& plan, const Step& step);

// Places in source files as short ranges: "model.cpp:41-47, main.cpp:3".
std::string join_places(const std::vector<std::string>& places);
// A number of bytes for people: "18.2 MB".
std::string bytes_text(double bytes);
std::string seconds_text(double seconds);

}  // namespace sinter
