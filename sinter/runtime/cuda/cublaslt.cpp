#include "sinter/runtime/cuda/cublaslt.h"

#include "sinter/base/error.h"
#include "sinter/runtime/cuda/device.h"

#if !defined(SINTER_NO_CUDA) && __has_include(<cublasLt.h>)
#include <cublasLt.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "sinter/base/hash.h"
#include "sinter/base/stage_times.h"
#include "sinter/runtime/code_store.h"
#include "sinter/runtime/cuda/graph.h"
#include "sinter/runtime/cuda/library_search.h"
#include "sinter/runtime/cuda/memory.h"
#include "sinter/runtime/cuda/stream.h"

namespace sinter::runtime {

namespace {

constexpr size_t kWorkspaceBytes = size_t(32) << 20;
constexpr int kMaxSuggestions = 16;

struct Library {
  std::optional<DynamicLibrary> file;
  std::string problem;
#define SINTER_LT(name) decltype(&::cublasLt##name) name = nullptr;
#define SINTER_LT_ALL(apply)                                                                           \
  apply(Create) apply(GetVersion) apply(Matmul) apply(MatmulDescCreate) apply(MatmulDescDestroy)       \
      apply(MatmulDescSetAttribute) apply(MatrixLayoutCreate) apply(MatrixLayoutDestroy)               \
          apply(MatrixLayoutSetAttribute) apply(MatmulPreferenceCreate) apply(MatmulPreferenceDestroy) \
              apply(MatmulPreferenceSetAttribute) apply(MatmulAlgoGetHeuristic)
  SINTER_LT_ALL(SINTER_LT)
#undef SINTER_LT
  decltype(&::cublasLtGetStatusString) GetStatusString = nullptr;

  Library() {
    file = open_cuda_library("cuBLASLt", {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"}, problem);
    if (!file) return;
    auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::decay_t<decltype(function)>>(file->find_symbol(name));
      if (!function && problem.empty()) problem = format("{} has no {}: it is too old", file->path(), name);
    };
#define SINTER_LT(name) find(name, "cublasLt" #name);
    SINTER_LT_ALL(SINTER_LT)
#undef SINTER_LT
#undef SINTER_LT_ALL
    GetStatusString = reinterpret_cast<decltype(GetStatusString)>(file->find_symbol("cublasLtGetStatusString"));
  }
};

// Never unloaded: it keeps threads and device memory of its own.
Library& library() {
  static Library& all = *[] {
    StageTimer timer(CompileStage::kLibraries);
    return new Library;
  }();
  return all;
}

void lt_check(cublasStatus_t status, const std::string& what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  auto describe = library().GetStatusString;
  throw_error(format("cuBLASLt: {} failed: {} ({})", what, describe ? describe(status) : "status", int(status)));
}

// A descriptor of the library's that ends with its owner.
template <class T>
struct Owned {
  T* handle = nullptr;
  cublasStatus_t (*destroy)(T*) = nullptr;
  Owned() = default;
  Owned(const Owned&) = delete;
  ~Owned() {
    if (handle) destroy(handle);
  }
};
using OperationDescriptor = Owned<cublasLtMatmulDescOpaque_t>;
using LayoutDescriptor = Owned<cublasLtMatrixLayoutOpaque_t>;
using PreferenceDescriptor = Owned<cublasLtMatmulPreferenceOpaque_t>;

template <class V>
void set(const OperationDescriptor& to, cublasLtMatmulDescAttributes_t attribute, const V& value) {
  lt_check(library().MatmulDescSetAttribute(to.handle, attribute, &value, sizeof value), "describing the product");
}
template <class V>
void set(const LayoutDescriptor& to, cublasLtMatrixLayoutAttribute_t attribute, const V& value) {
  lt_check(library().MatrixLayoutSetAttribute(to.handle, attribute, &value, sizeof value), "describing a matrix");
}
template <class V>
void set(const PreferenceDescriptor& to, cublasLtMatmulPreferenceAttributes_t attribute, const V& value) {
  lt_check(library().MatmulPreferenceSetAttribute(to.handle, attribute, &value, sizeof value), "stating a preference");
}

cudaDataType_t data_type(DType d) {
  switch (d) {
    case kFloat16:
      return CUDA_R_16F;
    case kBFloat16:
      return CUDA_R_16BF;
    case kFloat32:
      return CUDA_R_32F;
    case kFloat64:
      return CUDA_R_64F;
    default:
      throw_error(format("cuda_matmul: matrices of {} are not multiplied by cuBLASLt", d));
  }
}

// How one row-major matrix looks to a library that counts by columns: its transpose, unless it is column-major itself.
struct View {
  int64_t leading = 1;
  bool column_major = false;
};
View view_of(const char* name, const CudaMatrix& x, int64_t rows, int64_t columns) {
  bool row_major = (x.column_stride == 1 || columns == 1) && (rows == 1 || x.row_stride >= columns);
  check(cuda_matmul_takes(rows, columns, x.row_stride, x.column_stride),
        "cuda_matmul: matrix {} of {}x{} has strides {} and {}; one must be 1 and the other as long as its line", name,
        rows, columns, x.row_stride, x.column_stride);
  if (row_major) return {rows == 1 ? columns : x.row_stride, false};
  return {columns == 1 ? rows : x.column_stride, true};
}

// The alignment that algorithms may count on; finer steps than these choose nothing.
int64_t alignment(const void* pointer) {
  auto address = reinterpret_cast<uintptr_t>(pointer);
  for (int64_t step : {256, 16, 8, 4, 2})
    if (address % uintptr_t(step) == 0) return step;
  return 1;
}

bool has_bias(CudaMatmulEpilogue e) {
  return e == CudaMatmulEpilogue::kBias || e == CudaMatmulEpilogue::kGeluBias || e == CudaMatmulEpilogue::kReluBias;
}
cublasLtEpilogue_t library_epilogue(CudaMatmulEpilogue e) {
  switch (e) {
    case CudaMatmulEpilogue::kNone:
      break;
    case CudaMatmulEpilogue::kBias:
      return CUBLASLT_EPILOGUE_BIAS;
    case CudaMatmulEpilogue::kGelu:
      return CUBLASLT_EPILOGUE_GELU;
    case CudaMatmulEpilogue::kGeluBias:
      return CUBLASLT_EPILOGUE_GELU_BIAS;
    case CudaMatmulEpilogue::kRelu:
      return CUBLASLT_EPILOGUE_RELU;
    case CudaMatmulEpilogue::kReluBias:
      return CUBLASLT_EPILOGUE_RELU_BIAS;
  }
  return CUBLASLT_EPILOGUE_DEFAULT;
}

// All that the choice of an algorithm depends on.
using Key = std::array<int64_t, 20>;
struct KeyHash {
  size_t operator()(const Key& key) const { return hash_bytes(key.data(), sizeof key); }
};
Key key_of(const CudaMatmul& p) {
  View a = view_of("a", p.a, p.m, p.k), b = view_of("b", p.b, p.k, p.n), c = view_of("c", p.c, p.m, p.n);
  check(!c.column_major, "cuda_matmul: the result must be row-major, not of strides {} and {}", p.c.row_stride,
        p.c.column_stride);
  bool many = p.batch > 1;
  bool bias = has_bias(p.epilogue);
  check(!bias || p.bias, "cuda_matmul: the epilogue adds a bias, and there is none");
  return {p.batch,
          p.m,
          p.n,
          p.k,
          int64_t(p.dtype),
          a.leading,
          b.leading,
          c.leading,
          a.column_major,
          b.column_major,
          many ? p.a.batch_stride : 0,
          many ? p.b.batch_stride : 0,
          many ? p.c.batch_stride : 0,
          p.beta != 0,
          p.tf32,
          int64_t(p.epilogue),
          alignment(p.a.data),
          alignment(p.b.data),
          p.added ? std::min(alignment(p.c.data), alignment(p.added)) : alignment(p.c.data),
          bias ? alignment(p.bias) : 0};
}

// What the library was told about a shape, and the algorithm for it. The lock is for the bias' address, which is part
// of the description.
struct Product {
  std::mutex lock;
  OperationDescriptor operation;
  LayoutDescriptor a, b, c;
  cublasLtMatmulAlgo_t algorithm{};
  bool remembered = false;  // from disk
};

// Lives as long as the process, and so does its memory.
struct DeviceState {
  std::mutex lock;
  cublasLtHandle_t handle = nullptr;
  std::map<CudaStream, void*> workspaces;  // products of two streams may run at the same time
  void* first_workspace = nullptr;
  std::unordered_map<Key, std::shared_ptr<Product>, KeyHash> products;
  std::string name;
};

DeviceState& state_of(int device) {
  static std::mutex lock;
  static auto& states = *new std::map<int, std::unique_ptr<DeviceState>>;
  std::lock_guard guard(lock);
  auto& state = states[device];
  if (!state) {
    StageTimer timer(CompileStage::kLibraries);
    auto made = std::make_unique<DeviceState>();
    lt_check(library().Create(&made->handle), "starting the library");
    made->first_workspace = cuda_allocator(device).allocate(kWorkspaceBytes);
    made->workspaces[cuda_stream(device)] = made->first_workspace;
    auto& info = cuda_device_info(device);
    made->name = format("{} {} {}", info.name, info.architecture(), info.multiprocessors);
    state = std::move(made);
  }
  return *state;
}

void* workspace_of(DeviceState& state, int device, CudaStream stream) {
  // What is recorded, on a stream of the moment, runs on the device's common one in the end; and a recording cannot
  // take memory.
  if (is_capturing_cuda_graph()) return state.first_workspace;
  std::lock_guard guard(state.lock);
  auto& workspace = state.workspaces[stream];
  if (!workspace) workspace = cuda_allocator(device).allocate(kWorkspaceBytes);
  return workspace;
}

std::string store_key(const DeviceState& state, const Key& key) {
  std::string problem;
  for (int64_t value : key) problem += format("{}{}", problem.empty() ? "" : " ", value);
  return make_key({{"kind", "cublaslt-choice"},
                   {"problem", problem},
                   {"library", format("{}", library().GetVersion())},
                   {"device", state.name},
                   {"workspace", format("{}", kWorkspaceBytes)},
                   {"format", "2"}});
}

// The product as the library sees it: cᵀ = bᵀ·aᵀ by columns.
std::shared_ptr<Product> describe(const CudaMatmul& p, const Key& key) {
  Library& lt = library();
  auto made = std::make_shared<Product>();
  bool wide = p.dtype == kFloat64;
  cudaDataType_t type = data_type(p.dtype);
  cublasComputeType_t compute = wide                            ? CUBLAS_COMPUTE_64F
                                : p.dtype == kFloat32 && p.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                                : CUBLAS_COMPUTE_32F;
  lt_check(lt.MatmulDescCreate(&made->operation.handle, compute, wide ? CUDA_R_64F : CUDA_R_32F),
           "describing a product");
  made->operation.destroy = lt.MatmulDescDestroy;
  int32_t first = key[9] ? CUBLAS_OP_T : CUBLAS_OP_N, second = key[8] ? CUBLAS_OP_T : CUBLAS_OP_N;
  set(made->operation, CUBLASLT_MATMUL_DESC_TRANSA, first);
  set(made->operation, CUBLASLT_MATMUL_DESC_TRANSB, second);
  set(made->operation, CUBLASLT_MATMUL_DESC_EPILOGUE, library_epilogue(p.epilogue));
  if (has_bias(p.epilogue)) set(made->operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.bias);
  auto layout = [&](LayoutDescriptor& to, int64_t rows, int64_t columns, bool column_major, int64_t leading,
                    int64_t stride) {
    if (!column_major) std::swap(rows, columns);
    lt_check(lt.MatrixLayoutCreate(&to.handle, type, uint64_t(rows), uint64_t(columns), leading),
             "describing a matrix");
    to.destroy = lt.MatrixLayoutDestroy;
    if (p.batch == 1) return;
    set(to, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, int32_t(p.batch));
    set(to, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, stride);
  };
  layout(made->a, p.m, p.k, key[8], key[5], p.a.batch_stride);
  layout(made->b, p.k, p.n, key[9], key[6], p.b.batch_stride);
  layout(made->c, p.m, p.n, false, key[7], p.c.batch_stride);
  return made;
}

std::vector<cublasLtMatmulHeuristicResult_t> suggestions(DeviceState& state, const CudaMatmul& p, const Key& key,
                                                         Product& product, int wanted) {
  Library& lt = library();
  PreferenceDescriptor preference;
  lt_check(lt.MatmulPreferenceCreate(&preference.handle), "stating preferences");
  preference.destroy = lt.MatmulPreferenceDestroy;
  set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t(kWorkspaceBytes));
  // Partial sums of a split product are added in the type they were computed in, not rounded to half first.
  set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, uint32_t(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, uint32_t(key[17]));
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, uint32_t(key[16]));
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, uint32_t(key[18]));
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, uint32_t(key[18]));
  std::vector<cublasLtMatmulHeuristicResult_t> found(size_t(wanted), cublasLtMatmulHeuristicResult_t{});
  int count = 0;
  auto status =
      lt.MatmulAlgoGetHeuristic(state.handle, product.operation.handle, product.b.handle, product.a.handle,
                                product.c.handle, product.c.handle, preference.handle, wanted, found.data(), &count);
  if (status != CUBLAS_STATUS_SUCCESS && status != CUBLAS_STATUS_NOT_SUPPORTED)
    lt_check(status, format("choosing an algorithm for {} products of {}x{}x{} {}", p.batch, p.m, p.n, p.k, p.dtype));
  found.resize(size_t(count));
  std::erase_if(found, [](auto& r) { return r.state != CUBLAS_STATUS_SUCCESS || r.workspaceSize > kWorkspaceBytes; });
  check(!found.empty(), "cuBLASLt has no algorithm for {} products of {}x{}x{} {} with epilogue {}", p.batch, p.m, p.n,
        p.k, p.dtype, int(p.epilogue));
  return found;
}

void remember(const DeviceState& state, const CudaMatmul& p, const Key& key, const cublasLtMatmulAlgo_t& algorithm) {
  process_store().save(store_key(state, key), {reinterpret_cast<const char*>(&algorithm), sizeof algorithm},
               format("{}x{}x{} {}", p.m, p.n, p.k, p.dtype));
}

std::shared_ptr<Product> find_product(DeviceState& state, const Key& key) {
  std::lock_guard guard(state.lock);
  auto found = state.products.find(key);
  return found == state.products.end() ? nullptr : found->second;
}

std::shared_ptr<Product> make_product(DeviceState& state, const CudaMatmul& p, const Key& key) {
  auto made = describe(p, key);
  // Not checked: that would take as long as a suggestion, for which the library first reads all it knows.
  if (auto bytes = process_store().load(store_key(state, key)); bytes && bytes->size() == sizeof made->algorithm) {
    std::memcpy(&made->algorithm, bytes->data(), sizeof made->algorithm);
    made->remembered = true;
  } else {
    made->algorithm = suggestions(state, p, key, *made, 1)[0].algo;
    remember(state, p, key, made->algorithm);
  }
  std::lock_guard guard(state.lock);
  return state.products.emplace(key, made).first->second;
}

cublasStatus_t queue(DeviceState& state, const CudaMatmul& p, Product& product, const cublasLtMatmulAlgo_t& algorithm,
                     void* workspace, CudaStream stream) {
  double wide_alpha = p.alpha, wide_beta = p.beta;
  bool wide = p.dtype == kFloat64;
  const void *alpha = wide ? static_cast<const void*>(&wide_alpha) : &p.alpha,
             *beta = wide ? static_cast<const void*>(&wide_beta) : &p.beta;
  std::lock_guard guard(product.lock);
  if (has_bias(p.epilogue)) set(product.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.bias);
  return library().Matmul(state.handle, product.operation.handle, alpha, p.b.data, product.b.handle, p.a.data,
                          product.a.handle, beta, p.added ? p.added : p.c.data, product.c.handle, p.c.data, product.c.handle,
                          &algorithm, workspace, kWorkspaceBytes, stream);
}

// A sum of no products.
void fill_zero(int device, const CudaMatmul& p) {
  check(p.beta == 0 && !has_bias(p.epilogue), "cuda_matmul: an empty sum with beta or a bias is not a product");
  size_t line = size_t(p.n * item_size(p.dtype));
  for (int64_t i = 0; i < p.batch; ++i)
    for (int64_t row = 0; row < p.m; ++row)
      cuda_fill(static_cast<char*>(p.c.data) + (i * p.c.batch_stride + row * p.c.row_stride) * item_size(p.dtype),
                device, 0, line);
}

bool prepare(int device, const CudaMatmul& p) {
  check(cublaslt_problem().empty(), "cuda_matmul: {}", cublaslt_problem());
  check(p.m >= 0 && p.n >= 0 && p.k >= 0 && p.batch >= 0 && p.batch <= INT32_MAX,
        "cuda_matmul: sizes {}x{}x{}, batch {}", p.m, p.n, p.k, p.batch);
  if (p.m == 0 || p.n == 0 || p.batch == 0) return false;
  if (p.k == 0) fill_zero(device, p);
  return p.k != 0;
}

}  // namespace

const std::string& cublaslt_problem() {
  static const std::string problem = cuda_is_available() ? library().problem : cuda_problem();
  return problem;
}

void prepare_cuda_matmul(int device, const CudaMatmul& p) {
  if (!cublaslt_problem().empty() || p.m <= 0 || p.n <= 0 || p.k <= 0 || p.batch <= 0) return;
  CudaDeviceGuard current(device);
  DeviceState& state = state_of(device);
  const Key key = key_of(p);
  if (find_product(state, key)) return;
  StageTimer timer(CompileStage::kLibraries);
  make_product(state, p, key);
}

void cuda_matmul(int device, const CudaMatmul& p) {
  if (!prepare(device, p)) return;
  CudaDeviceGuard current(device);
  DeviceState& state = state_of(device);
  const Key key = key_of(p);
  auto product = find_product(state, key);
  std::optional<StageTimer> first;  // the library loads a kernel when it is first used
  if (!product) [[unlikely]] {
    first.emplace(CompileStage::kLibraries);
    product = make_product(state, p, key);
  }
  CudaStream stream = cuda_stream(device);
  auto status = queue(state, p, *product, product->algorithm, workspace_of(state, device, stream), stream);
  if (status != CUBLAS_STATUS_SUCCESS && product->remembered) [[unlikely]] {
    auto other = describe(p, key);
    other->algorithm = suggestions(state, p, key, *other, 1)[0].algo;
    status = queue(state, p, *other, other->algorithm, workspace_of(state, device, stream), stream);
    if (status == CUBLAS_STATUS_SUCCESS) {
      remember(state, p, key, other->algorithm);
      std::lock_guard guard(state.lock);
      state.products[key] = other;
    }
  }
  if (status != CUBLAS_STATUS_SUCCESS) [[unlikely]]
    lt_check(status, format("{} products of {}x{}x{} {}", p.batch, p.m, p.n, p.k, p.dtype));
}

double tune_cuda_matmul(int device, const CudaMatmul& p, double seconds) {
  if (!prepare(device, p)) return 0;
  check(!is_capturing_cuda_graph(), "tune_cuda_matmul: nothing can be timed while a graph is recorded");
  CudaDeviceGuard current(device);
  DeviceState& state = state_of(device);
  Key key = key_of(p);
  auto product = describe(p, key);
  auto candidates = suggestions(state, p, key, *product, kMaxSuggestions);
  CudaStream stream = cuda_stream(device);
  void* workspace = workspace_of(state, device, stream);
  CudaEvent start(device), end(device);
  auto run = [&](const cublasLtMatmulAlgo_t& algorithm, int repeats) {
    start.record(stream);
    for (int i = 0; i < repeats; ++i)
      if (queue(state, p, *product, algorithm, workspace, stream) != CUBLAS_STATUS_SUCCESS) return -1.0;
    end.record(stream);
    end.wait();
    return end.milliseconds_since(start) / repeats;
  };
  double best = 0, budget = seconds * 1e3 / double(candidates.size());
  for (auto& candidate : candidates) {
    // The first run loads the kernel; the second says how many fit into the time.
    if (run(candidate.algo, 1) < 0) continue;
    double once = run(candidate.algo, 1);
    if (once < 0) continue;
    constexpr int kRounds = 5;
    int repeats = int(std::clamp(budget / (kRounds * std::max(once, 1e-3)), 1.0, 50.0));
    double fastest = once;
    for (int round = 0; round < kRounds; ++round) fastest = std::min(fastest, run(candidate.algo, repeats));
    if (fastest < 0 || (best != 0 && fastest >= best)) continue;
    best = fastest;
    product->algorithm = candidate.algo;
  }
  check(best != 0, "cuBLASLt: none of its {} suggestions for {} products of {}x{}x{} {} runs", candidates.size(),
        p.batch, p.m, p.n, p.k, p.dtype);
  remember(state, p, key, product->algorithm);
  std::lock_guard guard(state.lock);
  state.products[key] = product;
  return best * 1e3;
}

}  // namespace sinter::runtime

#else  // no headers of cuBLASLt

namespace sinter::runtime {

const std::string& cublaslt_problem() {
  static const std::string problem = "this build of Sinter was made without the headers of cuBLASLt";
  return problem;
}
void prepare_cuda_matmul(int, const CudaMatmul&) {}
void cuda_matmul(int, const CudaMatmul&) { throw_error("cuda_matmul: " + cublaslt_problem()); }
double tune_cuda_matmul(int, const CudaMatmul&, double) { throw_error("tune_cuda_matmul: " + cublaslt_problem()); }

}  // namespace sinter::runtime

#endif
