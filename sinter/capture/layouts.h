#pragma once
// How tensors of a captured program lie in memory at other sizes than those of the capture. What is decided by the layout
// (whether contiguous() is a copy, the order in which a result lies) is decided once for a program: where other sizes would
// decide otherwise, it holds for its own alone.
#include <functional>
#include <optional>

#include "sinter/capture/sizes.h"
#include "sinter/capture/storage.h"

namespace sinter::capture {

struct Layout {
  IntList sizes, strides;
};

// What is the same for all sizes of a tensor that lies "the same way": the order of its dimensions in memory, and which of
// them follow each other without a gap.
IntList pattern_of(const Layout& layout);
// Of a pointwise result: the order of the operand where that has neither gaps nor overlaps, else row-major.
IntList result_order(const Layout& operand);

// The first symbol of the look's sizes by which `decided` gives something else when it changes a little or is small, all
// others unchanged; empty when there is none. Sizes that the guards exclude do not count.
std::string size_that_decides(const Storage& storage, const ViewPath& path, const SizeTable& sizes,
                              const std::function<IntList(const Layout&)>& decided);

// The strides of a result of cond or while_loop, which are those that its functions give it when they are run op by op on
// operands that lie so; row-major where that depends on the data. Nothing for other ops.
std::optional<IntList> control_strides(const Value& result, std::span<const TensorArg> inputs, const SizeTable& sizes);

}  // namespace sinter::capture
