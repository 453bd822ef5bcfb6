#pragma once
// What a file of torch.save names outside of itself.
#include <string_view>

#include "sinter/tensor/dtype.h"

namespace sinter::data {

struct PtStorageType {
  std::string_view name;
  DType dtype;
};
inline constexpr PtStorageType kPtStorageTypes[] = {
    {"torch.DoubleStorage", kFloat64},    {"torch.FloatStorage", kFloat32}, {"torch.HalfStorage", kFloat16},
    {"torch.BFloat16Storage", kBFloat16}, {"torch.LongStorage", kInt64},    {"torch.IntStorage", kInt32},
    {"torch.ShortStorage", kInt16},       {"torch.CharStorage", kInt8},     {"torch.ByteStorage", kUInt8},
    {"torch.BoolStorage", kBool}};
inline constexpr std::string_view kPtOrderedDict = "collections.OrderedDict",
                                  kPtRebuildTensor = "torch._utils._rebuild_tensor_v2",
                                  kPtRebuildParameter = "torch._utils._rebuild_parameter";

}  // namespace sinter::data
