#pragma once
// Measurements that need a process of their own, over a kernel cache of their own.
#include <string>

#include "tests/support/own_directory.h"

namespace sinter::bench {

// What this program prints when it is run again with these arguments (words of a shell) on that cache and as many threads.
std::string output_of_self(const std::string& arguments, const OwnDirectory& cache);

}  // namespace sinter::bench
