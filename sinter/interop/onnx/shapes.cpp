// Rearranged copies and looks.
#include "sinter/base/error.h"
#include "sinter/interop/onnx/operands.h"
#include "sinter/ops/conv.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"

namespace sinter::interop::onnx {

namespace {

Tensor transposed(In x, MaybeInts perm) {
  if (perm) return permute(x, *perm);
  return numpy_T(x);
}

// ONNX tells all begins and then all ends, of all dimensions or of the axes; pad() takes pairs from the last dimension on.
Tensor padded(In x, Sizes pads, Any value, MaybeInts axes, Text mode) {
  const int64_t rank = x.dim();
  IntList dims = axes ? wrapped("Pad", *axes, rank) : IntList();
  if (!axes)
    for (int64_t d = 0; d < rank; ++d) dims.push_back(d);
  check(pads.size() == 2 * dims.size(), "Pad: {} pads for {} dimensions", pads.size(), dims.size());
  Shape pairs(std::vector<int64_t>(size_t(2 * rank), 0));
  for (size_t i = 0; i < dims.size(); ++i) {
    const size_t place = size_t(2 * (rank - 1 - dims[i]));
    pairs[place] = pads[i];
    pairs[place + 1] = pads[i + dims.size()];
  }
  if (mode == "constant") return constant_pad_nd(x, pairs, is_given(value) ? value_to<Scalar>(value) : Scalar(0));
  // The other modes, one dimension after another: by reading at places.
  Tensor out = x.tensor();
  for (int64_t d = 0; d < rank; ++d) {
    const size_t place = size_t(2 * (rank - 1 - d));
    const int64_t low = pairs[place], high = pairs[place + 1], size = out.size(d);
    if (low == 0 && high == 0) continue;
    std::vector<int64_t> from;
    for (int64_t i = -low; i < size + high; ++i) {
      int64_t at = i;
      if (mode == "edge") at = std::clamp<int64_t>(i, 0, size - 1);
      if (mode == "wrap") at = ((i % size) + size) % size;
      if (mode == "reflect") {
        const int64_t period = std::max<int64_t>(2 * (size - 1), 1), turned = ((i % period) + period) % period;
        at = turned < size ? turned : period - turned;
      }
      check(mode == "edge" || mode == "wrap" || mode == "reflect", "Pad: there is no mode '{}'", mode);
      from.push_back(at);
    }
    out = index_select(out, d, from_data(from, {int64_t(from.size())}).to(out.device()));
  }
  return out;
}

Tensor depth_to_space(In x, Int block, Text mode) {
  const Shape s = x.sizes();
  check(s.rank() == 4 && block > 0, "DepthToSpace: the operand is {}", s);
  const Dim channels = s[1] / block / block;
  if (mode == "DCR")
    return reshape(permute(reshape(x, {s[0], block, block, channels, s[2], s[3]}), {0, 3, 4, 1, 5, 2}),
                   {s[0], channels, s[2] * block, s[3] * block});
  check(mode == "CRD", "DepthToSpace: there is no mode '{}'", mode);
  return pixel_shuffle(x, block);
}

Tensor space_to_depth(In x, Int block, Text mode) {
  const Shape s = x.sizes();
  check(s.rank() == 4 && block > 0, "SpaceToDepth: the operand is {}", s);
  const Tensor parts = reshape(x, {s[0], s[1], s[2] / block, block, s[3] / block, block});
  const Shape out = {s[0], s[1] * block * block, s[2] / block, s[3] / block};
  return reshape(permute(parts, mode == "CRD" ? IntList{0, 1, 3, 5, 2, 4} : IntList{0, 3, 5, 1, 2, 4}), out);
}

Tensor triangle(In x, MaybeInt diagonal, bool upper) {
  return upper ? triu(x, diagonal.value_or(0)) : tril(x, diagonal.value_or(0));
}

// Of each row of the batch the first `lengths` elements in reverse order.
Tensor reversed(In x, In lengths, Int batch_axis, Int time_axis) {
  const int64_t rank = x.dim(), time = wrap_dim("ReverseSequence", time_axis, rank);
  const int64_t batch = wrap_dim("ReverseSequence", batch_axis, rank);
  auto along = [&](const Tensor& t, int64_t dim) {
    Shape sizes(std::vector<int64_t>(size_t(rank), 1));
    sizes[size_t(dim)] = t.numel();
    return t.view(sizes);
  };
  const TensorOptions options = TensorOptions(kInt64).device(x.tensor().device());
  const Tensor at = along(arange_of_size(x.size(time), options), time), count = along(lengths.tensor(), batch);
  return gather(x, time, expand(where(lt(at, count), sub(sub(count, at), 1), at), x.sizes()));
}

Tensor center_crop_pad(In x, Sizes shape, MaybeInts axes) {
  const int64_t rank = x.dim();
  IntList dims = axes ? wrapped("CenterCropPad", *axes, rank) : IntList();
  if (!axes)
    for (int64_t d = 0; d < rank; ++d) dims.push_back(d);
  check(dims.size() == shape.size(), "CenterCropPad: {} sizes for {} dimensions", shape.size(), dims.size());
  Tensor out = x.tensor();
  Shape pairs(std::vector<int64_t>(size_t(2 * rank), 0));
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t have = out.size(dims[i]), want = shape[i];
    if (want < have) out = narrow(out, dims[i], (have - want) / 2, want);
    if (want <= have) continue;
    pairs[size_t(2 * (rank - 1 - dims[i]))] = (want - have) / 2;
    pairs[size_t(2 * (rank - 1 - dims[i])) + 1] = want - have - (want - have) / 2;
  }
  return constant_pad_nd(out, pairs);
}

}  // namespace

std::span<const Function> shape_operators() {
  static const Function kList[] = {
      {"onnx::Transpose.1(Tensor data, *, int[]? perm=None) -> Tensor", transposed},
      {"onnx::Tile.6(Tensor input, int[] repeats) -> Tensor", [](In x, Sizes repeats) { return repeat(x, repeats); }},
      {"onnx::Pad.2(Tensor data, int[] pads, Scalar? constant_value=None, int[]? axes=None, *, str mode=\"constant\") -> Tensor",
       padded},
      {"onnx::DepthToSpace.1(Tensor input, *, int blocksize, str mode=\"DCR\") -> Tensor", depth_to_space},
      {"onnx::SpaceToDepth.1(Tensor input, *, int blocksize, str mode=\"DCR\") -> Tensor", space_to_depth},
      {"onnx::Trilu.14(Tensor input, int? k=None, *, int upper=1) -> Tensor", triangle},
      {"onnx::ReverseSequence.10(Tensor input, Tensor sequence_lens, *, int batch_axis=1, int time_axis=0) -> Tensor", reversed},
      {"onnx::CenterCropPad.18(Tensor input_data, int[] shape, *, int[]? axes=None) -> Tensor", center_crop_pad},
  };
  return kList;
}

}  // namespace sinter::interop::onnx
