#pragma once
// What a compiler, or the driver that loads its code, refuses: a text of ours that it does not take although it takes others.
// Who asked for the kernel finds another way: smaller kernels, single ops, the referee.
#include <string>

#include "sinter/base/error.h"

namespace sinter::runtime {

class Refused : public Error {
 public:
  // `kernel` names it, `reason` is what the compiler says, `text` is all that it was given.
  Refused(const std::string& message, std::string kernel, std::string reason, std::string text);

  const std::string& kernel() const { return kernel_; }
  const std::string& text() const { return text_; }
  // The first line of the reason that tells of an error.
  std::string first_error() const;

 private:
  std::string kernel_, reason_, text_;
};

// Whether what is refused is an error: where SINTER_STRICT is set to something other than 0, and on a thread that runs a
// program compiled so (StrictScope).
bool is_strict();
class StrictScope {
 public:
  explicit StrictScope(bool strict);
  ~StrictScope();
  StrictScope(const StrictScope&) = delete;

 private:
  const bool before_;
};

// One warning a kernel: what was refused and why, what happens instead ("its ops run as smaller kernels"), and how to report
// it. Under SINTER_DEBUG the text becomes a file, which the warning names.
void warn_refused(const Refused& refusal, const std::string& instead);

// For tests: while one lives, toolchains refuse the texts that contain `part`.
class RefuseTexts {
 public:
  explicit RefuseTexts(std::string part);
  ~RefuseTexts();
  RefuseTexts(const RefuseTexts&) = delete;

 private:
  std::string part_;
};
// Throws Refused where a RefuseTexts asks for it.
void refuse_if_planted(const std::string& text, const std::string& kernel);

}  // namespace sinter::runtime
