#pragma once
// Samples of PyTorch's own test data base, as tools/record_op_db.py writes them: a program, its operands, and what PyTorch gives
// for them, gradients included.
#include <string>
#include <vector>

namespace sinter::testing {

enum class Verdict { kRight, kWrong, kRefused };

struct SampleResult {
  std::string op;      // "nn.functional.gelu", with the variant behind it
  std::string sample;  // its name, "nn.functional.gelu-f32 #3"
  Verdict verdict = Verdict::kRight;
  std::string message = {};  // what is wrong, or the Error
};

struct CheckOptions {
  int compiled = 0;  // of so many samples one is run under compile() as well; none for 0
  bool gradients = true;
};

// Runs the samples of one pair of files, which is named without its endings.
std::vector<SampleResult> check_samples(const std::string& file, const CheckOptions& options = {});

// The files of a folder, sorted.
std::vector<std::string> sample_files(const std::string& folder);

}  // namespace sinter::testing
