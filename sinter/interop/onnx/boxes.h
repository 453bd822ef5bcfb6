#pragma once
// Operators on regions of images whose work depends on the data.
#include "sinter/interop/onnx/operands.h"

namespace sinter::interop::onnx {

// Every region [x1, y1, x2, y2] as a picture of one size: means (or largest) of samples between the elements.
Tensor roi_align(In x, In rois, In batch, Text coordinates, Text mode, Int height, Int width, Int sampling, double scale);
// The boxes of each class in the order of their scores, without those that overlap a better one: [batch, class, box]. Reads boxes
// and scores on the host.
Tensor non_max_suppression(In boxes, In scores, MaybeInt most, MaybeReal overlap, MaybeReal least, bool is_center);
// A convolution that reads every element of its windows at a place moved by an offset.
Tensor deformable_convolution(In x, In weight, In offset, Maybe bias, Maybe mask, MaybeInts dilations, Int group, MaybeInts kernel,
                              Int offset_group, MaybeInts pads, MaybeInts strides);

}  // namespace sinter::interop::onnx
