#include "sinter/base/log.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <iterator>
#include <mutex>
#include <set>

#include "sinter/base/host_effects.h"

namespace sinter {

namespace {

constexpr std::string_view kTopics[] = {"graph", "guards",   "recompiles", "breaks", "passes", "fusion",
                                        "code",  "autotune", "cudagraphs", "cache",  "perf",   "check"};
static_assert(std::size(kTopics) == size_t(LogTopic::kCheck) + 1);

constinit std::mutex output_mutex;
bool bar_stands = false;  // guarded by output_mutex

void write_locked(std::string_view text) {
  while (!text.empty()) {
    ssize_t n = ::write(STDERR_FILENO, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    text.remove_prefix(size_t(n));
  }
}

void write_message(std::string_view prefix, std::string_view message) {
  if (message.ends_with('\n')) message.remove_suffix(1);
  std::string lines;
  for (bool more = true; more;) {
    size_t newline = message.find('\n');
    more = newline != message.npos;
    lines.append(prefix).append(message.substr(0, newline)).push_back('\n');
    if (more) message.remove_prefix(newline + 1);
  }
  std::lock_guard lock(output_mutex);
  if (bar_stands) lines.insert(0, "\r\033[K");
  bar_stands = false;
  write_locked(lines);
}

uint32_t parse_topics(std::string_view list) {
  uint32_t mask = 0;
  std::string unknown;
  while (!list.empty()) {
    size_t comma = list.find(',');
    std::string_view name = list.substr(0, comma);
    list.remove_prefix(comma == list.npos ? list.size() : comma + 1);
    while (name.starts_with(' ')) name.remove_prefix(1);
    while (name.ends_with(' ')) name.remove_suffix(1);
    if (name.empty()) continue;
    bool known = false;
    for (size_t i = 0; i < std::size(kTopics); ++i)
      if (kTopics[i] == name) mask |= 1u << i, known = true;
    if (!known) unknown.append(unknown.empty() ? "" : ", ").append(name);
  }
  if (!unknown.empty()) {
    std::string known;
    for (auto topic : kTopics) known.append(known.empty() ? "" : ", ").append(topic);
    warn("SINTER_LOGS: no topic named {}; the topics are {}", unknown, known);
  }
  return mask;
}

}  // namespace

std::string_view to_string(LogTopic topic) { return kTopics[size_t(topic)]; }

void set_logs(std::string_view topics) {
  note_host_change("set_logs()");
  detail::log_mask.store(parse_topics(topics), std::memory_order_relaxed);
}

namespace detail {

uint32_t read_log_mask() {
  // A static, so that two threads that come here first still warn once. set_logs, if it was quicker, wins.
  static const uint32_t from_environment = [] {
    const char* list = std::getenv("SINTER_LOGS");
    return list ? parse_topics(list) : 0;
  }();
  uint32_t expected = kLogsUnread;
  return log_mask.compare_exchange_strong(expected, from_environment) ? from_environment : expected;
}

void write_log(LogTopic topic, const std::string& message) {
  write_message(std::string("[sinter:").append(to_string(topic)).append("] "), message);
}

void write_warning(const std::string& message) { write_message("[sinter] warning: ", message); }

bool first_time(std::string_view key) {
  // Never freed: a warning may come from a static destructor.
  static auto* seen = new std::set<std::string, std::less<>>;
  static constinit std::mutex mutex;
  std::lock_guard lock(mutex);
  return seen->emplace(key).second;
}

void write_bar(const std::string& text, bool stands) {
  std::lock_guard lock(output_mutex);
  write_locked(text);
  bar_stands = stands;
}

}  // namespace detail
}  // namespace sinter
