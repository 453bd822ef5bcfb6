#include "sinter/engine/profile.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "sinter/base/error.h"
#include "sinter/base/table.h"

namespace sinter {

namespace {

std::atomic<OpProfile*> g_current{nullptr};

}  // namespace

OpProfile::OpProfile() {
  OpProfile* none = nullptr;
  check(g_current.compare_exchange_strong(none, this), "OpProfile: another profile is being collected");
}

OpProfile::~OpProfile() { g_current.store(nullptr); }

OpProfile* OpProfile::current() { return g_current.load(std::memory_order_relaxed); }

void OpProfile::add(std::string_view op, double seconds, int64_t bytes) {
  std::lock_guard lock(mutex_);
  auto it = rows_.find(op);
  if (it == rows_.end()) it = rows_.emplace(std::string(op), Row()).first;
  ++it->second.calls;
  it->second.seconds += seconds;
  it->second.bytes += bytes;
}

std::map<std::string, OpProfile::Row, std::less<>> OpProfile::rows() const {
  std::lock_guard lock(mutex_);
  return rows_;
}

std::string OpProfile::table() const {
  auto all = rows();
  std::vector<std::pair<std::string, Row>> sorted(all.begin(), all.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](auto& a, auto& b) { return a.second.seconds > b.second.seconds; });
  Table table({"op", "calls", "time (us)", "us/call", "MB moved", "GB/s"});
  Row total;
  auto add_row = [&](const std::string& name, const Row& r) {
    table.row(name, r.calls, fixed(r.seconds * 1e6, 1), fixed(r.seconds * 1e6 / double(r.calls), 2),
              fixed(double(r.bytes) / 1e6, 3), fixed(double(r.bytes) / 1e9 / r.seconds, 2));
  };
  for (auto& [name, row] : sorted) {
    add_row(name, row);
    total.calls += row.calls;
    total.seconds += row.seconds;
    total.bytes += row.bytes;
  }
  if (total.calls) add_row("total", total);
  return table.text();
}

}  // namespace sinter
