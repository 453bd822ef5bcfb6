#pragma once
// The node cases of the onnx wheel, as tools/record_onnx_cases.py writes them: a model of one operator, inputs, and what comes of
// them.
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "sinter/tensor/tensor.h"

namespace sinter::testing {

enum class CaseVerdict : uint8_t { kRight, kWrong, kRefused };

struct CaseResult {
  std::string name;
  CaseVerdict verdict = CaseVerdict::kRight;
  std::string message = {};  // what is wrong, or why it was refused
};

// Runs the cases of a file, those whose name has `only` in it: eagerly, and compiled where that is asked for.
void check_cases(const std::string& path, const std::string& only, bool compiled,
                 const std::function<void(const CaseResult&)>& visit);

// The cases that are known not to be right, with the reasons: lines "name: reason".
std::map<std::string, std::string> read_known_cases(const std::string& path);

}  // namespace sinter::testing
