#include "sinter/runtime/cuda/cufft.h"

#include "sinter/base/error.h"
#include "sinter/runtime/cuda/device.h"

#if !defined(SINTER_NO_CUDA) && __has_include(<cufft.h>)
#include <cufft.h>

#include <list>
#include <memory>
#include <mutex>
#include <optional>

#include "sinter/base/stage_times.h"
#include "sinter/runtime/cuda/graph.h"
#include "sinter/runtime/cuda/library_search.h"
#include "sinter/runtime/cuda/stream.h"

namespace sinter::runtime {

namespace {

constexpr size_t kMostPlans = 128;

#define SINTER_FFT_ALL(apply)                                                                                     \
  apply(Create) apply(Destroy) apply(SetAutoAllocation) apply(MakePlanMany64) apply(SetWorkArea) apply(SetStream) \
      apply(ExecC2C) apply(ExecR2C) apply(ExecC2R) apply(ExecZ2Z) apply(ExecD2Z) apply(ExecZ2D)

struct Library {
  std::optional<DynamicLibrary> file;
  std::string problem;
#define SINTER_FFT(name) decltype(&::cufft##name) name = nullptr;
  SINTER_FFT_ALL(SINTER_FFT)
#undef SINTER_FFT

  Library() {
    file = open_cuda_library("cuFFT", {"libcufft.so.12", "libcufft.so.11", "libcufft.so"}, problem);
    if (!file) return;
    auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::decay_t<decltype(function)>>(file->find_symbol(name));
      if (!function && problem.empty()) problem = format("{} has no {}: it is too old", file->path(), name);
    };
#define SINTER_FFT(name) find(name, "cufft" #name);
    SINTER_FFT_ALL(SINTER_FFT)
#undef SINTER_FFT
#undef SINTER_FFT_ALL
  }
};

// Never unloaded: it keeps kernels on the device.
Library& library() {
  static Library& all = *[] {
    StageTimer timer(CompileStage::kLibraries);
    return new Library;
  }();
  return all;
}

void fft_check(cufftResult status, const char* what) {
  if (status != CUFFT_SUCCESS) throw_error(format("cuFFT: {} failed with status {}", what, int(status)));
}

struct Plan {
  std::vector<int64_t> key;
  int device = 0;
  std::mutex lock;  // its stream and workspace are set before each use
  cufftHandle handle = CUFFT_PLAN_NULL;
  size_t workspace = 0;
  Plan() = default;
  Plan(const Plan&) = delete;
  ~Plan() {
    if (handle == CUFFT_PLAN_NULL) return;
    CudaDeviceGuard current(device);
    library().Destroy(handle);
  }
};

cufftType type_of(const CudaFft& fft) {
  const bool wide = fft.dtype == kFloat64;
  switch (fft.kind) {
    case CudaFftKind::kComplex:
      return wide ? CUFFT_Z2Z : CUFFT_C2C;
    case CudaFftKind::kRealToComplex:
      return wide ? CUFFT_D2Z : CUFFT_R2C;
    case CudaFftKind::kComplexToReal:
      break;
  }
  return wide ? CUFFT_Z2D : CUFFT_C2R;
}

std::shared_ptr<Plan> make_plan(const CudaFft& fft, std::vector<int64_t> key) {
  check(!is_capturing_cuda_graph(), "cuFFT: a plan cannot be made while a graph is recorded");
  StageTimer timer(CompileStage::kLibraries);
  auto plan = std::make_shared<Plan>();
  plan->key = std::move(key);
  plan->device = fft.device;
  fft_check(library().Create(&plan->handle), "making a plan");
  fft_check(library().SetAutoAllocation(plan->handle, 0), "making a plan");
  std::vector<long long> sizes(fft.n.begin(), fft.n.end());
  // Without embeddings blocks lie one behind another.
  fft_check(library().MakePlanMany64(plan->handle, int(sizes.size()), sizes.data(), nullptr, 1, 0, nullptr, 1, 0,
                                     type_of(fft), fft.batch, &plan->workspace),
            "making a plan");
  return plan;
}

// The most recently used first. What is dropped lives on in who is using it.
std::shared_ptr<Plan> plan_of(const CudaFft& fft) {
  static std::mutex mutex;
  static auto& plans = *new std::list<std::shared_ptr<Plan>>;
  std::vector<int64_t> key{fft.device, int64_t(type_of(fft)), fft.batch};
  key.insert(key.end(), fft.n.begin(), fft.n.end());
  std::lock_guard guard(mutex);
  for (auto plan = plans.begin(); plan != plans.end(); ++plan)
    if ((*plan)->key == key) {
      plans.splice(plans.begin(), plans, plan);
      return plans.front();
    }
  plans.push_front(make_plan(fft, std::move(key)));
  if (plans.size() > kMostPlans) plans.pop_back();
  return plans.front();
}

}  // namespace

const std::string& cufft_problem() {
  static const std::string problem = cuda_is_available() ? library().problem : cuda_problem();
  return problem;
}

int64_t cuda_fft_workspace(const CudaFft& fft) {
  CudaDeviceGuard current(fft.device);
  return int64_t(plan_of(fft)->workspace);
}

void cuda_fft(const CudaFft& fft, void* x, void* y, void* workspace) {
  constexpr auto kWhat = "a transform";
  CudaDeviceGuard current(fft.device);
  auto plan = plan_of(fft);
  std::lock_guard guard(plan->lock);
  Library& lib = library();
  fft_check(lib.SetStream(plan->handle, reinterpret_cast<cudaStream_t>(cuda_stream(fft.device))), kWhat);
  if (plan->workspace) fft_check(lib.SetWorkArea(plan->handle, workspace), kWhat);
  const int direction = fft.forward ? CUFFT_FORWARD : CUFFT_INVERSE;
  auto run = [&]<class Real, class Complex>(Real, Complex, auto c2c, auto r2c, auto c2r) {
    auto *complex_x = static_cast<Complex*>(x), *complex_y = static_cast<Complex*>(y);
    switch (fft.kind) {
      case CudaFftKind::kComplex:
        return fft_check(c2c(plan->handle, complex_x, complex_y, direction), kWhat);
      case CudaFftKind::kRealToComplex:
        return fft_check(r2c(plan->handle, static_cast<Real*>(x), complex_y), kWhat);
      case CudaFftKind::kComplexToReal:
        return fft_check(c2r(plan->handle, complex_x, static_cast<Real*>(y)), kWhat);
    }
  };
  if (fft.dtype == kFloat64)
    run(cufftDoubleReal(), cufftDoubleComplex(), lib.ExecZ2Z, lib.ExecD2Z, lib.ExecZ2D);
  else
    run(cufftReal(), cufftComplex(), lib.ExecC2C, lib.ExecR2C, lib.ExecC2R);
}

}  // namespace sinter::runtime

#else  // no headers of cuFFT

namespace sinter::runtime {

const std::string& cufft_problem() {
  static const std::string problem = "this build of Sinter was made without the headers of cuFFT";
  return problem;
}
int64_t cuda_fft_workspace(const CudaFft&) { throw_error("cuda_fft: " + cufft_problem()); }
void cuda_fft(const CudaFft&, void*, void*, void*) { throw_error("cuda_fft: " + cufft_problem()); }

}  // namespace sinter::runtime

#endif
