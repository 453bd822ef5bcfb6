#pragma once
// ViewPath: a chain of views, from a tensor to a look at part of it. And `write`, the one op that a captured in-place
// write becomes: a new value of the base in which the elements that the path looks at are replaced.
//
//   %3 = write(%0, %2) {path=[slice{start=1}, select{index=2}]} : f32[4, 5]
#include "sinter/graph/graph.h"

namespace sinter {

struct ViewStep {
  const Op* op = nullptr;  // of kind kView
  Attrs attrs;
  bool operator==(const ViewStep&) const = default;
};

struct ViewPath {
  std::vector<ViewStep> steps;

  bool empty() const { return steps.empty(); }
  // The path that first goes this way and then one step on.
  ViewPath then(const Op& op, const Attrs& attrs) const;
  bool operator==(const ViewPath&) const = default;
};

// A field of attributes like any other. All three are found by the type of their argument, hence not in `detail`.
std::string field_text(const ViewPath& path);
void parse_field(std::string_view text, ViewPath& path);
void map_field(const std::function<Dim(const Dim&)>& map, ViewPath& path);

struct WriteAttrs {
  ViewPath path;
  SINTER_FIELDS(path)
};

// The view of `base` at the end of the path: run, recorded and taped like any ops.
Tensor apply(const ViewPath& path, const Tensor& base);
// The same inside a graph.
Value apply(const ViewPath& path, Graph& graph, Value base, const std::string& where = {});

// `base` with the elements at the end of the path replaced by `value`, which has their dtype and shape. Differentiable
// in both. An empty path gives `value`.
Tensor write(const TensorArg& base, const TensorArg& value, const ViewPath& path);
const Op& write_op();

}  // namespace sinter
