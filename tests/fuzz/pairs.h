#pragma once
// Which ops have met in the programs so far: the result of one is an operand of another in a graph as backends get it.
#include <string>

namespace sinter::fuzz {

// The name of a backend that runs graphs op by op and notes their pairs.
std::string pair_counting_backend();
// The program of this seed has been run: were its pairs met?
void note_pairs_of(uint32_t seed);
// "8123 of 22500 pairs of ops met, 1200 of the 1500 that were tried; 2 of 150 ops unseen: clone, alias".
std::string pair_report();

}  // namespace sinter::fuzz
