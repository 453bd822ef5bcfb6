#pragma once
// When and why a function was captured: what its explanation tells of it.
#include <memory>
#include <mutex>
#include <vector>

#include "sinter/base/stage_times.h"
#include "sinter/capture/entry.h"

namespace sinter::capture {

struct CaptureRecord {
  enum class Kind : uint8_t {
    kFirst,   // nothing was captured before
    kAgain,   // no program fits the call
    kBranch,  // a program came to an answer, or to a piece, that it had not seen before
    kLimit    // no program fits, and there are too many: the call ran eagerly, and nothing was captured
  };
  Kind kind = Kind::kFirst;
  std::weak_ptr<const CacheEntry> entry = {};  // what was made or has grown
  std::vector<Guard> failed = {};  // kAgain, kLimit: by program, in order, the first of its guards that does not hold
  Question asked = {};             // kBranch
  double start = 0, seconds = 0;   // start: since the first capture of the process began
  StageTimes stages = {};          // of the whole process meanwhile
};

class Captures {
 public:
  void add(CaptureRecord record);
  void clear();
  std::vector<CaptureRecord> list() const;

 private:
  mutable std::mutex mutex_;
  std::vector<CaptureRecord> list_;
};

// Runs from its making on.
class CaptureClock {
 public:
  CaptureClock();
  // The record with its times.
  CaptureRecord stop(CaptureRecord record) const;

 private:
  const double start_;
  const StageTimes before_;
};

}  // namespace sinter::capture
