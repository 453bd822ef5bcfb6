#pragma once
// What the benches of single kernels share.
#include <cstdint>
#include <string>
#include <vector>

namespace sinter::bench {

// Which rows are wanted: those whose names have the text.
struct Wanted {
  std::string text;
  bool operator()(const std::string& name) const { return name.find(text) != std::string::npos; }
};
// Of the arguments [threads] [text]; sets the threads of the library and of oneDNN.
Wanted parse_wanted(int argc, char** argv);

// Random values of so few bits that sums of products are exact.
std::vector<float> few_bits(int64_t count);

}  // namespace sinter::bench
