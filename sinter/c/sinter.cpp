#include "sinter/c/sinter.h"

#include <new>
#include <optional>

#include "sinter/base/error.h"
#include "sinter/base/thread_pool.h"
#include "sinter/c/program.h"
#include "sinter/interop/aten/table.h"
#include "sinter/interop/json_api.h"
#include "sinter/ops/creation.h"
#include "sinter/runtime/cuda/stream.h"
#include "sinter/tensor/dlpack_exchange.h"

using namespace sinter;

namespace {

struct Failure {
  std::string message, node;
};
Failure& last_failure() {
  thread_local Failure failure;
  return failure;
}

// "… in node 'add_1' (aten.add.Tensor)": the outermost node is named last.
std::string node_of(std::string_view message) {
  constexpr std::string_view kBefore = "in node '";
  const size_t at = message.rfind(kBefore);
  if (at == std::string_view::npos) return {};
  message.remove_prefix(at + kBefore.size());
  return std::string(message.substr(0, message.find('\'')));
}

SinterStatus fail(SinterStatus status, const std::string& message) {
  last_failure() = {message, node_of(message)};
  return status;
}

// No exception leaves the library.
template <class F>
SinterStatus guarded(F&& run) noexcept {
  try {
    run();
    return SINTER_OK;
  } catch (const OutOfMemoryError& error) {
    return fail(SINTER_OUT_OF_MEMORY, error.message());
  } catch (const Error& error) {
    return fail(SINTER_ERROR, error.message());
  } catch (const std::bad_alloc&) {
    return fail(SINTER_OUT_OF_MEMORY, "the host is out of memory");
  } catch (const std::exception& error) {
    return fail(SINTER_INTERNAL, error.what());
  }
}

int cuda_device_of(std::span<const SinterValue> inputs) {
  for (auto& value : inputs) {
    if (value.kind != SINTER_TENSOR || !value.tensor) continue;
    auto& device = static_cast<const dlpack::DLTensor*>(value.tensor)->device;
    if (device.device_type == dlpack::kDLCUDA) return device.device_id;
  }
  return -1;
}

}  // namespace

const char* sinter_error(void) { return last_failure().message.c_str(); }
const char* sinter_error_node(void) { return last_failure().node.c_str(); }
const char* sinter_version(void) { return SINTER_VERSION; }

int sinter_takes(const char* function) { return interop::find_callee(function).has_value(); }
int sinter_takes_dtype(int64_t code) {
  auto type = interop::file_dtype(code);
  return type && type->dtype;
}

SinterStatus sinter_load(const char* path, const SinterOption* options, size_t option_count, SinterProgram** out) {
  return guarded([&] { *out = c::load_program(path, c::options_of({options, option_count})).release(); });
}

SinterStatus sinter_read(const char* json, size_t bytes, const SinterOption* options, size_t option_count,
                         SinterProgram** out) {
  return guarded([&] { *out = c::read_program({json, bytes}, c::options_of({options, option_count})).release(); });
}

void sinter_free(SinterProgram* program) { delete program; }
size_t sinter_input_count(const SinterProgram* program) { return program->input_count(); }
size_t sinter_result_count(const SinterProgram* program) { return program->result_count(); }
const char* sinter_input_name(const SinterProgram* program, size_t input) { return program->input_name(input); }

SinterStatus sinter_prepare(SinterProgram* program, const SinterValue* inputs, size_t input_count) {
  return guarded([&] { program->prepare({inputs, input_count}); });
}

SinterStatus sinter_run(SinterProgram* program, const SinterValue* inputs, size_t input_count, void* stream,
                        SinterValue* results, size_t result_count) {
  return guarded([&] {
    const std::span<const SinterValue> given(inputs, input_count);
    check(result_count == program->result_count(), "{} results are asked for; the program gives {}", result_count,
          program->result_count());
    std::optional<runtime::CudaStreamGuard> queue;
    if (const int device = stream ? cuda_device_of(given) : -1; device >= 0)
      queue.emplace(device, static_cast<runtime::CudaStream>(stream));
    program->run(given, {results, result_count});
  });
}

SinterStatus sinter_set_threads(int threads) {
  return guarded([&] { set_num_threads(threads); });
}
SinterStatus sinter_seed(uint64_t seed) {
  return guarded([&] { manual_seed(seed); });
}
