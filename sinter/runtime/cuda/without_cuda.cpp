// The same functions where the library was built without CUDA's headers: they say so.
#include "sinter/runtime/cuda/driver_api.h"

#if !SINTER_HAS_CUDA
#include "sinter/base/error.h"
#include "sinter/runtime/cuda/device.h"
#include "sinter/runtime/cuda/errors.h"
#include "sinter/runtime/cuda/graph.h"
#include "sinter/runtime/cuda/memory.h"
#include "sinter/runtime/cuda/module.h"
#include "sinter/runtime/cuda/stream.h"

namespace sinter::runtime {

namespace {

[[noreturn]] void unavailable() { throw_error("CUDA is not available: " + cuda_problem()); }

}  // namespace

bool cuda_is_available() { return false; }
const std::string& cuda_problem() {
  static const std::string& problem = *new std::string(
      "this build of Sinter has no CUDA backend. Build it again where cuda.h is found (the CUDA toolkit, CUDA_HOME) "
      "and with "
      "SINTER_CUDA=ON");
  return problem;
}
int cuda_device_count() { return 0; }
int cuda_driver_version() { return 0; }
std::string CudaDeviceInfo::architecture() const { return format("sm_{}{}", major, minor); }
const CudaDeviceInfo& cuda_device_info(int) { unavailable(); }
CudaDeviceGuard::CudaDeviceGuard(int) { unavailable(); }
CudaDeviceGuard::~CudaDeviceGuard() = default;

CudaStream cuda_stream(int) { unavailable(); }
CudaStreamGuard::CudaStreamGuard(int device, CudaStream) : device_(device), previous_(nullptr) { unavailable(); }
CudaStreamGuard::~CudaStreamGuard() = default;
OwnCudaStream::OwnCudaStream(int device) : device_(device), stream_(nullptr) { unavailable(); }
OwnCudaStream::~OwnCudaStream() = default;
CudaEvent::CudaEvent(int device, bool) : device_(device), event_(nullptr) { unavailable(); }
CudaEvent::~CudaEvent() = default;
void CudaEvent::record(CudaStream) { unavailable(); }
bool CudaEvent::is_done() const { unavailable(); }
void CudaEvent::wait() const { unavailable(); }
void CudaEvent::hold_back(CudaStream) const { unavailable(); }
double CudaEvent::milliseconds_since(const CudaEvent&) const { unavailable(); }
void cuda_synchronize(int) { unavailable(); }

Allocator& cuda_allocator(int) { unavailable(); }
CudaMemoryStats cuda_memory_stats(int) { unavailable(); }
void reset_cuda_memory_peak(int) { unavailable(); }
void empty_cuda_cache(int) { unavailable(); }
void set_cuda_memory_limit(int, size_t) { unavailable(); }
Allocator& pinned_allocator() { unavailable(); }
void cuda_copy(void*, Device, const void*, Device, size_t, bool) { unavailable(); }
void cuda_fill(void*, int, unsigned char, size_t) { unavailable(); }

int CudaFunction::registers() const { unavailable(); }
int CudaFunction::blocks_per_multiprocessor(int, int) const { unavailable(); }
std::vector<CudaFunction> load_cuda(std::span<const CudaSource>, std::string_view, int) { unavailable(); }
void cuda_launch(const CudaFunction&, int, const CudaGrid&, const void*, size_t) { unavailable(); }

std::unique_ptr<CudaGraph> CudaGraph::capture(int, FunctionRef<void()>) { unavailable(); }
CudaGraph::~CudaGraph() = default;
void CudaGraph::launch(CudaStream) const { unavailable(); }
bool is_capturing_cuda_graph() { return false; }

int64_t cuda_error_cell(int, const std::string&) { unavailable(); }
void check_cuda_errors(int) { unavailable(); }

}  // namespace sinter::runtime
#endif
