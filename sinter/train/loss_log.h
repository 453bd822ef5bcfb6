#pragma once
// What a run has to tell of each step, in memory and on disk: a line of JSON for each, written as it happens, and a
// table of all (CSV).
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sinter/io/file.h"

namespace sinter::train {

// Of what is held back.
struct HeldOut {
  double loss = 0, accuracy = 0;
};

struct StepRecord {
  int64_t step = 0;
  double loss = 0, lr = 0, grad_norm = 0;
  double seconds = 0;  // that the step took
  double units_per_s = 0;
  double loss_scale = 0;  // f16: that the loss was scaled up by; 0: it was not
  bool skipped = false;   // left out, because gradients were not finite at that scale
  std::optional<HeldOut> held_out = {};
};

class LossLog {
 public:
  // Goes on with the lines of the file that are of no later step; others, and one that was cut off, are removed.
  LossLog(const std::string& path, int64_t last_step);

  const std::vector<StepRecord>& steps() const { return steps_; }
  // Appends a line, which is given back too.
  std::string add(const StepRecord& record, const std::string& unit);
  // After the last step.
  std::string add(const HeldOut& held_out);
  // The lines so far survive even the machine.
  void sync();
  // A row for each step.
  void write_csv(const std::string& path) const;

 private:
  std::string append(const std::string& line);

  std::string path_;
  std::vector<StepRecord> steps_;
  FileHandle file_;
};

}  // namespace sinter::train
