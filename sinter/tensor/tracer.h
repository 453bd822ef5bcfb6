#pragma once
// What points upward from the tensor library: a Tracer takes over while a program is being captured, a Dispatcher runs
// an op at once. Both are implemented in higher folders.
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <vector>

#include "sinter/tensor/dim.h"

namespace sinter {

class Attrs;
class Scalar;
class Tensor;
class TensorArg;
struct Op;
struct TensorImpl;
struct TensorOptions;
class Shape;

// Takes part in every op and every question about a symbolic size while it is current on this thread. What a plain graph
// cannot answer (the value of a tensor, its memory) is an Error unless a tracer overrides it.
class Tracer {
 public:
  virtual ~Tracer() = default;
  // Records an op on traced (or captured eager) inputs; gives traced outputs.
  virtual std::vector<Tensor> record(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs) = 0;
  // Answers a comparison that the expressions alone do not.
  virtual bool decide(DimCompare op, const Dim& a, const Dim& b) = 0;
  // The number behind a symbolic size; it holds from now on. One of the two positions is given.
  virtual int64_t specialize(const Dim& d, const std::source_location* where, const void* return_address) = 0;
  // The user asks a tensor for this symbolic size here: what is then concluded from it has this line.
  virtual void asked_size(const Dim&, const std::source_location&) {}
  // The present number of a size, without a promise that it holds; nothing where it is not known.
  virtual std::optional<int64_t> hint(const Dim&) { return std::nullopt; }

  // `value`, recorded already and of the dtype and shape of `out`, is now what `out` and all that share its memory hold.
  virtual void write(const Tensor& out, const Tensor& value);
  // The number in a tensor of one element, perhaps lazily.
  virtual Scalar item(const Tensor& tensor);
  // Whether the program runs while it is traced, so that values can be asked for.
  virtual bool answers() const { return false; }
  // The memory of a tensor, for host code that reads it (`asker` names the function). Lives as long as the tracer.
  virtual const TensorImpl& memory_of(const Tensor& tensor, const char* asker);
  // What stands for an eager operand: itself, or the program's look at it where the program has changed it or its history
  // lies outside.
  virtual Tensor operand(const Tensor& eager);
  // An eager tensor as a value of the program, as it is now: what the tape keeps of it.
  virtual Tensor present_value(const Tensor& tensor);
  // Uninitialised memory that the program asks for, and a tensor just made of the host's numbers.
  virtual Tensor empty(const Shape& shape, const TensorOptions& options);
  virtual Tensor constant(const Tensor& made);
  // A fresh tensor of the program lies in memory with these strides.
  virtual void lay_out(const Tensor& fresh, std::span<const int64_t> strides);
  // Seed and offset of the next draw, as values of the program; empty to take them from the generator now.
  virtual std::vector<TensorArg> draw();
  // The gradient of a leaf as the program sees it, and that it is about to be replaced.
  virtual Tensor grad_of(const Tensor& leaf, const Tensor& grad);
  virtual void before_grad_changes(const Tensor& leaf);
  // Whether the history of a tensor concerns the program: that of one from outside may be kept there alone.
  virtual bool keeps_history(const Tensor&) const { return true; }

  // A new name for a size that only the data knows: u0, u1, … in the order of asking.
  virtual std::string fresh_size() { return "u" + std::to_string(fresh_sizes_++); }

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
