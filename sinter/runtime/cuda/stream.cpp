#include "sinter/runtime/cuda/stream.h"

#include "sinter/runtime/cuda/driver_api.h"

#if SINTER_HAS_CUDA
#include <array>
#include <utility>

#include "sinter/runtime/cuda/errors.h"

namespace sinter::runtime {

namespace {

constinit thread_local std::array<CudaStream, 64> chosen{};

}  // namespace

CudaStream cuda_stream(int device) {
  CudaStream common = cuda_device(device).stream;
  return chosen[device] ? chosen[device] : common;
}

CudaStreamGuard::CudaStreamGuard(int device, CudaStream stream) : device_(cuda_device(device).index) {
  previous_ = std::exchange(chosen[device_], stream);
}

CudaStreamGuard::~CudaStreamGuard() { chosen[device_] = previous_; }

OwnCudaStream::OwnCudaStream(int device) : device_(device), stream_(nullptr) {
  CudaDeviceGuard guard(device);
  check_driver(driver().cuStreamCreateWithPriority(&stream_, CU_STREAM_NON_BLOCKING, 0), "making a stream");
}

OwnCudaStream::~OwnCudaStream() {
  QuietDeviceGuard guard(device_);
  // Waits first: the driver may give the same handle to another stream, which would then take memory still in use.
  driver().cuStreamSynchronize(stream_);
  driver().cuStreamDestroy(stream_);
}

CudaEvent::CudaEvent(int device, bool timed) : device_(device), event_(nullptr) {
  CudaDeviceGuard guard(device);
  check_driver(driver().cuEventCreate(&event_, timed ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING), "making an event");
}

CudaEvent::~CudaEvent() {
  QuietDeviceGuard guard(device_);
  driver().cuEventDestroy(event_);
}

void CudaEvent::record(CudaStream stream) {
  CudaDeviceGuard guard(device_);
  check_driver(driver().cuEventRecord(event_, stream), "recording an event");
}

bool CudaEvent::is_done() const {
  CudaDeviceGuard guard(device_);
  CUresult result = driver().cuEventQuery(event_);
  if (result == CUDA_ERROR_NOT_READY) return false;
  check_driver(result, "asking for an event");
  return true;
}

void CudaEvent::wait() const {
  check_not_capturing("waiting for an event");
  CudaDeviceGuard guard(device_);
  check_driver(driver().cuEventSynchronize(event_), "waiting for an event");
}

void CudaEvent::hold_back(CudaStream stream) const {
  CudaDeviceGuard guard(device_);
  check_driver(driver().cuStreamWaitEvent(stream, event_, CU_EVENT_WAIT_DEFAULT), "letting a stream wait for an event");
}

double CudaEvent::milliseconds_since(const CudaEvent& start) const {
  CudaDeviceGuard guard(device_);
  float milliseconds = 0;
  check_driver(driver().cuEventElapsedTime(&milliseconds, start.event_, event_), "the time between two events");
  return milliseconds;
}

void cuda_synchronize(int device) {
  check_not_capturing("waiting for the device");
  CudaDeviceGuard guard(device);
  check_driver(driver().cuStreamSynchronize(cuda_stream(device)), "waiting for the device");
  check_cuda_errors(device);
}

}  // namespace sinter::runtime
#endif
