#pragma once
// Messages on stderr: topics switched on by SINTER_LOGS=graph,cache (or `set_logs`), and warnings.
// Each message is written whole, its lines never mixed with those of another thread.
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "sinter/base/api.h"
#include "sinter/base/format.h"

namespace sinter SINTER_API {

// What SINTER_LOGS may name, in the order of the names in log.cpp.
enum class LogTopic : uint8_t {
  kGraph,
  kGuards,
  kRecompiles,
  kBreaks,
  kPasses,
  kFusion,
  kCode,
  kAutotune,
  kCudagraphs,
  kCache,
  kPerf,
  kCheck,
};

std::string_view to_string(LogTopic topic);

// Replaces the set of topics: a comma list as in SINTER_LOGS. An unknown name gives one warning that lists the known.
void set_logs(std::string_view topics);

namespace detail {
inline constexpr uint32_t kLogsUnread = 1u << 31;
inline constinit std::atomic<uint32_t> log_mask{kLogsUnread};
uint32_t read_log_mask();
void write_log(LogTopic topic, const std::string& message);
void write_warning(const std::string& message);
bool first_time(std::string_view key);
// Text as it is, under the lock of all messages. A message erases a progress bar that stands on the line.
void write_bar(const std::string& text, bool stands);
}  // namespace detail

// One load once the environment has been read.
inline bool log_enabled(LogTopic topic) {
  uint32_t mask = detail::log_mask.load(std::memory_order_relaxed);
  if (mask & detail::kLogsUnread) [[unlikely]]
    mask = detail::read_log_mask();
  return mask >> unsigned(topic) & 1;
}

// `[sinter:cache] message`; each line of a longer message carries the prefix. Nothing is formatted for a topic that is
// off.
template <class... Args>
void log(LogTopic topic, std::string_view pattern, const Args&... args) {
  if (log_enabled(topic)) [[unlikely]]
    detail::write_log(topic, format(pattern, args...));
}

// `[sinter] warning: message`.
template <class... Args>
void warn(std::string_view pattern, const Args&... args) {
  detail::write_warning(format(pattern, args...));
}

// Only the first warning of each key in this process is shown.
template <class... Args>
void warn_once(std::string_view key, std::string_view pattern, const Args&... args) {
  if (detail::first_time(key)) detail::write_warning(format(pattern, args...));
}

}  // namespace sinter
