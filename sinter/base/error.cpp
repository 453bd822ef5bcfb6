#include "sinter/base/error.h"

#include <string_view>

namespace sinter {

namespace {

// Where a public call is made from inside the library and no user's line is known (the constructor of a layer, say), its
// line would only mislead.
bool is_ours(const std::source_location& where) {
  static const std::string root = [] {
    std::string own = __FILE__;
    return own.substr(0, own.size() - std::string_view("base/error.cpp").size());
  }();
  return std::string_view(where.file_name()).starts_with(root);
}

std::string position_of(const std::source_location& where) { return is_ours(where) ? std::string() : to_string(where); }

}  // namespace

std::string to_string(const std::source_location& where) {
  return std::string(where.file_name()) + ":" + std::to_string(where.line());
}

Error::Error(const std::string& message, const std::source_location& where)
    : std::runtime_error(is_ours(where) ? message : message + "\n  at " + to_string(where)),
      message_(message),
      where_(position_of(where)) {}

Error Error::with(const std::string& note) const {
  std::string message = message_ + note;
  Error out(where_.empty() ? message : message + "\n  at " + where_);
  out.message_ = std::move(message);
  out.where_ = where_;
  return out;
}

void throw_error(const std::string& message) {
  auto* where = UserPosition::current();
  if (!where) throw Error(message);
  // The user called linear(): "linear: mm: …" says more than "mm: …".
  std::string_view function = UserPosition::function();
  bool named = message.starts_with(function) || function.starts_with("operator");
  throw Error(named ? message : std::string(function) + ": " + message, *where);
}

void throw_internal(const char* condition, const char* file, int line, const std::string& message) {
  throw InternalError(format("Sinter internal error at {}:{}: {} does not hold. {}\nPlease report this with the program that caused it.",
                             file, line, condition, message));
}

}  // namespace sinter
