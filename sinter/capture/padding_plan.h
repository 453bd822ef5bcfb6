#pragma once
// What a traced program does with padded arguments: that its results can be trusted, and where they are to be cut.
#include <span>

#include "sinter/capture/entry.h"
#include "sinter/capture/function.h"

namespace sinter::capture {

// Sizes of the symbols of a program, by place.
using SizeValues = SmallVector<int64_t, 8>;

struct PaddingPlan {
  struct Cut {
    int dim;
    DimProgram size;
  };
  // A question about padded sizes that the program was recorded with one answer to.
  struct Asked {
    SizeFact fact;
    DimProgram a, b;
  };
  std::vector<int> places;             // per group: the place of its symbol
  std::vector<std::vector<Cut>> cuts;  // per tensor of the results
  std::vector<DimProgram> sizes;       // per Dim of the results
  std::vector<int> written;            // tensors of the arguments, padded ones only
  std::vector<Asked> asked;

  // An Error where the true sizes would have been answered otherwise than the padded ones.
  void check_answers(const std::string& name, const SizeValues& truth) const;
};

// An Error names the op at which padding would reach a result, and the user's line. The entry is that of a trace with
// symbols for `dims`, which are of `groups` groups.
std::shared_ptr<const PaddingPlan> plan_padding(const std::string& name, const CacheEntry& entry,
                                                std::span<const TracedDim> dims, size_t groups);

}  // namespace sinter::capture
