#include "sinter/runtime/cuda/cudnn.h"

#include "sinter/base/error.h"
#include "sinter/runtime/cuda/device.h"

#if !defined(SINTER_NO_CUDA) && __has_include(<cudnn.h>)
#include <cudnn.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "sinter/base/log.h"
#include "sinter/base/stage_times.h"
#include "sinter/runtime/code_store.h"
#include "sinter/runtime/cuda/graph.h"
#include "sinter/runtime/cuda/library_search.h"
#include "sinter/runtime/cuda/memory.h"
#include "sinter/runtime/cuda/stream.h"

namespace sinter::runtime {

namespace {

constexpr int64_t kMostWorkspace = int64_t(128) << 20;
constexpr int kMaxSuggestions = 16;

struct Library {
  std::optional<DynamicLibrary> file;
  std::string problem;
  decltype(&::cudnnCreate) create = nullptr;
  decltype(&::cudnnSetStream) set_stream = nullptr;
  decltype(&::cudnnGetVersion) version = nullptr;
  decltype(&::cudnnGetErrorString) error_text = nullptr;
  decltype(&::cudnnBackendCreateDescriptor) create_descriptor = nullptr;
  decltype(&::cudnnBackendDestroyDescriptor) destroy_descriptor = nullptr;
  decltype(&::cudnnBackendFinalize) finalize = nullptr;
  decltype(&::cudnnBackendSetAttribute) set_attribute = nullptr;
  decltype(&::cudnnBackendGetAttribute) get_attribute = nullptr;
  decltype(&::cudnnBackendExecute) execute = nullptr;

  Library() {
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
};

// Never unloaded: it keeps device memory of its own.
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

// A descriptor of the library's backend interface: made, given attributes, finalized, then read only.
class Descriptor {
 public:
  explicit Descriptor(cudnnBackendDescriptorType_t type) {
    dnn_check(library().create_descriptor(type, &handle_), "making a descriptor");
  }
  Descriptor(Descriptor&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  ~Descriptor() {
    if (handle_) library().destroy_descriptor(handle_);
  }
  cudnnBackendDescriptor_t handle() const { return handle_; }

  template <class T>
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count, const T* values) {
    dnn_check(library().set_attribute(handle_, name, type, count, values), "describing a convolution");
  }
  template <class T>
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const T& value) {
    set(name, type, 1, &value);
  }
  void set(cudnnBackendAttributeName_t name, const Descriptor& part) {
    set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, part.handle_);
  }
  cudnnStatus_t try_finalize() { return library().finalize(handle_); }
  void finalize() { dnn_check(try_finalize(), "describing a convolution"); }

 private:
  cudnnBackendDescriptor_t handle_ = nullptr;
};

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

enum Id : int64_t { kX = 1, kW, kY, kBias, kResidual, kFirstVirtual };

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

int64_t alignment(const void* pointer) {
  auto address = reinterpret_cast<uintptr_t>(pointer);
  return address % 16 == 0 ? 16 : address % 4 == 0 ? 4 : 2;
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

// The convolution and what follows it as a graph of the library's.
struct Description {
  std::vector<Descriptor> parts;  // what the operations point to
  std::vector<cudnnBackendDescriptor_t> operations;
  std::optional<Descriptor> graph;

  const Descriptor& keep(Descriptor part) { return parts.emplace_back(std::move(part)); }

  Description(cudnnHandle_t handle, const CudaConvolution& p) {
    parts.reserve(24);  // references to the parts stay good
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
    convolution(p, keep(tensor(x, kX, type, alignment(p.x.data))), keep(tensor(w, kW, type, alignment(p.w.data))),
                *last);
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
    graph.emplace(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    graph->set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, int64_t(operations.size()),
               operations.data());
    graph->set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, handle);
    graph->finalize();
  }

  void convolution(const CudaConvolution& p, const Descriptor& x, const Descriptor& w, const Descriptor& y) {
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
    Descriptor op(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
    op.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, keep(std::move(c)));
    op.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, x);
    op.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, w);
    op.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, y);
    op.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_TYPE_FLOAT, 1.0f);
    op.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_TYPE_FLOAT, 0.0f);
    op.finalize();
    operations.push_back(keep(std::move(op)).handle());
  }

  void pointwise(cudnnPointwiseMode_t mode, const Descriptor& x, const Descriptor* b, const Descriptor& y) {
    Descriptor kind(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    kind.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode);
    kind.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
    kind.finalize();
    Descriptor op(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    op.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, keep(std::move(kind)));
    op.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    if (b) op.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *b);
    op.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    op.finalize();
    operations.push_back(keep(std::move(op)).handle());
  }
};

// Ways to compute the graph, the library's favourite first.
std::vector<Descriptor> configurations(const Descriptor& graph, cudnnBackendHeurMode_t mode) {
  std::vector<Descriptor> found;
  Descriptor heuristic(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
  if (heuristic.try_finalize() != CUDNN_STATUS_SUCCESS) return found;
  std::vector<cudnnBackendDescriptor_t> handles;
  for (int i = 0; i < kMaxSuggestions; ++i)
    handles.push_back(found.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR).handle());
  int64_t count = 0;
  auto status = library().get_attribute(heuristic.handle(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                        CUDNN_TYPE_BACKEND_DESCRIPTOR, kMaxSuggestions, &count, handles.data());
  if (status != CUDNN_STATUS_SUCCESS) count = 0;
  while (int64_t(found.size()) > count) found.pop_back();
  return found;
}

// Whether a way rounds f32 to less before it multiplies.
bool loses_precision(const Descriptor& configuration) {
  Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t handle = engine.handle();
  int64_t count = 0;
  if (library().get_attribute(configuration.handle(), CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                              &count, &handle) != CUDNN_STATUS_SUCCESS)
    return false;
  cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
  if (library().get_attribute(handle, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                              CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &count, notes) != CUDNN_STATUS_SUCCESS)
    return false;
  return std::any_of(notes, notes + count, [](auto note) {
    return note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE || note == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS;
  });
}

struct Plan {
  Descriptor execution{CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR};
  int64_t workspace = 0;
};

// The plan of a way, where the library can make one within the workspace.
std::shared_ptr<Plan> plan_of(cudnnHandle_t handle, const Descriptor& configuration) {
  auto made = std::make_shared<Plan>();
  made->execution.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, handle);
  made->execution.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
  if (made->execution.try_finalize() != CUDNN_STATUS_SUCCESS) return nullptr;
  int64_t count = 0;
  dnn_check(library().get_attribute(made->execution.handle(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                    CUDNN_TYPE_INT64, 1, &count, &made->workspace),
            "asking for a workspace's size");
  return made->workspace <= kMostWorkspace ? made : nullptr;
}

// Lives as long as the process, and so does its memory.
struct DeviceState {
  std::mutex lock;  // the library's handle serves one thread at a time
  cudnnHandle_t handle = nullptr;
  CudaStream first_stream = nullptr;
  std::map<CudaStream, std::pair<void*, int64_t>> workspaces;
  std::unordered_map<std::string, std::shared_ptr<Plan>> plans;  // by bytes_of; null: there is no way
  std::string name;
};

DeviceState& state_of(int device) {
  static std::mutex lock;
  static auto& states = *new std::map<int, std::unique_ptr<DeviceState>>;
  std::lock_guard guard(lock);
  auto& state = states[device];
  if (!state) {
    auto made = std::make_unique<DeviceState>();
    dnn_check(library().create(&made->handle), "starting the library");
    made->first_stream = cuda_stream(device);
    auto& info = cuda_device_info(device);
    made->name = format("{} {} {}", info.name, info.architecture(), info.multiprocessors);
    state = std::move(made);
  }
  return *state;
}

// All that the choice of a way depends on, for every call: numbers in binary.
std::string bytes_of(const CudaConvolution& p) {
  int64_t head[] = {int64_t(p.dtype), p.spatial, p.tf32, int64_t(p.activation), alignment(p.x.data), alignment(p.w.data),
                    alignment(p.y.data), p.bias ? alignment(p.bias) : 0, p.residual ? alignment(p.residual) : 0};
  std::string out(reinterpret_cast<const char*>(head), sizeof head);
  auto add = [&](const auto& values) { out.append(reinterpret_cast<const char*>(values.data()), sizeof values); };
  for (auto* t : {&p.x, &p.w, &p.y}) add(t->sizes), add(t->strides);
  for (auto* values : {&p.stride, &p.padding, &p.dilation}) add(*values);
  return out;
}

// The same for people and for the disk.
std::string key_of(const CudaConvolution& p) {
  std::string key = format("{} {}d", p.dtype, p.spatial), bytes = bytes_of(p);
  std::vector<int64_t> numbers(bytes.size() / sizeof(int64_t));
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  for (int64_t number : numbers) key += format(" {}", number);
  return key;
}

std::string store_key(const DeviceState& state, const std::string& key) {
  return make_key({{"kind", "cudnn-choice"},
                   {"problem", key},
                   {"library", format("{}", library().version())},
                   {"device", state.name},
                   {"format", "2"}});
}

// Calls visit(plan, number) for the ways that work, until it says stop. For the same library, device and problem they
// come in the same order, so a number is all that the disk keeps of a winner.
template <class Visit>
void for_each_plan(DeviceState& state, const CudaConvolution& p, Visit&& visit) {
  Description description(state.handle, p);
  int number = 0;
  for (auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK})
    for (auto& configuration : configurations(*description.graph, mode)) {
      int own = number++;
      if (p.dtype == kFloat32 && !p.tf32 && loses_precision(configuration)) continue;
      if (!visit([&] { return plan_of(state.handle, configuration); }, own)) return;
    }
}

// The lock of the state is held. Null when the library has no way.
std::shared_ptr<Plan> planned(DeviceState& state, const CudaConvolution& p) {
  const std::string bytes = bytes_of(p);
  if (auto found = state.plans.find(bytes); found != state.plans.end()) return found->second;
  const std::string key = key_of(p);
  std::shared_ptr<Plan> chosen;
  int wanted = -1;
  if (auto text = process_store().load(store_key(state, key))) wanted = std::atoi(text->c_str());
  for (bool any : {false, true}) {
    if (chosen || (!any && wanted < 0)) continue;
    try {
      for_each_plan(state, p, [&](auto&& make, int number) {
        if (any || number == wanted) chosen = make();
        return !chosen;
      });
    } catch (const Error& error) {  // a graph that it does not even describe
      log(LogTopic::kPerf, "{}: {}", key, error.message());
    }
  }
  return state.plans[bytes] = chosen;
}

// What is recorded, on a stream of the moment, runs on the device's common one in the end and uses its workspace. A
// workspace that was outgrown may still be in use, and stays.
void* workspace_of(DeviceState& state, int device, CudaStream stream, int64_t bytes) {
  if (bytes == 0) return nullptr;
  auto& [data, size] = state.workspaces[is_capturing_cuda_graph() ? state.first_stream : stream];
  if (size < bytes) {
    check(!is_capturing_cuda_graph(),
          "cuda_convolution: prepare_cuda_convolution must come before a graph is recorded");
    data = cuda_allocator(device).allocate(size_t(bytes));
    size = bytes;
  }
  return data;
}

cudnnStatus_t queue(DeviceState& state, const CudaConvolution& p, const Plan& plan, int device, CudaStream stream) {
  void* pointers[] = {p.x.data, p.w.data, p.y.data, const_cast<void*>(p.bias), const_cast<void*>(p.residual)};
  int64_t ids[] = {kX, kW, kY, kBias, kResidual};
  int64_t count = 3;
  for (int i = 3; i < 5; ++i)
    if (pointers[i]) {
      pointers[count] = pointers[i];
      ids[count++] = ids[i];
    }
  Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, pointers);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, ids);
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace_of(state, device, stream, plan.workspace));
  pack.finalize();
  dnn_check(library().set_stream(state.handle, stream), "choosing a stream");
  return library().execute(state.handle, plan.execution.handle(), pack.handle());
}

void check_problem(const CudaConvolution& p) {
  check(cudnn_problem().empty(), "cuda_convolution: {}", cudnn_problem());
  check(p.spatial >= 1 && p.spatial <= 3, "cuda_convolution: {} spatial dimensions", p.spatial);
}

}  // namespace

const std::string& cudnn_problem() {
  static const std::string problem = cuda_is_available() ? library().problem : cuda_problem();
  return problem;
}

bool prepare_cuda_convolution(int device, const CudaConvolution& p) {
  check_problem(p);
  CudaDeviceGuard current(device);
  DeviceState& state = state_of(device);
  std::lock_guard guard(state.lock);
  auto plan = planned(state, p);
  if (plan) workspace_of(state, device, state.first_stream, plan->workspace);
  return plan != nullptr;
}

void cuda_convolution(int device, const CudaConvolution& p) {
  check_problem(p);
  CudaDeviceGuard current(device);
  DeviceState& state = state_of(device);
  std::lock_guard guard(state.lock);
  auto plan = planned(state, p);
  check(plan != nullptr, "cuDNN has no way to compute this convolution: {}", key_of(p));
  dnn_check(queue(state, p, *plan, device, cuda_stream(device)), "a convolution");
}

double tune_cuda_convolution(int device, const CudaConvolution& p, double seconds) {
  check_problem(p);
  check(!is_capturing_cuda_graph(), "tune_cuda_convolution: nothing can be timed while a graph is recorded");
  CudaDeviceGuard current(device);
  DeviceState& state = state_of(device);
  std::lock_guard guard(state.lock);
  CudaStream stream = cuda_stream(device);
  CudaEvent start(device), end(device);
  auto run = [&](const Plan& plan, int repeats) {
    start.record(stream);
    for (int i = 0; i < repeats; ++i)
      if (queue(state, p, plan, device, stream) != CUDNN_STATUS_SUCCESS) return -1.0;
    end.record(stream);
    end.wait();
    return end.milliseconds_since(start) / repeats;
  };
  std::shared_ptr<Plan> best;
  double best_ms = 0, budget = seconds * 1e3 / kMaxSuggestions;
  int best_number = -1;
  for_each_plan(state, p, [&](auto&& make, int number) {
    auto plan = make();
    // The first run loads the kernels; the second says how many fit into the time.
    double once = plan && run(*plan, 1) >= 0 ? run(*plan, 1) : -1;
    if (once < 0 || (best && once > 4 * best_ms)) return true;
    constexpr int kRounds = 5;
    int repeats = int(std::clamp(budget / (kRounds * std::max(once, 1e-3)), 1.0, 50.0));
    double fastest = once;
    for (int round = 0; round < kRounds; ++round) fastest = std::min(fastest, run(*plan, repeats));
    if (fastest >= 0 && (!best || fastest < best_ms)) best = plan, best_ms = fastest, best_number = number;
    return number + 1 < kMaxSuggestions;
  });
  std::string key = key_of(p);
  check(best != nullptr, "cuDNN has no way to compute this convolution: {}", key);
  state.plans[bytes_of(p)] = best;
  process_store().save(store_key(state, key), format("{}", best_number), format("{}d convolution {}", p.spatial, p.dtype));
  return best_ms * 1e3;
}

}  // namespace sinter::runtime

#else  // no headers of cuDNN

namespace sinter::runtime {

const std::string& cudnn_problem() {
  static const std::string problem = "this build of Sinter was made without the headers of cuDNN";
  return problem;
}
bool prepare_cuda_convolution(int, const CudaConvolution&) { throw_error("cuda_convolution: " + cudnn_problem()); }
void cuda_convolution(int, const CudaConvolution&) { throw_error("cuda_convolution: " + cudnn_problem()); }
double tune_cuda_convolution(int, const CudaConvolution&, double) {
  throw_error("tune_cuda_convolution: " + cudnn_problem());
}

}  // namespace sinter::runtime

#endif
