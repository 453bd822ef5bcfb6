#pragma once
// Work that may end the process: it is done in a child, which ends alone.
#include <functional>
#include <string>
#include <vector>

namespace sinter::bisection {

struct Outcome {
  enum class Kind : uint8_t {
    kDone,     // `text` is what the work gave
    kError,    // it threw; `text` is the message
    kCrashed,  // `text` names the signal
    kTimedOut
  };
  Kind kind = Kind::kDone;
  std::string text;
  std::vector<std::string> notes;  // what it said on the way, in order
};

// What the work is given to say how far it is.
using Note = std::function<void(const std::string& text)>;
using Work = std::function<std::string(const Note& note)>;

// In a child process of one thread, which has everything that is in memory now and writes nothing to the terminal.
Outcome run_guarded(const Work& work, double seconds);
// The same in this process, for what no child can do (a GPU is lost to it): only exceptions are caught.
Outcome run_unguarded(const Work& work);

}  // namespace sinter::bisection
