// Copies of elements in another order: joining, repeating, reversing, padding.
#include "sinter/interop/aten/table.h"
#include "sinter/ops/conv.h"
#include "sinter/ops/view.h"

namespace sinter::interop {

std::span<const Function> copy_functions() {
  static const Function kList[] = {
      {"cat(Tensor[] tensors, int dim=0) -> Tensor",
       [](const TensorList& tensors, Int dim) { return cat(tensors, dim); }},
      {"concat(Tensor[] tensors, int dim=0) -> Tensor",
       [](const TensorList& tensors, Int dim) { return cat(tensors, dim); }},
      {"concatenate(Tensor[] tensors, int dim=0) -> Tensor",
       [](const TensorList& tensors, Int dim) { return cat(tensors, dim); }},
      {"stack(Tensor[] tensors, int dim=0) -> Tensor",
       [](const TensorList& tensors, Int dim) { return stack(tensors, dim); }},
      {"hstack(Tensor[] tensors) -> Tensor", [](const TensorList& tensors) { return hstack(tensors); }},
      {"vstack(Tensor[] tensors) -> Tensor", [](const TensorList& tensors) { return vstack(tensors); }},
      {"dstack(Tensor[] tensors) -> Tensor", [](const TensorList& tensors) { return dstack(tensors); }},
      {"row_stack(Tensor[] tensors) -> Tensor", [](const TensorList& tensors) { return row_stack(tensors); }},
      {"column_stack(Tensor[] tensors) -> Tensor", [](const TensorList& tensors) { return column_stack(tensors); }},
      {"_chunk_cat(Tensor[] tensors, int dim, int num_chunks) -> Tensor",
       [](const TensorList& tensors, Int dim, Int num_chunks) { return _chunk_cat(tensors, dim, num_chunks); }},
      {"block_diag(Tensor[] tensors) -> Tensor", [](const TensorList& tensors) { return block_diag(tensors); }},
      {"cartesian_prod(Tensor[] tensors) -> Tensor", [](const TensorList& tensors) { return cartesian_prod(tensors); }},
      {"combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor", combinations},
      {"diag(Tensor self, int diagonal=0) -> Tensor", diag},
      {"diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor", diag_embed},
      {"diagflat(Tensor self, int offset=0) -> Tensor", diagflat},
      {"repeat(Tensor self, SymInt[] repeats) -> Tensor", repeat},
      {"tile(Tensor self, SymInt[] dims) -> Tensor", tile},
      {"repeat_interleave.self_int(Tensor self, SymInt repeats, int? dim=None, *, SymInt? output_size=None) -> Tensor",
       [](In x, const Dim& repeats, MaybeInt dim, Ignored) { return repeat_interleave(x, repeats, dim); }},
      {"repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, SymInt? output_size=None) -> "
       "Tensor",
       [](In x, const Tensor& repeats, MaybeInt dim, Ignored) { return repeat_interleave(x, repeats, dim); }},
      {"flip(Tensor self, int[] dims) -> Tensor", flip},
      {"fliplr(Tensor self) -> Tensor", fliplr},
      {"flipud(Tensor self) -> Tensor", flipud},
      {"roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor", roll},
      {"rot90(Tensor self, int k=1, int[] dims=[0, 1]) -> Tensor", rot90},
      {"pixel_shuffle(Tensor self, int upscale_factor) -> Tensor", pixel_shuffle},
      {"pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor", pixel_unshuffle},
      {"channel_shuffle(Tensor self, SymInt groups) -> Tensor", channel_shuffle},
      {"native_channel_shuffle(Tensor self, SymInt groups) -> Tensor", channel_shuffle},

      // --- pads
      {"constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor", constant_pad_nd},
      {"pad(Tensor self, SymInt[] pad, str mode=\"constant\", float? value=None) -> Tensor",
       [](In x, Sizes pads, Text mode, MaybeReal value) { return pad(x, pads, mode, value.value_or(0)); }},
      {"_pad_circular(Tensor self, SymInt[] pad) -> Tensor", [](In x, Sizes pads) { return pad(x, pads, "circular"); }},
      {"reflection_pad1d(Tensor self, SymInt[2] padding) -> Tensor", reflection_pad1d},
      {"reflection_pad2d(Tensor self, SymInt[4] padding) -> Tensor", reflection_pad2d},
      {"reflection_pad3d(Tensor self, SymInt[6] padding) -> Tensor", reflection_pad3d},
      {"replication_pad1d(Tensor self, SymInt[2] padding) -> Tensor", replication_pad1d},
      {"replication_pad2d(Tensor self, SymInt[4] padding) -> Tensor", replication_pad2d},
      {"replication_pad3d(Tensor self, SymInt[6] padding) -> Tensor", replication_pad3d},
  };
  return kList;
}

}  // namespace sinter::interop
