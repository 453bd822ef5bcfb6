#pragma once
// What points upward from the tensor library: a Tracer takes over while a program is being captured, a Dispatcher runs
// an op at once. Both are implemented in higher folders.
#include <source_location>
#include <span>
#include <string>
#include <vector>

#include "sinter/tensor/dim.h"

namespace sinter {

class Attrs;
class Tensor;
class TensorArg;
struct Op;

// Takes part in every op and every question about a symbolic size while it is current on this thread.
class Tracer {
 public:
  virtual ~Tracer() = default;
  // Records an op on traced (or captured eager) inputs; gives traced outputs.
  virtual std::vector<Tensor> record(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs) = 0;
  // Answers a comparison that the expressions alone do not.
  virtual bool decide(DimCompare op, const Dim& a, const Dim& b) = 0;
  // The number behind a symbolic size; it holds from now on. One of the two positions is given.
  virtual int64_t specialize(const Dim& d, const std::source_location* where, const void* return_address) = 0;

  // A new name for a size that only the data knows: u0, u1, … in the order of asking.
  std::string fresh_size() { return "u" + std::to_string(fresh_sizes_++); }

  static Tracer* current() { return current_; }

 private:
  friend class TracerScope;
  static inline thread_local Tracer* current_ = nullptr;
  int fresh_sizes_ = 0;
};

// Makes a tracer current on this thread while alive; null suspends tracing.
class TracerScope {
 public:
  explicit TracerScope(Tracer* tracer) : previous_(Tracer::current_) { Tracer::current_ = tracer; }
  ~TracerScope() { Tracer::current_ = previous_; }
  TracerScope(const TracerScope&) = delete;

 private:
  Tracer* previous_;
};

// Runs one op now: on eager tensors by a kernel, on traced ones by recording; either way with the autograd tape.
class Dispatcher {
 public:
  virtual ~Dispatcher() = default;
  virtual std::vector<Tensor> run(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs) = 0;
  // The first result alone: what nearly every op has.
  virtual Tensor run_one(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs) = 0;
  // Writes the single result into `out`, whose dtype and shape are kept: in-place forms and copies.
  virtual void run_into(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor& out) = 0;

  // The engine. Defined in engine/.
  static Dispatcher& instance();
};

}  // namespace sinter
