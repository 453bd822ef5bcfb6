#pragma once
// The number in a traced tensor of one element, asked for only when the host needs it.
#include "sinter/tensor/tensor.h"

namespace sinter::capture {

class Recorder;

Scalar lazy_scalar(Recorder& recorder, const Tensor& tensor);

}  // namespace sinter::capture
