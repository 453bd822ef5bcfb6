#include "sinter/runtime/cuda/cudnn.h"

#include "sinter/base/error.h"
#include "sinter/runtime/cuda/cudnn_api.h"
#include "sinter/runtime/cuda/device.h"

#if SINTER_HAS_CUDNN
#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "sinter/base/log.h"
#include "sinter/runtime/code_store.h"
#include "sinter/runtime/cuda/graph.h"
#include "sinter/runtime/cuda/memory.h"
#include "sinter/runtime/cuda/stream.h"

namespace sinter::runtime {

namespace {

using namespace dnn;

constexpr int64_t kMostWorkspace = int64_t(128) << 20;
constexpr int kMaxSuggestions = 16;

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
  int64_t head[] = {int64_t(p.dtype), int64_t(p.kind), p.spatial, p.tf32, int64_t(p.activation), alignment(p.x.data), alignment(p.w.data),
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
                   {"format", "3"}});
}

// Calls visit(plan, number) for the ways that work, until it says stop. For the same library, device and problem they
// come in the same order, so a number is all that the disk keeps of a winner.
template <class Visit>
void for_each_plan(DeviceState& state, const CudaConvolution& p, Visit&& visit) {
  Description description(state.handle, p);
  int number = 0;
  for (auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK})
    for (auto& configuration : configurations(description.graph(), mode)) {
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
