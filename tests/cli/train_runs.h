#pragma once
// Runs of `sinter train` that take a second, and that are killed.
#include <string>

#include "tests/support/own_directory.h"

namespace sinter::testing {

// A folder with what a run needs: a config.json of a tiny Llama and a few pages of text.
class TrainRuns {
 public:
  TrainRuns();
  std::string file(const std::string& name) const { return own_.file(name); }
  // The arguments of a run of so many steps into a folder here, a checkpoint each `save_every`.
  std::string arguments(const std::string& out, int steps = 24, int save_every = 1) const;
  // Steps with their losses, those on what is held back among them: what of the log does not depend on the clock.
  std::string losses(const std::string& out) const;
  std::string weights(const std::string& out, int step) const;

  // Starts a run, asks it to stop by a signal once it has taken some steps, and gives its exit code.
  int stop(const std::string& arguments, const std::string& out, int signal) const;

  // Starts a run into a folder again and again with --resume, kills it at random moments, then lets it end. The moments
  // spread over the time that a run takes from its start to its end; `seed` chooses them. Fails the test unless what is left
  // is what a run leaves that nobody disturbs.
  void survive_kills(int kills, unsigned seed) const;

 private:
  OwnDirectory own_;
};

}  // namespace sinter::testing
