#include "sinter/runtime/refusal.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <set>
#include <string_view>
#include <utility>

#include "sinter/base/debug_files.h"
#include "sinter/base/hash.h"
#include "sinter/base/log.h"

namespace sinter::runtime {

namespace {

thread_local bool runs_strictly = false;

struct Planted {
  std::atomic<int> count{0};
  std::mutex mutex;  // guards `parts`
  std::multiset<std::string> parts;
};

Planted& planted() {
  static auto& instance = *new Planted;
  return instance;
}

}  // namespace

Refused::Refused(const std::string& message, std::string kernel, std::string reason, std::string text)
    : Error(message), kernel_(std::move(kernel)), reason_(std::move(reason)), text_(std::move(text)) {}

std::string Refused::first_error() const {
  std::string first;
  for (size_t at = 0; at < reason_.size();) {
    size_t end = std::min(reason_.find('\n', at), reason_.size());
    std::string line = reason_.substr(at, end - at);
    if (line.find("error") != std::string::npos) return line;
    if (first.empty()) first = line;
    at = end + 1;
  }
  return first;
}

StrictScope::StrictScope(bool strict) : before_(runs_strictly) { runs_strictly = before_ || strict; }
StrictScope::~StrictScope() { runs_strictly = before_; }

bool is_strict() {
  if (runs_strictly) return true;
  const char* value = std::getenv("SINTER_STRICT");
  return value && *value && std::string_view(value) != "0";
}

void warn_refused(const Refused& refusal, const std::string& instead) {
  std::string id = hash_hex(refusal.text());
  if (!detail::first_time("refused " + id)) return;
  std::string file = write_debug_file(refusal.kernel() + "_" + id.substr(0, 12), "refused", refusal.text());
  warn(
      "the kernel '{}' is refused: {}\n  {}, which is slower but right. Please report it, with {}. The option {} or "
      "SINTER_STRICT=1 makes it an error.",
      refusal.kernel(), refusal.first_error(), instead,
      file.empty() ? std::string("its text, which SINTER_DEBUG=<directory> writes to a file") : "the file " + file,
      "{\"strict\", 1}");
}

RefuseTexts::RefuseTexts(std::string part) : part_(std::move(part)) {
  std::lock_guard lock(planted().mutex);
  planted().parts.insert(part_);
  ++planted().count;
}

RefuseTexts::~RefuseTexts() {
  std::lock_guard lock(planted().mutex);
  planted().parts.erase(planted().parts.find(part_));
  --planted().count;
}

void refuse_if_planted(const std::string& text, const std::string& kernel) {
  if (planted().count == 0) return;
  std::lock_guard lock(planted().mutex);
  for (auto& part : planted().parts)
    if (text.find(part) != std::string::npos)
      throw Refused(format("the kernel '{}' is refused by a test", kernel), kernel, "error: a test refuses " + part,
                    text);
}

}  // namespace sinter::runtime
