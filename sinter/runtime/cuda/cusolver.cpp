#include "sinter/runtime/cuda/cusolver.h"

#include "sinter/base/error.h"
#include "sinter/runtime/cuda/device.h"

#if !defined(SINTER_NO_CUDA) && __has_include(<cusolverDn.h>) && __has_include(<cublas_v2.h>)
#include <cublas_v2.h>
#include <cusolverDn.h>

#include <climits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "sinter/base/stage_times.h"
#include "sinter/runtime/cuda/graph.h"
#include "sinter/runtime/cuda/library_search.h"
#include "sinter/runtime/cuda/memory.h"
#include "sinter/runtime/cuda/stream.h"

namespace sinter::runtime {

namespace {

#define SINTER_SOLVER_ALL(apply)                                                                                     \
  apply(Create) apply(SetStream) apply(CreateParams) apply(Xgetrf_bufferSize) apply(Xgetrf) apply(Xpotrf_bufferSize) \
      apply(Xpotrf) apply(Xgeqrf_bufferSize) apply(Xgeqrf) apply(Sorgqr_bufferSize) apply(Dorgqr_bufferSize)         \
          apply(Sorgqr) apply(Dorgqr) apply(Xsyevd_bufferSize) apply(Xsyevd) apply(Xgesvd_bufferSize) apply(Xgesvd)
#define SINTER_BLAS_ALL(apply) apply(Create_v2) apply(SetStream_v2) apply(Strsm_v2) apply(Dtrsm_v2)

struct Library {
  std::optional<DynamicLibrary> blas, solver;
  std::string problem;
#define SINTER_SOLVER(name) decltype(&::cusolverDn##name) name = nullptr;
  SINTER_SOLVER_ALL(SINTER_SOLVER)
#undef SINTER_SOLVER
#define SINTER_BLAS(name) decltype(&::cublas##name) Blas##name = nullptr;
  SINTER_BLAS_ALL(SINTER_BLAS)
#undef SINTER_BLAS

  Library() {
    blas = open_cuda_library("cuBLAS", {"libcublas.so.13", "libcublas.so.12", "libcublas.so"}, problem);
    if (blas)
      solver = open_cuda_library("cuSOLVER", {"libcusolver.so.12", "libcusolver.so.11", "libcusolver.so"}, problem);
    if (!solver) return;
    auto find = [&](const DynamicLibrary& file, auto& function, const char* name) {
      function = reinterpret_cast<std::decay_t<decltype(function)>>(file.find_symbol(name));
      if (!function && problem.empty()) problem = format("{} has no {}: it is too old", file.path(), name);
    };
#define SINTER_SOLVER(name) find(*solver, name, "cusolverDn" #name);
    SINTER_SOLVER_ALL(SINTER_SOLVER)
#undef SINTER_SOLVER
#define SINTER_BLAS(name) find(*blas, Blas##name, "cublas" #name);
    SINTER_BLAS_ALL(SINTER_BLAS)
#undef SINTER_BLAS
  }
};

// Never unloaded: it keeps device memory of its own.
Library& library() {
  static Library& all = *[] {
    StageTimer timer(CompileStage::kLibraries);
    return new Library;
  }();
  return all;
}

void solver_check(cusolverStatus_t status, const char* what) {
  if (status != CUSOLVER_STATUS_SUCCESS) throw_error(format("cuSOLVER: {} failed with status {}", what, int(status)));
}
void blas_check(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS) throw_error(format("cuBLAS: {} failed with status {}", what, int(status)));
}

// Lives as long as the process. The libraries' handles serve one thread at a time.
struct DeviceState {
  std::mutex lock;
  cusolverDnHandle_t solver = nullptr;
  cusolverDnParams_t parameters = nullptr;
  cublasHandle_t blas = nullptr;
};

DeviceState& state_of(int device) {
  static std::mutex lock;
  static auto& states = *new std::map<int, std::unique_ptr<DeviceState>>;
  std::lock_guard guard(lock);
  auto& state = states[device];
  if (!state) {
    StageTimer timer(CompileStage::kLibraries);
    auto made = std::make_unique<DeviceState>();
    solver_check(library().Create(&made->solver), "starting the library");
    solver_check(library().CreateParams(&made->parameters), "starting the library");
    blas_check(library().BlasCreate_v2(&made->blas), "starting the library");
    state = std::move(made);
  }
  return *state;
}

// The device's handles for this thread and its stream, while alive.
class Session {
 public:
  Session(const CudaMatrices& m, const char* what)
      : current_(m.device), state_(state_of(m.device)), lock_(state_.lock), m_(m) {
    check(!is_capturing_cuda_graph(), "{}: cuSOLVER's work is not recorded", what);
    auto stream = reinterpret_cast<cudaStream_t>(cuda_stream(m.device));
    solver_check(library().SetStream(state_.solver, stream), what);
    blas_check(library().BlasSetStream_v2(state_.blas, stream), what);
  }
  cusolverDnHandle_t solver() const { return state_.solver; }
  cusolverDnParams_t parameters() const { return state_.parameters; }
  cublasHandle_t blas() const { return state_.blas; }
  cudaDataType type() const { return m_.dtype == kFloat64 ? CUDA_R_64F : CUDA_R_32F; }
  int64_t item() const { return item_size(m_.dtype); }

  // The workspaces, device's and host's, that a function asks for: one for the whole batch, which runs one after the other.
  void take_workspace(size_t on_device, size_t on_host) {
    device_bytes_ = on_device;
    memory_ = on_device ? allocate_buffer(on_device, cuda(m_.device)) : BufferPtr();
    host_.resize(on_host);
  }
  void* on_device() const { return memory_ ? memory_->data() : nullptr; }
  size_t device_bytes() const { return device_bytes_; }
  void* on_host() { return host_.empty() ? nullptr : host_.data(); }
  size_t host_bytes() const { return host_.size(); }

  // body(i) for each matrix.
  template <class F>
  void each(F&& body) {
    for (int64_t i = 0; i < m_.count; ++i) body(i);
  }

 private:
  CudaDeviceGuard current_;
  DeviceState& state_;
  std::lock_guard<std::mutex> lock_;
  const CudaMatrices& m_;
  BufferPtr memory_;
  size_t device_bytes_ = 0;
  std::vector<char> host_;
};

// `elements` further on.
void* at(void* data, int64_t elements, int64_t item) {
  return data ? static_cast<char*>(data) + elements * item : nullptr;
}
const void* at(const void* data, int64_t elements, int64_t item) {
  return static_cast<const char*>(data) + elements * item;
}

int as_int(int64_t size, const char* what) {
  check(size <= INT_MAX, "{}: {} rows or columns are too many for the library", what, size);
  return int(size);
}

}  // namespace

const std::string& cusolver_problem() {
  static const std::string problem = cuda_is_available() ? library().problem : cuda_problem();
  return problem;
}

void cuda_lu(const CudaMatrices& m, void* a, int64_t* pivots, int32_t* info) {
  constexpr auto kWhat = "an LU factorisation";
  Session s(m, kWhat);
  size_t on_device = 0, on_host = 0;
  solver_check(library().Xgetrf_bufferSize(s.solver(), s.parameters(), m.rows, m.columns, s.type(), a, m.rows, s.type(),
                                           &on_device, &on_host),
               kWhat);
  s.take_workspace(on_device, on_host);
  s.each([&](int64_t i) {
    solver_check(
        library().Xgetrf(s.solver(), s.parameters(), m.rows, m.columns, s.type(),
                         at(a, i * m.rows * m.columns, s.item()), m.rows, pivots + i * std::min(m.rows, m.columns),
                         s.type(), s.on_device(), s.device_bytes(), s.on_host(), s.host_bytes(), info + i),
        kWhat);
  });
}

void cuda_cholesky(const CudaMatrices& m, void* a, int32_t* info) {
  constexpr auto kWhat = "a Cholesky factorisation";
  Session s(m, kWhat);
  size_t on_device = 0, on_host = 0;
  solver_check(library().Xpotrf_bufferSize(s.solver(), s.parameters(), CUBLAS_FILL_MODE_UPPER, m.rows, s.type(), a,
                                           m.rows, s.type(), &on_device, &on_host),
               kWhat);
  s.take_workspace(on_device, on_host);
  s.each([&](int64_t i) {
    solver_check(library().Xpotrf(s.solver(), s.parameters(), CUBLAS_FILL_MODE_UPPER, m.rows, s.type(),
                                  at(a, i * m.rows * m.rows, s.item()), m.rows, s.type(), s.on_device(),
                                  s.device_bytes(), s.on_host(), s.host_bytes(), info + i),
                 kWhat);
  });
}

void cuda_qr(const CudaMatrices& m, void* a, void* scales, int32_t* info) {
  constexpr auto kWhat = "a QR factorisation";
  Session s(m, kWhat);
  size_t on_device = 0, on_host = 0;
  solver_check(library().Xgeqrf_bufferSize(s.solver(), s.parameters(), m.rows, m.columns, s.type(), a, m.rows, s.type(),
                                           scales, s.type(), &on_device, &on_host),
               kWhat);
  s.take_workspace(on_device, on_host);
  s.each([&](int64_t i) {
    solver_check(library().Xgeqrf(s.solver(), s.parameters(), m.rows, m.columns, s.type(),
                                  at(a, i * m.rows * m.columns, s.item()), m.rows, s.type(),
                                  at(scales, i * std::min(m.rows, m.columns), s.item()), s.type(), s.on_device(),
                                  s.device_bytes(), s.on_host(), s.host_bytes(), info + i),
                 kWhat);
  });
}

void cuda_q(const CudaMatrices& m, int64_t reflectors, void* a, const void* scales, int32_t* info) {
  constexpr auto kWhat = "the vectors of a QR factorisation";
  Session s(m, kWhat);
  const int rows = as_int(m.rows, kWhat), columns = as_int(m.columns, kWhat), k = int(reflectors);
  auto run = [&]<class T>(T, auto size_of, auto function) {
    int elements = 0;
    solver_check(
        size_of(s.solver(), rows, columns, k, static_cast<const T*>(a), rows, static_cast<const T*>(scales), &elements),
        kWhat);
    s.take_workspace(size_t(elements) * sizeof(T), 0);
    s.each([&](int64_t i) {
      solver_check(
          function(s.solver(), rows, columns, k, static_cast<T*>(a) + i * m.rows * m.columns, rows,
                   static_cast<const T*>(scales) + i * reflectors, static_cast<T*>(s.on_device()), elements, info + i),
          kWhat);
    });
  };
  if (m.dtype == kFloat64)
    run(double(), library().Dorgqr_bufferSize, library().Dorgqr);
  else
    run(float(), library().Sorgqr_bufferSize, library().Sorgqr);
}

void cuda_eigh(const CudaMatrices& m, void* a, void* values, bool vectors, int32_t* info) {
  constexpr auto kWhat = "an eigenvalue decomposition";
  Session s(m, kWhat);
  const auto job = vectors ? CUSOLVER_EIG_MODE_VECTOR : CUSOLVER_EIG_MODE_NOVECTOR;
  size_t on_device = 0, on_host = 0;
  solver_check(library().Xsyevd_bufferSize(s.solver(), s.parameters(), job, CUBLAS_FILL_MODE_UPPER, m.rows, s.type(), a,
                                           m.rows, s.type(), values, s.type(), &on_device, &on_host),
               kWhat);
  s.take_workspace(on_device, on_host);
  s.each([&](int64_t i) {
    solver_check(
        library().Xsyevd(s.solver(), s.parameters(), job, CUBLAS_FILL_MODE_UPPER, m.rows, s.type(),
                         at(a, i * m.rows * m.rows, s.item()), m.rows, s.type(), at(values, i * m.rows, s.item()),
                         s.type(), s.on_device(), s.device_bytes(), s.on_host(), s.host_bytes(), info + i),
        kWhat);
  });
}

void cuda_svd(const CudaMatrices& m, void* a, void* values, void* u, void* vt, int32_t* info) {
  constexpr auto kWhat = "a singular value decomposition";
  SINTER_INTERNAL_ASSERT(m.rows >= m.columns, "cuda_svd: {} rows and {} columns", m.rows, m.columns);
  Session s(m, kWhat);
  const signed char job = u ? 'S' : 'N';
  const int64_t n = m.columns;
  size_t on_device = 0, on_host = 0;
  solver_check(
      library().Xgesvd_bufferSize(s.solver(), s.parameters(), job, job, m.rows, n, s.type(), a, m.rows, s.type(),
                                  values, s.type(), u, m.rows, s.type(), vt, n, s.type(), &on_device, &on_host),
      kWhat);
  s.take_workspace(on_device, on_host);
  s.each([&](int64_t i) {
    solver_check(
        library().Xgesvd(s.solver(), s.parameters(), job, job, m.rows, n, s.type(), at(a, i * m.rows * n, s.item()),
                         m.rows, s.type(), at(values, i * n, s.item()), s.type(), at(u, i * m.rows * n, s.item()),
                         m.rows, s.type(), at(vt, i * n * n, s.item()), n, s.type(), s.on_device(), s.device_bytes(),
                         s.on_host(), s.host_bytes(), info + i),
        kWhat);
  });
}

void cuda_solve_triangular(const CudaMatrices& m, const void* a, void* b, bool upper, bool unitriangular) {
  constexpr auto kWhat = "a triangular system";
  Session s(m, kWhat);
  const int rows = as_int(m.rows, kWhat), columns = as_int(m.columns, kWhat);
  auto run = [&]<class T>(T one, auto function) {
    s.each([&](int64_t i) {
      blas_check(function(s.blas(), CUBLAS_SIDE_RIGHT, upper ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER,
                          CUBLAS_OP_N, unitriangular ? CUBLAS_DIAG_UNIT : CUBLAS_DIAG_NON_UNIT, rows, columns, &one,
                          static_cast<const T*>(a) + i * m.columns * m.columns, columns,
                          static_cast<T*>(b) + i * m.rows * m.columns, rows),
                 kWhat);
    });
  };
  if (m.dtype == kFloat64)
    run(1.0, library().BlasDtrsm_v2);
  else
    run(1.0f, library().BlasStrsm_v2);
}

}  // namespace sinter::runtime

#else  // no headers of cuSOLVER

namespace sinter::runtime {

const std::string& cusolver_problem() {
  static const std::string problem = "this build of Sinter was made without the headers of cuSOLVER and cuBLAS";
  return problem;
}
void cuda_lu(const CudaMatrices&, void*, int64_t*, int32_t*) { throw_error("cuda_lu: " + cusolver_problem()); }
void cuda_cholesky(const CudaMatrices&, void*, int32_t*) { throw_error("cuda_cholesky: " + cusolver_problem()); }
void cuda_qr(const CudaMatrices&, void*, void*, int32_t*) { throw_error("cuda_qr: " + cusolver_problem()); }
void cuda_q(const CudaMatrices&, int64_t, void*, const void*, int32_t*) {
  throw_error("cuda_q: " + cusolver_problem());
}
void cuda_eigh(const CudaMatrices&, void*, void*, bool, int32_t*) { throw_error("cuda_eigh: " + cusolver_problem()); }
void cuda_svd(const CudaMatrices&, void*, void*, void*, void*, int32_t*) {
  throw_error("cuda_svd: " + cusolver_problem());
}
void cuda_solve_triangular(const CudaMatrices&, const void*, void*, bool, bool) {
  throw_error("cuda_solve_triangular: " + cusolver_problem());
}

}  // namespace sinter::runtime

#endif
