// Runs what tools/record_onnx_cases.py has written: onnx_cases FILE [--known LIST] [--compiled] [--only WORD].
// A line for each case that is not right, and the counts at the end. With a list of cases that are known not to be right, one that
// is not on it, or that is and need not be, makes the exit status 1.
#include <array>
#include <cstdio>
#include <string>

#include "tests/interop/onnx/cases.h"

using namespace sinter::testing;

int main(int argc, char** argv) {
  std::string file, list, only;
  bool compiled = false;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--compiled") compiled = true;
    else if (word == "--known" && i + 1 < argc) list = argv[++i];
    else if (word == "--only" && i + 1 < argc) only = argv[++i];
    else file = word;
  }
  if (file.empty()) {
    std::fprintf(stderr, "onnx_cases FILE [--known LIST] [--compiled] [--only WORD]\n");
    return 2;
  }
  std::map<std::string, std::string> known;
  if (!list.empty()) known = read_known_cases(list);
  std::array<int, 3> counts{};
  int unexpected = 0;
  check_cases(file, only, compiled, [&](const CaseResult& result) {
    ++counts[size_t(result.verdict)];
    const bool is_right = result.verdict == CaseVerdict::kRight, is_known = known.contains(result.name);
    if (is_right && is_known) std::printf("right, take it off the list: %s\n", result.name.c_str());
    if (!list.empty() && is_right == is_known) ++unexpected;
    if (is_right || is_known) return;
    std::string message = result.message.substr(0, 400);
    for (char& c : message) c = c == '\n' ? ' ' : c;
    std::printf("%s %s: %s\n", result.verdict == CaseVerdict::kWrong ? "wrong" : "refused", result.name.c_str(), message.c_str());
    std::fflush(stdout);
  });
  std::printf("%d right, %d wrong, %d refused\n", counts[0], counts[1], counts[2]);
  return unexpected > 0;
}
