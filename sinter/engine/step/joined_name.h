#pragma once
// What a step of several kernels is called.
#include <string>
#include <vector>

namespace sinter {

// How often each name occurs, and of many the first few.
std::string joined_name(const std::vector<std::string>& names);

}  // namespace sinter
