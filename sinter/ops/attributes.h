#pragma once
// Attributes that stages after the ops read and make: passes that merge views or fold numbers.
#include "sinter/graph/attrs.h"

namespace sinter {

struct PermuteAttrs {
  IntList dims;
  SINTER_FIELDS(dims)
};
struct ExpandAttrs {
  Shape size;  // -1: as it is
  SINTER_FIELDS(size)
};
struct ViewAttrs {
  Shape size;  // one may be -1
  SINTER_FIELDS(size)
};
struct SelectAttrs {
  int64_t dim = 0;
  Dim index;
  SINTER_FIELDS(dim, index)
};
struct SliceAttrs {
  int64_t dim = 0;
  Dim start;
  std::optional<Dim> end;  // none: the size
  int64_t step = 1;
  SINTER_FIELDS(dim, start, end, step)
};
struct CatAttrs {
  int64_t dim = 0;
  SINTER_FIELDS(dim)
};
struct UnsqueezeAttrs {
  int64_t dim = 0;
  SINTER_FIELDS(dim)
};
struct GatherAttrs {
  int64_t dim = 0;
  SINTER_FIELDS(dim)
};

// What every op that makes a tensor from numbers is told.
struct CreationAttrs {
  Shape size;
  DType dtype = kFloat32;
  Device device;
  SINTER_FIELDS(size, dtype, device)
};

}  // namespace sinter
