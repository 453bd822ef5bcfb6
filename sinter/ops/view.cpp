#include "sinter/ops/view.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "sinter/ops/attributes.h"
#include "sinter/ops/complex_call.h"
#include "sinter/ops/define.h"
#include "sinter/ops/dims.h"
#include "sinter/ops/registry.h"
#include "sinter/ops/reshape.h"

namespace sinter {

IntList wrap_dims(const char* op, const IntList& dims, int64_t rank) {
  IntList out;
  for (int64_t d : dims) {
    d = wrap_dim(op, d, rank);
    check(std::find(out.begin(), out.end(), d) == out.end(), "{}: dimension {} is named twice in {}", op, d, dims);
    out.push_back(d);
  }
  return out;
}

Index broadcast_index(const Shape& shape, std::span<const Dim> i) {
  Index at;
  size_t shift = i.size() - shape.size();
  for (size_t d = 0; d < shape.size(); ++d) at.push_back(shape[d].same_as(1) ? Dim(0) : i[d + shift]);
  return at;
}

namespace {

std::vector<Type> like_input(const OpCall& call, const Shape& shape) {
  return {Type{call.inputs[0].dtype, shape, call.inputs[0].device}};
}

struct Alias : View {
  static constexpr auto name = "alias";
  using Attributes = NoAttrs;
  static std::vector<Type> infer(const OpCall& call) { return like_input(call, call.shape(0)); }
  static Elem element(ElementBuilder& b) { return b.load(0, b.i); }
  static TensorList grad(const GradCall& c) {
    return c.each([&] { return c.grad(); });
  }
  static constexpr auto on_complex = by_parts<>;
  SINTER_SAMPLES("x[2, 3] |", "x[] |", "x[0, 4] |")
};

struct Permute : View {
  static constexpr auto name = "permute";
  using Attributes = PermuteAttrs;
  static std::vector<Type> infer(const OpCall& call) {
    auto& dims = call.as<PermuteAttrs>().dims;
    check(int64_t(dims.size()) == call.rank(0), "permute: {} has {} dimensions, but {} are named: {}", call.shape(0),
          call.rank(0), int64_t(dims.size()), dims);
    Shape shape;
    for (int64_t d : wrap_dims("permute", dims, call.rank(0))) shape.push_back(call.shape(0)[size_t(d)]);
    return like_input(call, shape);
  }
  static Elem element(ElementBuilder& b) {
    auto dims = wrap_dims("permute", b.call.as<PermuteAttrs>().dims, b.call.rank(0));
    Index at(dims.size());
    for (size_t j = 0; j < dims.size(); ++j) at[size_t(dims[j])] = b.i[j];
    return b.load(0, at);
  }
  static TensorList grad(const GradCall& c) {
    auto dims = wrap_dims("permute", c.as<PermuteAttrs>().dims, c[0].dim());
    IntList inverse(dims.size());
    for (size_t j = 0; j < dims.size(); ++j) inverse[size_t(dims[j])] = int64_t(j);
    return c.each([&] { return permute(c.grad(), inverse); });
  }
  static constexpr auto on_complex = by_parts<>;
  SINTER_SAMPLES("x[2, 3] | dims=[1, 0]", "x[2, 3, 17] | dims=[2, 0, 1]", "x[2, 1, 3, 4] | dims=[0, -1, 1, 2]", "x[] |",
                 "x[0, 3] | dims=[1, 0]")
};

struct Expand : View {
  static constexpr auto name = "expand";
  using Attributes = ExpandAttrs;
  static std::vector<Type> infer(const OpCall& call) {
    auto& size = call.as<ExpandAttrs>().size;
    auto& from = call.shape(0);
    check(size.size() >= from.size(), "expand: {} has more dimensions than the target {}", from, size);
    size_t added = size.size() - from.size();
    Shape shape;
    for (size_t d = 0; d < size.size(); ++d) {
      if (d < added) {
        check(possibly_le(0, size[d]), "expand: the new dimension {} needs a size, not {}", int64_t(d), size[d]);
        shape.push_back(size[d]);
      } else if (size[d].same_as(-1) || size[d].same_as(from[d - added])) {
        shape.push_back(from[d - added]);
      } else {
        auto& old = from[d - added];
        check(old.same_as(1) || old == size[d] || (!old.is_number() && old == 1),
              "expand: {} does not expand to {}: dimension {} has size {}, which is neither 1 nor {}", from, size,
              int64_t(d - added), from[d - added], size[d]);
        check(possibly_le(0, size[d]), "expand: {} is not a size", size[d]);
        shape.push_back(size[d]);
      }
    }
    return like_input(call, shape);
  }
  static Elem element(ElementBuilder& b) { return b.load(0, broadcast_index(b.call.shape(0), b.i)); }
  static TensorList grad(const GradCall& c) {
    return c.each([&] { return sum_to_size(c.grad(), c[0].sizes()); });
  }
  static constexpr auto on_complex = by_parts<>;
  SINTER_SAMPLES("x[3, 1] | size=[3, 4]", "x[3] | size=[2, 17, 3]", "x[1, 5] | size=[4, -1]", "x[] | size=[2, 2]",
                 "x[2, 1] | size=[2, 0]")
};

struct SqueezeAttrs {
  IntList dims;
  SINTER_FIELDS(dims)
};

struct Squeeze : View {
  static constexpr auto name = "squeeze";
  using Attributes = SqueezeAttrs;
  // Which dimensions go: those named that have size 1.
  static std::vector<bool> gone(const OpCall& call) {
    std::vector<bool> out(size_t(std::max<int64_t>(call.rank(0), 1)));
    for (int64_t d : wrap_dims("squeeze", call.as<SqueezeAttrs>().dims, call.rank(0)))
      out[size_t(d)] = d < call.rank(0) && call.shape(0)[size_t(d)].same_as(1);
    return out;
  }
  static std::vector<Type> infer(const OpCall& call) {
    auto skip = gone(call);
    Shape shape;
    for (size_t d = 0; d < call.shape(0).size(); ++d)
      if (!skip[d]) shape.push_back(call.shape(0)[d]);
    return like_input(call, shape);
  }
  static Elem element(ElementBuilder& b) {
    auto skip = gone(b.call);
    Index at;
    size_t next = 0;
    for (size_t d = 0; d < b.call.shape(0).size(); ++d) at.push_back(skip[d] ? Dim(0) : b.i[next++]);
    return b.load(0, at);
  }
  static TensorList grad(const GradCall& c) {
    return c.each([&] { return reshape(c.grad(), c[0].sizes()); });
  }
  static constexpr auto on_complex = by_parts<>;
  SINTER_SAMPLES("x[1, 3, 1] | dims=[0, 2]", "x[1, 3, 1] | dims=[-1]", "x[2, 3] | dims=[1]", "x[1] | dims=[0]",
                 "x[] | dims=[0]")
};

struct Unsqueeze : View {
  static constexpr auto name = "unsqueeze";
  using Attributes = UnsqueezeAttrs;
  static int64_t dim_of(const OpCall& call) { return wrap_dim("unsqueeze", call.as<UnsqueezeAttrs>().dim, call.rank(0) + 1); }
  static std::vector<Type> infer(const OpCall& call) {
    return like_input(call, inserted(call.shape(0), dim_of(call), 1));
  }
  static Elem element(ElementBuilder& b) { return b.load(0, removed(b.i, dim_of(b.call))); }
  static TensorList grad(const GradCall& c) {
    return c.each([&] { return squeeze(c.grad(), wrap_dim("unsqueeze", c.as<UnsqueezeAttrs>().dim, c[0].dim() + 1)); });
  }
  static constexpr auto on_complex = by_parts<>;
  SINTER_SAMPLES("x[2, 3] | dim=1", "x[2, 3] | dim=-1", "x[] | dim=0", "x[0] | dim=0")
};

}  // namespace

Tensor alias(const TensorArg& x) { return call<Alias>({x}); }

Tensor permute(const TensorArg& x, const IntList& dims) { return call<Permute>({x}, PermuteAttrs{dims}); }
Tensor transpose(const TensorArg& x, int64_t a, int64_t b) {
  UserPosition here(x.where());
  a = wrap_dim("transpose", a, x.dim());
  b = wrap_dim("transpose", b, x.dim());
  IntList dims(size_t(x.dim()));
  std::iota(dims.begin(), dims.end(), 0);
  if (!dims.empty()) std::swap(dims[size_t(a)], dims[size_t(b)]);
  return permute(x, dims);
}
Tensor t(const TensorArg& x) {
  UserPosition here(x.where());
  check(x.dim() <= 2, "t: {} has more than two dimensions; transpose names the two to swap", x.sizes());
  return x.dim() == 2 ? transpose(x, 0, 1) : alias(x);
}
Tensor mT(const TensorArg& x) {
  UserPosition here(x.where());
  check(x.dim() >= 2, "mT: {} has no last two dimensions to swap", x.sizes());
  return transpose(x, -2, -1);
}
Tensor numpy_T(const TensorArg& x) {
  UserPosition here(x.where());
  IntList dims;
  for (int64_t d = x.dim() - 1; d >= 0; --d) dims.push_back(d);
  return permute(x, dims);
}
Tensor movedim(const TensorArg& x, const IntList& source, const IntList& destination) {
  UserPosition here(x.where());
  check(source.size() == destination.size(), "movedim: {} names {} dimensions, {} names {}", source,
        int64_t(source.size()), destination, int64_t(destination.size()));
  auto from = wrap_dims("movedim", source, x.dim()), to = wrap_dims("movedim", destination, x.dim());
  IntList dims(size_t(x.dim()), -1);
  for (size_t j = 0; j < to.size(); ++j) dims[size_t(to[j])] = from[j];
  int64_t next = 0;
  for (auto& d : dims) {
    if (d >= 0) continue;
    while (std::find(from.begin(), from.end(), next) != from.end()) ++next;
    d = next++;
  }
  return permute(x, dims);
}

Tensor expand(const TensorArg& x, const Shape& shape) { return call<Expand>({x}, ExpandAttrs{shape}); }
Tensor expand_as(const TensorArg& x, const TensorArg& other) {
  UserPosition here(x.where());
  return expand(x, other.sizes());
}
Tensor broadcast_to(const TensorArg& x, const Shape& shape) { return expand(x, shape); }
Tensor sum_to_size(const TensorArg& x, const Shape& shape) {
  UserPosition here(x.where());
  auto from = x.sizes();
  check(from.size() >= shape.size(), "sum_to_size: {} does not sum to {}", from, shape);
  size_t added = from.size() - shape.size();
  for (size_t d = 0; d < shape.size(); ++d)
    check(shape[d].same_as(1) || shape[d] == from[d + added], "sum_to_size: {} does not sum to {}", from, shape);
  IntList dims;
  for (size_t d = 0; d < from.size(); ++d)
    if (d < added || (shape[d - added].same_as(1) && !from[d].same_as(1))) dims.push_back(int64_t(d));
  if (dims.empty()) return x.tensor();
  Tensor summed = x.tensor().sum(dims, true, std::nullopt, x.where());
  if (added == 0) return summed;
  IntList leading(added);
  std::iota(leading.begin(), leading.end(), 0);
  return squeeze(summed, leading);
}

Tensor squeeze(const TensorArg& x) {
  UserPosition here(x.where());
  IntList all(size_t(x.dim()));
  std::iota(all.begin(), all.end(), 0);
  return squeeze(x, all);
}
Tensor squeeze(const TensorArg& x, int64_t dim) { return squeeze(x, IntList{dim}); }
Tensor squeeze(const TensorArg& x, const IntList& dims) {
  if (x.is_scalar() || !x.tensor().defined()) return call<Squeeze>({x}, SqueezeAttrs{dims});
  UserPosition here(x.where());
  IntList ones;
  bool asked = false;
  for (int64_t d : wrap_dims("squeeze", dims, x.dim())) {
    if (d >= x.dim() || x.size(d) != 1) continue;
    ones.push_back(d);
    asked = asked || !x.size(d).same_as(1);
  }
  if (!asked) return call<Squeeze>({x}, SqueezeAttrs{dims});
  // A size that is 1 this time, not by its form: the program holds for this answer.
  std::sort(ones.begin(), ones.end(), std::greater<>());
  Tensor out = x.tensor();
  for (int64_t d : ones) out = out.select(d, 0);
  return out;
}
Tensor unsqueeze(const TensorArg& x, int64_t dim) { return call<Unsqueeze>({x}, UnsqueezeAttrs{dim}); }

OpFamily view_ops() {
  static const auto all = [] {
    std::vector<const Op*> ops{&op_of<Alias>,  &reshape_op(),   &op_of<Permute>,
                               &op_of<Expand>, &op_of<Squeeze>, &op_of<Unsqueeze>};
    ops.insert(ops.end(), slice_ops().begin(), slice_ops().end());
    return ops;
  }();
  return all;
}

}  // namespace sinter
