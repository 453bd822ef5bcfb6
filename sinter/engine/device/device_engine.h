#pragma once
// What the engine asks of a device: all that differs from one kind to another. A kind of device is a folder (cpu/, cuda/,
// hip/) that implements it.
#include "sinter/tensor/target.h"
#include "sinter/engine/device/op_kernel.h"
#include "sinter/engine/device/recording.h"
#include "sinter/engine/step/compiled_step.h"
#include "sinter/graph/graph.h"
#include "sinter/ops/fused.h"

namespace sinter {

class DeviceKernel;
struct LoopNest;
struct GpuFacts;

class DeviceEngine {
 public:
  virtual ~DeviceEngine() = default;

  // --- what it is
  // What passes, schedules and writers of kernels may know of it.
  virtual const Target& target() const = 0;
  // The same with what is found out only for a graph that asks for it: the convolutions that a library takes, which has to be
  // loaded first.
  virtual Target target_for(const Graph& /*graph*/) const { return target(); }
  // The kind and what may change the kernels it takes, in the keys of what is kept: "cpu", "cuda with cuDNN".
  virtual std::string kind(const Graph& graph) const = 0;
  // Whose times a tuned choice is of, beside the host's; empty for the host itself.
  virtual std::string machine() const { return {}; }
  // The caches that a step's operands may still be in, in bytes.
  virtual int64_t cache_bytes() const = 0;
  // Launches are queued, and run behind the host.
  virtual bool queues() const { return false; }

  // --- kernels
  // Of a GPU: the nest of one op, compiled and loaded.
  virtual std::shared_ptr<const DeviceKernel> compile_loops(const LoopNest& /*nest*/, const std::string& /*name*/,
                                                            const GpuFacts& /*facts*/) const {
    return nullptr;
  }

  // --- steps
  // Kernels by hand, and libraries, that take single ops.
  virtual std::vector<OpKernel> op_kernels() const = 0;
  // As make_step.
  virtual std::unique_ptr<CompiledStep> make_step(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                                                  std::span<const TensorImpl* const> outputs) const = 0;
  // The strides of a fresh result of these sizes, row-major but where another order suits what usually follows: contractions
  // choose theirs, others may keep that of `x`, their first operand. `beside` finds an input of the program that is read
  // together with the result and has its sizes (a parameter with its gradient, say), or null.
  virtual IntList result_strides(const Node& node, const IntList& sizes, const TensorImpl* x,
                                 FunctionRef<const TensorImpl*()> beside) const = 0;

  // --- running
  virtual void synchronize() const {}
  // That launches of this thread go to; what is made on one is not read on another.
  virtual void* stream() const { return nullptr; }
  // The launches that follow belong to another program than those before.
  virtual void begin_program() const {}
  virtual void fill(void* memory, unsigned char value, size_t bytes) const = 0;
  // Null where programs are not recorded.
  virtual std::unique_ptr<Replay> make_replay(const std::string& /*program*/, std::vector<bool> /*moving*/) const {
    return nullptr;
  }
  // Where launches are queued: how many seconds each of `count` takes on the device. Each is so many launches.
  virtual std::vector<double> time_each(size_t /*count*/, FunctionRef<void(size_t)> /*launch*/, size_t /*launches*/ = 1) const {
    return {};
  }
};

// Of a device that there is here.
const DeviceEngine& engine_of(Device device);

}  // namespace sinter
