#include "sinter/engine/step/joined_name.h"

#include <algorithm>

#include "sinter/base/format.h"

namespace sinter {

std::string joined_name(const std::vector<std::string>& names) {
  constexpr size_t kMostShown = 3;
  std::vector<std::pair<std::string, int>> counts;
  for (auto& name : names) {
    auto it = std::find_if(counts.begin(), counts.end(), [&](auto& known) { return known.first == name; });
    if (it == counts.end()) it = counts.insert(counts.end(), {name, 0});
    ++it->second;
  }
  std::string out;
  for (size_t n = 0; n < std::min(counts.size(), kMostShown); ++n)
    out += (n ? " | " : "") + counts[n].first + (counts[n].second > 1 ? format(" × {}", counts[n].second) : "");
  return counts.size() > kMostShown ? out + format(" | {} more", counts.size() - kMostShown) : out;
}

}  // namespace sinter
