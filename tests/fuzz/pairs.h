#pragma once
// Which ops have met in the programs so far: the result of one is an operand of another in a graph as backends get it.
#include <string>

namespace sinter::fuzz {

// The name of a backend that runs graphs op by op and notes their pairs.
std::string pair_counting_backend();
// "8123 of 22500 pairs of ops, 2 of 150 ops unseen: cond, while_loop".
std::string pair_report();

}  // namespace sinter::fuzz
