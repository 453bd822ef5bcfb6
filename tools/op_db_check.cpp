// Runs what tools/record_op_db.py has recorded: op_db_check FOLDER [--compiled N] [--no-gradients] [--only WORD].
// A line for each sample that is not right, and the counts by operator as JSON at the end.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include <nlohmann/json.hpp>

#include "tests/op_db/samples.h"

using namespace sinter::testing;

int main(int argc, char** argv) {
  CheckOptions options;
  std::string folder, only;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--compiled" && i + 1 < argc) options.compiled = std::atoi(argv[++i]);
    else if (word == "--no-gradients") options.gradients = false;
    else if (word == "--only" && i + 1 < argc) only = argv[++i];
    else folder = word;
  }
  if (folder.empty()) {
    std::fprintf(stderr, "op_db_check FOLDER [--compiled N] [--no-gradients] [--only WORD]\n");
    return 2;
  }
  std::map<std::string, std::array<int, 3>> counts;
  std::array<int, 3> all{};
  for (auto& file : sample_files(folder)) {
    if (file.find(only) == std::string::npos) continue;
    for (auto& result : check_samples(file, options)) {
      ++counts[result.op][size_t(result.verdict)];
      ++all[size_t(result.verdict)];
      if (result.verdict == Verdict::kRight) continue;
      std::string message = result.message.substr(0, 300);
      for (char& c : message) c = c == '\n' ? ' ' : c;
      std::printf("%s %s: %s\n", result.verdict == Verdict::kWrong ? "wrong" : "refused", result.sample.c_str(), message.c_str());
      std::fflush(stdout);
    }
  }
  nlohmann::json report = {{"right", all[0]}, {"wrong", all[1]}, {"refused", all[2]}};
  for (auto& [op, n] : counts) report["ops"][op] = {{"right", n[0]}, {"wrong", n[1]}, {"refused", n[2]}};
  std::printf("%s\n", report.dump().c_str());
}
