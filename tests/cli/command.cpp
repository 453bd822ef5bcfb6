#include "tests/cli/command.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace sinter::testing {

namespace {

std::string take_file(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  std::remove(path.c_str());
  return text.str();
}

}  // namespace

CommandResult run_command(const std::string& arguments, const std::string& environment, const std::string& input) {
  std::string base = ::testing::TempDir() + "/sinter_cli_" + std::to_string(getpid());
  std::string out = base + ".out", err = base + ".err", in = base + ".in";
  std::ofstream(in) << input;
  std::string line =
      environment + " '" SINTER_COMMAND "' " + arguments + " >'" + out + "' 2>'" + err + "' <'" + in + "'";
  int status = std::system(line.c_str());
  std::remove(in.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, take_file(out), take_file(err)};
}

}  // namespace sinter::testing
