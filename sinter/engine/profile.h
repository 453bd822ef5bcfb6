#pragma once
// A record of the eager ops that ran: how often, how long, how many bytes of tensors they touched.
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace sinter {

// While alive, collects every op run by any thread. One at a time.
class OpProfile {
 public:
  struct Row {
    int64_t calls = 0;
    double seconds = 0;
    int64_t bytes = 0;  // operands read and results written, each once
  };

  OpProfile();
  ~OpProfile();
  OpProfile(const OpProfile&) = delete;

  std::map<std::string, Row, std::less<>> rows() const;
  // The rows as an aligned table, longest first.
  std::string table() const;

  void add(std::string_view op, double seconds, int64_t bytes);
  // Null when nobody is collecting.
  static OpProfile* current();

 private:
  mutable std::mutex mutex_;
  std::map<std::string, Row, std::less<>> rows_;
};

}  // namespace sinter
