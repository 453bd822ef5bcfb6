#pragma once
// Runs the built `sinter` command as a child process.
#include <string>

namespace sinter::testing {

struct CommandResult {
  int code;
  std::string out, err;
};

// `arguments` as a shell reads them; `environment` as "NAME=value NAME=value"; `input` is its standard input.
CommandResult run_command(const std::string& arguments, const std::string& environment = "",
                          const std::string& input = "");

}  // namespace sinter::testing
