#pragma once
// The CUDA driver, loaded at run time, and what this folder keeps of each device. For the .cpp files of the backend
// only, since it brings in CUDA's own header; without that header it declares nothing and SINTER_HAS_CUDA is 0.
#if !defined(SINTER_NO_CUDA) && __has_include(<cuda.h>)
#define SINTER_HAS_CUDA 1
#include <cuda.h>

#include <string>

#include "sinter/base/error.h"
#include "sinter/runtime/cuda/device.h"

namespace sinter::runtime {

// Symbols are named with the version that a driver of CUDA 12.0 has; the header may know newer ones of the same type.
#define SINTER_DRIVER_FUNCTIONS(X)                                                              \
  X(cuInit, "cuInit")                                                                           \
  X(cuDriverGetVersion, "cuDriverGetVersion")                                                   \
  X(cuGetErrorName, "cuGetErrorName")                                                           \
  X(cuGetErrorString, "cuGetErrorString")                                                       \
  X(cuDeviceGetCount, "cuDeviceGetCount")                                                       \
  X(cuDeviceGet, "cuDeviceGet")                                                                 \
  X(cuDeviceGetName, "cuDeviceGetName")                                                         \
  X(cuDeviceGetAttribute, "cuDeviceGetAttribute")                                               \
  X(cuDeviceTotalMem, "cuDeviceTotalMem_v2")                                                    \
  X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain")                                       \
  X(cuCtxGetCurrent, "cuCtxGetCurrent")                                                         \
  X(cuCtxSetCurrent, "cuCtxSetCurrent")                                                         \
  X(cuStreamCreateWithPriority, "cuStreamCreateWithPriority")                                   \
  X(cuStreamDestroy, "cuStreamDestroy_v2")                                                      \
  X(cuStreamSynchronize, "cuStreamSynchronize")                                                 \
  X(cuStreamWaitEvent, "cuStreamWaitEvent")                                                     \
  X(cuStreamBeginCapture, "cuStreamBeginCapture_v2")                                            \
  X(cuStreamEndCapture, "cuStreamEndCapture")                                                   \
  X(cuThreadExchangeStreamCaptureMode, "cuThreadExchangeStreamCaptureMode")                     \
  X(cuEventCreate, "cuEventCreate")                                                             \
  X(cuEventDestroy, "cuEventDestroy_v2")                                                        \
  X(cuEventRecord, "cuEventRecord")                                                             \
  X(cuEventQuery, "cuEventQuery")                                                               \
  X(cuEventSynchronize, "cuEventSynchronize")                                                   \
  X(cuEventElapsedTime, "cuEventElapsedTime")                                                   \
  X(cuMemAlloc, "cuMemAlloc_v2")                                                                \
  X(cuMemFree, "cuMemFree_v2")                                                                  \
  X(cuMemGetInfo, "cuMemGetInfo_v2")                                                            \
  X(cuMemHostAlloc, "cuMemHostAlloc")                                                           \
  X(cuMemFreeHost, "cuMemFreeHost")                                                             \
  X(cuMemHostGetDevicePointer, "cuMemHostGetDevicePointer_v2")                                  \
  X(cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2")                                                  \
  X(cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2")                                                  \
  X(cuMemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2")                                                  \
  X(cuMemcpyPeerAsync, "cuMemcpyPeerAsync")                                                     \
  X(cuMemsetD8Async, "cuMemsetD8Async")                                                         \
  X(cuPointerGetAttribute, "cuPointerGetAttribute")                                             \
  X(cuModuleLoadData, "cuModuleLoadData")                                                       \
  X(cuModuleUnload, "cuModuleUnload")                                                           \
  X(cuModuleGetFunction, "cuModuleGetFunction")                                                 \
  X(cuFuncGetAttribute, "cuFuncGetAttribute")                                                   \
  X(cuFuncSetAttribute, "cuFuncSetAttribute")                                                   \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor, "cuOccupancyMaxActiveBlocksPerMultiprocessor") \
  X(cuLaunchKernelEx, "cuLaunchKernelEx")                                                       \
  X(cuGraphInstantiate, "cuGraphInstantiateWithFlags")                                          \
  X(cuGraphDestroy, "cuGraphDestroy")                                                           \
  X(cuGraphExecDestroy, "cuGraphExecDestroy")                                                   \
  X(cuGraphGetNodes, "cuGraphGetNodes")                                                         \
  X(cuGraphUpload, "cuGraphUpload")                                                             \
  X(cuGraphLaunch, "cuGraphLaunch")

struct DriverApi {
#define SINTER_MEMBER(name, symbol) decltype(&::name) name = nullptr;
  SINTER_DRIVER_FUNCTIONS(SINTER_MEMBER)
#undef SINTER_MEMBER
  int version = 0;  // 12040 for 12.4
};

// The driver, initialised; where there is none, an Error with cuda_problem().
const DriverApi& driver();

// Throws Error with the driver's name and text of the fault. `what` was attempted, "copying 64 bytes to cuda:0" say.
[[noreturn]] void throw_driver_error(CUresult result, const std::string& what);
inline void check_driver(CUresult result, const char* what) {
  if (result != CUDA_SUCCESS) [[unlikely]]
    throw_driver_error(result, what);
}

// A device in use. Never destroyed: tensors of static storage may outlive everything else.
struct CudaDevice {
  int index = 0;
  CUdevice handle = 0;
  CUcontext context = nullptr;  // the primary one, which the vendor's libraries use too
  CUstream stream = nullptr;    // of all threads
  CudaDeviceInfo info;
};
CudaDevice& cuda_device(int device);

// What was queued last on any stream, for messages about faults that the driver finds later (module.cpp).
std::string recent_cuda_kernels();
// Throws when this thread records a graph: `what` cannot be a part of one (graph.cpp).
void check_not_capturing(const char* what);
// Memory that is taken while a graph is recorded is the graph's for as long as it lives, whoever else lets go of it.
void hold_for_graph(void* data);
void let_go_of_graph_memory(int device, void* data) noexcept;

// CudaDeviceGuard for destructors: says nothing when the driver is gone, as it may be when the process ends.
class QuietDeviceGuard {
 public:
  explicit QuietDeviceGuard(int device);
  ~QuietDeviceGuard();
  QuietDeviceGuard(const QuietDeviceGuard&) = delete;

 private:
  CUcontext previous_ = nullptr;
};

// Lets this thread call what a recorded graph forbids but does not suffer from, such as loading code.
class RelaxedCapture {
 public:
  RelaxedCapture() { driver().cuThreadExchangeStreamCaptureMode(&mode_); }
  ~RelaxedCapture() { driver().cuThreadExchangeStreamCaptureMode(&mode_); }
  RelaxedCapture(const RelaxedCapture&) = delete;

 private:
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

}  // namespace sinter::runtime
#else
#define SINTER_HAS_CUDA 0
#endif
