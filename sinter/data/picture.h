#pragma once
#include "sinter/base/error.h"
#include "sinter/tensor/memory_format.h"
#include "sinter/tensor/tensor.h"

namespace sinter::data {

// A tensor as a transform sees it: [channels, height, width], row by row in host memory. The Error names the transform.
struct Picture {
  Tensor tensor;
  int64_t channels, height, width;

  Picture(const char* op, const Tensor& image) {
    check(image.defined() && !image.is_traced() && image.device().is_cpu() && image.dim() == 3,
          "{}: a picture has the shape [channels, height, width] and is on the host", op);
    tensor = image;
    if (!image.is_contiguous()) {
      tensor = empty(image.sizes(), image.dtype());
      copy_packed(image, tensor.data_ptr());
    }
    const IntList& sizes = image.impl().sizes;
    channels = sizes[0];
    height = sizes[1];
    width = sizes[2];
  }
};

}  // namespace sinter::data
