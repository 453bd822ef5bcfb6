#pragma once
// Queues of work on a GPU, and points in time on them.
#include <cstdint>

struct CUstream_st;
struct CUevent_st;

namespace sinter::runtime {

using CudaStream = CUstream_st*;

// Where this thread's work on the device goes: one stream for all threads, unless a guard says otherwise. Work of one
// stream runs in order. A guard with a null stream returns to the common one.
CudaStream cuda_stream(int device);

class CudaStreamGuard {
 public:
  CudaStreamGuard(int device, CudaStream stream);
  ~CudaStreamGuard();
  CudaStreamGuard(const CudaStreamGuard&) = delete;

 private:
  int device_;
  CudaStream previous_;
};

// A stream of its own, beside the device's.
class OwnCudaStream {
 public:
  explicit OwnCudaStream(int device);
  ~OwnCudaStream();  // waits for its work
  OwnCudaStream(const OwnCudaStream&) = delete;
  CudaStream stream() const { return stream_; }

 private:
  int device_;
  CudaStream stream_;
};

class CudaEvent {
 public:
  explicit CudaEvent(int device, bool timed = true);
  ~CudaEvent();
  CudaEvent(const CudaEvent&) = delete;
  void record(CudaStream stream);
  bool is_done() const;
  void wait() const;                      // the calling thread waits
  void hold_back(CudaStream stream) const;  // what is queued on the stream from now on waits
  double milliseconds_since(const CudaEvent& start) const;

 private:
  int device_;
  CUevent_st* event_;
};

// Waits for all that was queued on this thread's stream of the device, then throws what kernels have reported
// (errors.h) or what the driver found wrong.
void cuda_synchronize(int device);

}  // namespace sinter::runtime
