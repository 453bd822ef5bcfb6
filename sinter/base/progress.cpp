#include "sinter/base/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "sinter/base/format.h"
#include "sinter/base/log.h"

namespace sinter {

namespace {

constexpr auto kFirst = std::chrono::milliseconds(200), kInterval = std::chrono::milliseconds(100);

// Three digits and a decimal prefix: 950, 1.23k, 45.6M.
std::string short_number(double value) {
  const char* prefixes[] = {"", "k", "M", "G", "T", "P", "E"};
  size_t i = 0;
  for (; value >= 999.5 && i + 1 < std::size(prefixes); ++i) value /= 1000;
  char text[32];
  bool whole = i == 0 && value == double(int64_t(value));
  std::snprintf(text, sizeof text, "%.*f%s", whole || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2, value, prefixes[i]);
  return text;
}

std::string clock_text(double seconds) {
  auto total = int64_t(std::min(seconds, 359999.0) + 0.5);
  char text[48];
  if (total >= 3600)
    std::snprintf(text, sizeof text, "%d:%02d:%02d", int(total / 3600), int(total / 60 % 60), int(total % 60));
  else
    std::snprintf(text, sizeof text, "%d:%02d", int(total / 60), int(total % 60));
  return text;
}

int terminal_width() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

std::string progress_line(std::string_view label, int64_t done, int64_t total, std::string_view unit, double seconds,
                          int width, std::string_view note) {
  double rate = seconds > 0 ? double(done) / seconds : 0;
  bool complete = total > 0 && done >= total;
  std::string left, right;
  left.append(label);
  if (total > 0) {
    right = format("{}%  {}/{}{}", std::min<int64_t>(100, int64_t(100.0 * double(done) / double(total))),
                   short_number(double(done)), short_number(double(total)), unit);
  } else {
    right = format("{}{}", short_number(double(done)), unit);
  }
  if (rate > 0) right += format("  {}{}/s", short_number(rate), unit);
  if (total <= 0 || complete) {
    right += format("  {}", clock_text(seconds));
  } else if (rate > 0) {
    right += format("  {} left", clock_text(double(total - done) / rate));
  }
  if (!note.empty()) right += format("  {}", note);
  std::string line = left + "  ";
  int room = std::min(30, width - int(line.size() + right.size()) - 4);
  if (total > 0 && room >= 5) {
    int full = int(double(room) * double(std::min(done, total)) / double(total));
    line += format("[{}{}]  ", std::string(size_t(full), '#'), std::string(size_t(room - full), '.'));
  }
  line += right;
  if (int(line.size()) > width) line.resize(size_t(std::max(width, 0)));
  return line;
}

namespace {
thread_local bool silent = false;
}

Progress::Silence::Silence() : before_(silent) { silent = true; }
Progress::Silence::~Silence() { silent = before_; }

Progress::Progress(std::string label, int64_t total, std::string unit)
    : label_(std::move(label)),
      unit_(std::move(unit)),
      total_(total),
      terminal_(!silent && isatty(STDERR_FILENO) == 1),
      start_(Clock::now()),
      due_(kFirst) {}

Progress::~Progress() {
  if (drawn_) draw(true);
}

void Progress::advance(int64_t n) {
  done_.fetch_add(n, std::memory_order_relaxed);
  if (!terminal_ || Clock::now() - start_ < due_.load(std::memory_order_relaxed)) return;
  if (std::unique_lock lock(drawing_, std::try_to_lock); lock) draw(false);
}

void Progress::note(std::string text) {
  std::lock_guard lock(drawing_);
  note_ = std::move(text);
}

void Progress::clear() {
  std::lock_guard lock(drawing_);
  if (drawn_) detail::write_bar("\r\033[K", false);
}

void Progress::draw(bool last) {
  auto elapsed = Clock::now() - start_;
  due_.store(elapsed + kInterval, std::memory_order_relaxed);
  drawn_ = true;
  double seconds = std::chrono::duration<double>(elapsed).count();
  // The last column stays free: some terminals wrap when it is filled.
  std::string line = progress_line(label_, done(), total_, unit_, seconds, terminal_width() - 1, note_);
  detail::write_bar("\r" + line + "\033[K" + (last ? "\n" : ""), !last);
}

}  // namespace sinter
