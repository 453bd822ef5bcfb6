#pragma once
// How the stages of a kernel are printed, whoever it is of.
#include <iostream>

#include "sinter/engine/kernel_stages.h"

namespace sinter::cli {

// The text, if this stage is wanted; under its name where all are.
inline void print_stage(const std::string& wanted, const char* stage, const std::string& text) {
  if (wanted == "all") std::cout << "--- " << stage << "\n";
  if (wanted == "all" || wanted == stage) std::cout << text << (text.ends_with("\n") ? "" : "\n");
}

inline void print_stages(const std::string& wanted, const KernelStages& kernel) {
  print_stage(wanted, "loops", kernel.loops);
  print_stage(wanted, "schedule", kernel.schedule);
  print_stage(wanted, "code", kernel.code);
}

}  // namespace sinter::cli
