#include "sinter/runtime/cuda/cudnn_api.h"

#if SINTER_HAS_CUDNN
#include <algorithm>

#include "sinter/base/error.h"
#include "sinter/base/stage_times.h"
#include "sinter/runtime/cuda/library_search.h"

namespace sinter::runtime::dnn {

Library::Library() {
  const char* named = std::getenv("SINTER_CUDNN");
  file = named && *named ? open_cuda_library("cuDNN", {named}, problem)
                         : open_cuda_library("cuDNN", {"libcudnn.so.9", "libcudnn.so.8", "libcudnn.so"}, problem);
  if (!file) return;
  auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(file->find_symbol(name));
    if (!function && problem.empty()) problem = format("{} has no {}: it is too old", file->path(), name);
  };
  find(create, "cudnnCreate");
  find(set_stream, "cudnnSetStream");
  find(version, "cudnnGetVersion");
  find(error_text, "cudnnGetErrorString");
  find(create_descriptor, "cudnnBackendCreateDescriptor");
  find(destroy_descriptor, "cudnnBackendDestroyDescriptor");
  find(finalize, "cudnnBackendFinalize");
  find(set_attribute, "cudnnBackendSetAttribute");
  find(get_attribute, "cudnnBackendGetAttribute");
  find(execute, "cudnnBackendExecute");
}

Library& library() {
  static Library& all = *[] {
    StageTimer timer(CompileStage::kLibraries);
    return new Library;
  }();
  return all;
}

void dnn_check(cudnnStatus_t status, const char* what) {
  if (status != CUDNN_STATUS_SUCCESS)
    throw_error(format("cuDNN: {} failed: {} ({})", what, library().error_text(status), int(status)));
}

int64_t alignment(const void* pointer) {
  auto address = reinterpret_cast<uintptr_t>(pointer);
  return address % 16 == 0 ? 16 : address % 4 == 0 ? 4 : 2;
}

namespace {

cudnnDataType_t data_type(DType d) {
  switch (d) {
    case kFloat16:
      return CUDNN_DATA_HALF;
    case kBFloat16:
      return CUDNN_DATA_BFLOAT16;
    case kFloat32:
      return CUDNN_DATA_FLOAT;
    default:
      throw_error(format("cuda_convolution: cuDNN is not asked for convolutions of {}", d));
  }
}

// One spatial dimension becomes two, of which the first is 1: the library knows no fewer.
struct Shape {
  int rank;
  std::array<int64_t, 5> sizes, strides;
};
Shape widened(const CudaConvTensor& t, int spatial) {
  Shape out{spatial + 2, t.sizes, t.strides};
  if (spatial > 1) return out;
  out.rank = 4;
  out.sizes = {t.sizes[0], t.sizes[1], 1, t.sizes[2]};
  out.strides = {t.strides[0], t.strides[1], t.strides[2] * t.sizes[2], t.strides[2]};
  return out;
}
std::array<int64_t, 3> widened(const std::array<int64_t, 3>& given, int spatial, int64_t filler) {
  return spatial > 1 ? given : std::array<int64_t, 3>{filler, given[0], filler};
}

Descriptor tensor(const Shape& shape, int64_t id, cudnnDataType_t type, int64_t align, bool is_virtual = false) {
  Descriptor t(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  t.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type);
  t.set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, shape.rank, shape.sizes.data());
  t.set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, shape.rank, shape.strides.data());
  t.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, id);
  t.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, align);
  t.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, is_virtual);
  t.finalize();
  return t;
}

}  // namespace

Description::Description(cudnnHandle_t handle, const CudaConvolution& p) {
  parts_.reserve(24);  // references to the parts stay good
  if (p.kind == CudaConvKind::kForward)
    forward(p);
  else
    gradient(p);
  graph_.emplace(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph_->set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, int64_t(operations_.size()),
              operations_.data());
  graph_->set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, handle);
  graph_->finalize();
}

void Description::add(Descriptor operation) {
  operation.finalize();
  operations_.push_back(keep(std::move(operation)).handle());
}

const Descriptor& Description::convolution_of(const CudaConvolution& p) {
  Descriptor c(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  int64_t spatial = std::max(p.spatial, 2);
  auto stride = widened(p.stride, p.spatial, 1), padding = widened(p.padding, p.spatial, 0),
       dilation = widened(p.dilation, p.spatial, 1);
  c.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  c.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION);
  c.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, spatial);
  c.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, spatial, padding.data());
  c.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, spatial, padding.data());
  c.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, spatial, dilation.data());
  c.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, spatial, stride.data());
  c.finalize();
  return keep(std::move(c));
}

void Description::forward(const CudaConvolution& p) {
  cudnnDataType_t type = data_type(p.dtype);
  Shape x = widened(p.x, p.spatial), w = widened(p.w, p.spatial), y = widened(p.y, p.spatial);
  int64_t steps = (p.residual != nullptr) + (p.bias != nullptr) + (p.activation != CudaConvActivation::kNone);
  int64_t next = kFirstVirtual;
  // What lies between two steps stays in registers, in f32.
  auto result = [&]() -> const Descriptor& {
    return steps == 0 ? keep(tensor(y, kY, type, alignment(p.y.data)))
                      : keep(tensor(y, next++, CUDNN_DATA_FLOAT, 16, true));
  };
  const Descriptor* last = &result();
  Descriptor op(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
  op.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, convolution_of(p));
  op.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, keep(tensor(x, kX, type, alignment(p.x.data))));
  op.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, keep(tensor(w, kW, type, alignment(p.w.data))));
  op.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, *last);
  op.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_TYPE_FLOAT, 1.0f);
  op.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_TYPE_FLOAT, 0.0f);
  add(std::move(op));
  auto follow = [&](cudnnPointwiseMode_t mode, const Descriptor* other) {
    --steps;
    const Descriptor& to = result();
    pointwise(mode, *last, other, to);
    last = &to;
  };
  if (p.residual) follow(CUDNN_POINTWISE_ADD, &keep(tensor(y, kResidual, type, alignment(p.residual))));
  if (p.bias) {
    Shape bias{y.rank, {1, y.sizes[1], 1, 1, 1}, {y.sizes[1], 1, y.sizes[1], y.sizes[1], y.sizes[1]}};
    follow(CUDNN_POINTWISE_ADD, &keep(tensor(bias, kBias, type, alignment(p.bias))));
  }
  if (p.activation == CudaConvActivation::kRelu) follow(CUDNN_POINTWISE_RELU_FWD, nullptr);
}

void Description::gradient(const CudaConvolution& p) {
  check(!p.bias && !p.residual && p.activation == CudaConvActivation::kNone,
        "cuda_convolution: nothing follows a convolution's gradient");
  auto part = [&](const CudaConvTensor& t, Id id) -> const Descriptor& {
    return keep(tensor(widened(t, p.spatial), id, data_type(p.dtype), alignment(t.data)));
  };
  const bool data = p.kind == CudaConvKind::kData;
  Descriptor op(data ? CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR
                     : CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR);
  if (data) {
    op.set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, convolution_of(p));
    op.set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, part(p.w, kW));
    op.set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, part(p.y, kY));
    op.set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, part(p.x, kX));
    op.set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_TYPE_FLOAT, 1.0f);
    op.set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, CUDNN_TYPE_FLOAT, 0.0f);
  } else {
    op.set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, convolution_of(p));
    op.set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, part(p.x, kX));
    op.set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, part(p.y, kY));
    op.set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, part(p.w, kW));
    op.set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_TYPE_FLOAT, 1.0f);
    op.set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA, CUDNN_TYPE_FLOAT, 0.0f);
  }
  add(std::move(op));
}

void Description::pointwise(cudnnPointwiseMode_t mode, const Descriptor& x, const Descriptor* b, const Descriptor& y) {
  Descriptor kind(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  kind.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode);
  kind.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  kind.finalize();
  Descriptor op(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  op.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, keep(std::move(kind)));
  op.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
  if (b) op.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *b);
  op.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
  add(std::move(op));
}

}  // namespace sinter::runtime::dnn

#endif
