#pragma once
// A trial for people: as a C++ program, and as a file for `sinter run`.
#include "sinter/engine/bisect/trial.h"

namespace sinter::bisection {

// A complete program that makes the operands, runs the graph as compiled and by the referee, and prints both; or, where
// speed is what it is about, times the compiled graph and its ops one by one. `about` is its first comment.
std::string program_text(const Trial& trial, const std::string& about, bool times = false);

// The graph, with `about` and the operands as comments.
std::string graph_file(const Trial& trial, const std::string& about);

}  // namespace sinter::bisection
