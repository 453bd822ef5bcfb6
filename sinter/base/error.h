#pragma once
// Errors: `check` for what a user did wrong, `internal_assert` for what we did wrong.
#include <source_location>
#include <stdexcept>
#include <string>

#include "sinter/base/api.h"
#include "sinter/base/format.h"

namespace sinter SINTER_API {

// A user's mistake. The message names the op, the shapes and the remedy; `where` is the user's own line when it is known.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message) : std::runtime_error(message), message_(message) {}
  Error(const std::string& message, const std::source_location& where);

  // The message without the position.
  const std::string& message() const { return message_; }
  const std::string& msg() const { return message_; }
  const char* what_without_backtrace() const { return what(); }
  // "file:line" of the user's call, empty when unknown.
  const std::string& where() const { return where_; }
  // The same with a note behind the message.
  Error with(const std::string& note) const;

 private:
  std::string message_, where_;
};

// Memory could not be had. A kind of Error, so that a server may shed load instead of ending.
class OutOfMemoryError : public Error {
 public:
  using Error::Error;
};

// A broken invariant of Sinter itself.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] void throw_error(const std::string& message);
[[noreturn]] void throw_internal(const char* condition, const char* file, int line, const std::string& message);

// Throws Error with the formatted message unless `condition` holds.
template <class... Args>
void check(bool condition, const char* pattern, const Args&... args) {
  if (!condition) [[unlikely]]
    throw_error(format(pattern, args...));
}

// The user's line while a public call is under way on this thread: an Error thrown without a position gets it, and graph
// nodes remember it. The outermost call wins, so that an op made of other ops reports where the user called it.
class UserPosition {
 public:
  explicit UserPosition(const std::source_location& where, const char* function = __builtin_FUNCTION())
      : outermost_(function_ == nullptr) {
    if (!outermost_) return;
    where_ = where;
    function_ = function;
  }
  ~UserPosition() {
    if (outermost_) function_ = nullptr;
  }
  UserPosition(const UserPosition&) = delete;
  // Null when no public call is under way.
  static const std::source_location* current() { return function_ ? &where_ : nullptr; }
  // The public function under way, `layer_norm` say; null when there is none.
  static const char* function() { return function_; }

 private:
  bool outermost_;
  static inline thread_local std::source_location where_;
  static inline thread_local const char* function_ = nullptr;
};

// "file:line".
std::string to_string(const std::source_location& where);

}  // namespace sinter

// A macro because it shows the failed condition; the message arguments are evaluated only on failure.
#define SINTER_INTERNAL_ASSERT(condition, ...)                                                                   \
  do {                                                                                                           \
    if (!(condition)) [[unlikely]]                                                                               \
      ::sinter::throw_internal(#condition, __FILE__, __LINE__, ::sinter::format("" __VA_ARGS__));                \
  } while (false)
