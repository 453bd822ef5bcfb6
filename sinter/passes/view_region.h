#pragma once
// What the passes know of the elements that a path of views looks at.
#include "sinter/ops/view_path.h"

namespace sinter {

// The same path with dimensions and positions counted from the front and slices with their end, so that paths that say
// the same in other words are equal.
ViewPath canonical(const ViewPath& path, const Type& base);

// Whether two paths from one base certainly share no element.
bool disjoint(const ViewPath& a, const ViewPath& b, const Type& base);

// Whether the path certainly shows no element twice: only then is what was written through it what it shows.
bool shows_each_once(const ViewPath& path);

// The path back, where the given one only rearranges all elements of the base; nothing when it leaves some out or
// repeats some.
std::optional<ViewPath> inverse(const ViewPath& path, const Type& base);

}  // namespace sinter
