#pragma once
// Tensor: a small handle on an eager tensor (a strided view of a Buffer) or a traced one (a value of the graph being
// captured). Copying a Tensor copies the handle. Names follow LibTorch.
#include <concepts>
#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <variant>
#include <vector>

#include "sinter/base/api.h"
#include "sinter/tensor/buffer.h"
#include "sinter/tensor/device.h"
#include "sinter/tensor/dtype.h"
#include "sinter/tensor/scalar.h"
#include "sinter/tensor/shape.h"

namespace sinter SINTER_API {

// The second half are LibTorch's spellings: torch::MemoryFormat::ChannelsLast.
enum class MemoryFormat : uint8_t {
  kContiguous, kChannelsLast, kChannelsLast3d, kPreserve,
  Contiguous = kContiguous, ChannelsLast = kChannelsLast, ChannelsLast3d = kChannelsLast3d, Preserve = kPreserve
};
inline constexpr MemoryFormat kContiguousFormat = MemoryFormat::kContiguous, kChannelsLast = MemoryFormat::kChannelsLast,
                              kChannelsLast3d = MemoryFormat::kChannelsLast3d, kPreserve = MemoryFormat::kPreserve;

// How elements lie in memory: always in strides.
enum class TensorLayout : uint8_t { kStrided };
inline constexpr TensorLayout kStrided = TensorLayout::kStrided;

// How a new tensor is made: zeros({2, 3}, kInt64), ones({4}, dtype(kBFloat16).requires_grad(true)). What is not said is f32 (see
// set_default_dtype) on the CPU, or what another tensor has where one is at hand: zeros_like(x, kInt64), x.to(options).
struct TensorOptions {
  DType dtype_ = get_default_dtype();
  Device device_;
  bool requires_grad_ = false, has_dtype_ = false, has_device_ = false;

  TensorOptions() = default;
  TensorOptions(DType d) : dtype_(d), has_dtype_(true) {}
  TensorOptions(Device d) : device_(d), has_device_(true) {}
  TensorOptions(DeviceType d) : TensorOptions(Device(d)) {}
  TensorOptions dtype(DType d) const { return with([&](auto& o) { o.dtype_ = d, o.has_dtype_ = true; }); }
  template <class T>
  TensorOptions dtype() const {
    return dtype(dtype_of<T>);
  }
  TensorOptions device(Device d) const { return with([&](auto& o) { o.device_ = d, o.has_device_ = true; }); }
  TensorOptions device(DeviceType d, int index = 0) const { return device(Device(d, index)); }
  TensorOptions requires_grad(bool r) const { return with([&](auto& o) { o.requires_grad_ = r; }); }
  // All tensors lie in strides.
  TensorOptions layout(TensorLayout) const { return *this; }
  // What is said, or else holds.
  DType dtype() const { return dtype_; }
  Device device() const { return device_; }
  DeviceIndex device_index() const { return device_.index(); }
  bool requires_grad() const { return requires_grad_; }
  TensorLayout layout() const { return kStrided; }
  bool has_dtype() const { return has_dtype_; }
  bool has_device() const { return has_device_; }
  // With the dtype and device of `other` where none is said.
  TensorOptions over(const TensorOptions& other) const {
    return with([&](auto& o) {
      if (!has_dtype_) o = o.dtype(other.dtype_);
      if (!has_device_) o = o.device(other.device_);
    });
  }

 private:
  template <class F>
  TensorOptions with(F f) const {
    auto copy = *this;
    f(copy);
    return copy;
  }
};
inline TensorOptions dtype(DType d) { return d; }
template <class T>
TensorOptions dtype() {
  return dtype_of<T>;
}
inline TensorOptions device(Device d) { return d; }
inline TensorOptions device(DeviceType d, int index = 0) { return Device(d, index); }
inline TensorOptions requires_grad(bool r = true) { return TensorOptions().requires_grad(r); }
inline TensorOptions layout(TensorLayout l) { return TensorOptions().layout(l); }

// LibTorch's names of what it borrows from the standard library; its lists are borrowed, too, and owned here.
using std::nullopt;
using std::optional;
template <class T>
class ArrayRef : public std::vector<T> {
 public:
  ArrayRef() = default;
  ArrayRef(const T& one) : std::vector<T>{one} {}
  ArrayRef(const std::vector<T>& values) : std::vector<T>(values) {}
  ArrayRef(std::vector<T>&& values) : std::vector<T>(std::move(values)) {}
  ArrayRef(std::initializer_list<T> values) : std::vector<T>(values) {}
  ArrayRef(const T* data, size_t length) : std::vector<T>(data, data + length) {}
  ArrayRef(const T* begin, const T* end) : std::vector<T>(begin, end) {}
  template <size_t N>
  ArrayRef(const T (&array)[N]) : std::vector<T>(array, array + N) {}
  bool equals(const ArrayRef& other) const { return *this == other; }
  ArrayRef slice(size_t start, size_t length) const { return {this->data() + start, length}; }
  std::vector<T> vec() const { return *this; }
};

struct TensorImpl;

// A value of a graph under construction: what a traced tensor stands for. Implemented in graph/.
class TracedValue : public RefCounted {
 public:
  virtual ~TracedValue() = default;
  // Whether the sizes, strides and offset of the body are those that the eager tensor would have at present.
  virtual bool has_layout() const { return false; }
  // Equal for values that share memory in the traced program.
  virtual const void* memory() const { return this; }
  // Brings the value and the history of the tensor up to date after a write to what it is a view of.
  virtual void refresh(TensorImpl&) {}
  // The same value for a tensor without history; for one that only the tape keeps.
  virtual IntrusivePtr<TracedValue> for_detached();
  virtual IntrusivePtr<TracedValue> for_tape() { return for_detached(); }
  // Grows with each write, where a value kept for a gradient can be overwritten.
  virtual uint32_t version() const { return 0; }
};

// What autograd keeps with a tensor. Implemented in autograd/.
class AutogradState {
 public:
  virtual ~AutogradState() = default;
};

// What capture shall assume of the sizes of a tensor: see compiler::mark_dynamic.
struct SizeMarks {
  struct Mark {
    int64_t dim;
    bool dynamic;
    int64_t low, high;
  };
  std::vector<Mark> marks;
};

// The body behind a handle. Plain data for the layers that implement tensors; users hold Tensors.
struct TensorImpl : RefCounted {
  DType dtype = kFloat32;
  Device device;
  bool requires_grad = false;  // a leaf the user wants gradients for
  bool contiguous = true;      // row-major without gaps
  int64_t offset = 0;          // in elements, from the start of the buffer
  int64_t numel = 1;
  IntList sizes, strides;
  BufferPtr buffer;                          // eager
  Shape traced_shape;                        // traced: the sizes as Dims
  IntrusivePtr<TracedValue> traced;          // traced
  std::shared_ptr<AutogradState> autograd;   // null while no gradient is involved
  IntrusivePtr<TensorImpl> base;             // eager view: whose memory it is; a write to either changes both histories
  std::shared_ptr<const SizeMarks> marks;    // what the user said of its sizes for capture

  // Grows whenever the dtype, device, geometry or requires_grad of an existing tensor is changed in place, which the
  // ops never do: who has checked many tensors need not check them again before.
  static inline std::atomic<uint64_t> geometry_clock{0};
};

class Generator;
class Tensor;
class TensorArg;
template <class T, size_t N>
class TensorAccessor;
using TensorList = std::vector<Tensor>;

// A bool that no number turns into: of x.var(false) and x.var(0), the second names a dimension.
struct GivenBool {
  bool value;
  template <std::same_as<bool> T>
  GivenBool(T value) : value(value) {}
};
// A dimension that no bool turns into: of x.sort(true, 1) and x.sort(1, true), the first says that it shall be stable.
struct GivenDim {
  int64_t value;
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  GivenDim(T value) : value(int64_t(value)) {}
};
// A dtype that is written out: of x.sum(kInt64) and x.sum({}), the second names no dimensions.
struct GivenDType {
  DType value;
  template <std::same_as<DType> T>
  GivenDType(T value) : value(value) {}
};
namespace autograd {
class GradFn;
}

// One entry of x.index({...}): a number, a slice, a tensor of indices or a mask, all the rest, or a new dimension.
struct Slice {
  std::optional<Dim> start, stop;
  int64_t step = 1;
  Slice() = default;
  explicit Slice(std::optional<Dim> start, std::optional<Dim> stop = {}, int64_t step = 1) : start(start), stop(stop), step(step) {}
};
struct EllipsisIndex {};
struct NewAxis {
  // As a bound of a Slice: none.
  operator std::optional<Dim>() const { return {}; }
};
inline constexpr EllipsisIndex Ellipsis{};
inline constexpr NewAxis None{};
struct TensorIndex;

using Where = std::source_location;

// The i of x[i], with the line of the caller.
struct ItemIndex {
  Dim value;
  Where where;
  template <std::integral T>
  ItemIndex(T i, Where where = Where::current()) : value(i), where(where) {}
  ItemIndex(const Dim& i, Where where = Where::current()) : value(i), where(where) {}
  // The number that a tensor of one element holds.
  ItemIndex(const Tensor& i, Where where = Where::current());
};

class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(IntrusivePtr<TensorImpl> impl) : impl_(std::move(impl)) {}
  Tensor(const Tensor&) = default;
  Tensor(Tensor&&) = default;
  Tensor& operator=(const Tensor&) & = default;
  Tensor& operator=(Tensor&&) & = default;
  // x[0] = y, x.slice(0, 1, 3) = 5: assigning to a view just made writes its elements.
  void operator=(const TensorArg& value) &&;

  bool defined() const { return bool(impl_); }
  // Makes it undefined.
  void reset() { impl_ = {}; }

  // --- what it is
  int64_t dim(Where where = Where::current()) const {
    TensorImpl& body = impl("dim", where);
    return body.traced ? body.traced_shape.rank() : int64_t(body.sizes.size());
  }
  int64_t ndimension(Where where = Where::current()) const { return dim(where); }
  int64_t ndim(Where where = Where::current()) const { return dim(where); }
  Dim size(int64_t d, Where where = Where::current()) const;
  Shape sizes(Where where = Where::current()) const;
  Dim numel(Where where = Where::current()) const;
  DType dtype(Where where = Where::current()) const { return impl("dtype", where).dtype; }
  Device device(Where where = Where::current()) const { return impl("device", where).device; }
  DType scalar_type(Where where = Where::current()) const { return dtype(where); }
  int64_t element_size(Where where = Where::current()) const { return item_size(dtype(where)); }
  int64_t itemsize(Where where = Where::current()) const { return element_size(where); }
  // Of its elements; a view may lie in more memory.
  Dim nbytes(Where where = Where::current()) const { return numel(where) * element_size(where); }
  bool is_floating_point() const { return is_floating(dtype()); }
  bool is_complex() const { return sinter::is_complex(dtype()); }
  bool is_signed() const { return dtype() != kBool && dtype() != kUInt8; }
  bool is_traced() const { return bool(impl().traced); }
  bool is_cpu() const { return device().is_cpu(); }
  bool is_cuda() const { return device().is_cuda(); }
  // The number of its GPU; -1 on the CPU.
  int64_t get_device(Where where = Where::current()) const { return device(where).is_cpu() ? -1 : device(where).index(); }
  TensorLayout layout() const { return kStrided; }
  bool is_sparse() const { return false; }
  bool is_quantized() const { return false; }
  // Memory of the host is pinned by data loaders alone, for a copy.
  bool is_pinned() const { return false; }
  // Handles on this tensor.
  size_t use_count() const { return impl_ ? impl_->use_count() : 0; }
  // "CPUFloatType": its device and dtype in LibTorch's words.
  std::string toString() const;
  bool is_same_size(const Tensor& other) const { return sizes() == other.sizes(); }
  TensorOptions options(Where where = Where::current()) const {
    return TensorOptions(dtype(where)).device(device(where));
  }
  // Layout. Under capture the present one, which specialises the program to the tensor's sizes.
  const IntList& strides(Where where = Where::current()) const;
  int64_t stride(int64_t d, Where where = Where::current()) const;
  int64_t storage_offset(Where where = Where::current()) const;
  // A traced value counts as contiguous: no view of it is ever refused for its strides.
  bool is_contiguous(MemoryFormat format = MemoryFormat::kContiguous) const;
  // Whether both are the same tensor object; whether they see the same memory.
  bool is_same(const Tensor& other) const { return impl_.get() == other.impl_.get(); }
  bool is_alias_of(const Tensor& other) const;

  // --- its values
  template <class T>
  T* data_ptr(Where where = Where::current()) const {
    return static_cast<T*>(checked_data(dtype_of<T>, where));
  }
  void* data_ptr(Where where = Where::current()) const;
  template <class T>
  T* mutable_data_ptr(Where where = Where::current()) const {
    return data_ptr<T>(where);
  }
  template <class T>
  const T* const_data_ptr(Where where = Where::current()) const {
    return data_ptr<T>(where);
  }
  const void* const_data_ptr(Where where = Where::current()) const { return data_ptr(where); }
  // Whether its only element is not zero.
  bool is_nonzero(Where where = Where::current()) const { return item(where).to_bool(); }
  template <class T>
  T* data(Where where = Where::current()) const {
    return data_ptr<T>(where);
  }
  // Its elements by coordinates, on the host: auto a = x.accessor<float, 2>(); a[i][j] += 1; for (...) in a.size(0). It reads
  // the tensor's sizes, so the tensor has to stay.
  template <class T, size_t N>
  TensorAccessor<T, N> accessor(Where where = Where::current()) const&;
  template <class T, size_t N>
  TensorAccessor<T, N> accessor(Where where = Where::current()) && = delete;
  template <class T, size_t N>
  TensorAccessor<T, N> packed_accessor32(Where where = Where::current()) const& {
    return accessor<T, N>(where);
  }
  template <class T, size_t N>
  TensorAccessor<T, N> packed_accessor32(Where where = Where::current()) && = delete;
  template <class T, size_t N>
  TensorAccessor<T, N> packed_accessor64(Where where = Where::current()) const& {
    return accessor<T, N>(where);
  }
  template <class T, size_t N>
  TensorAccessor<T, N> packed_accessor64(Where where = Where::current()) && = delete;
  Scalar item(Where where = Where::current()) const;
  template <class T>
  T item(Where where = Where::current()) const {
    return item(where).template to<T>();
  }
  // All elements in row-major order, converted.
  template <class T>
  std::vector<T> to_vector(Where where = Where::current()) const;

  // --- autograd
  bool requires_grad() const;
  const Tensor& requires_grad_(bool requires_grad = true, Where where = Where::current()) const;
  const Tensor& set_requires_grad(bool requires_grad, Where where = Where::current()) const {
    return requires_grad_(requires_grad, where);
  }
  // What backward() has added up: of a leaf, and of another tensor after retain_grad(). mutable_grad() is where it is kept.
  Tensor grad() const;
  Tensor& mutable_grad() const;
  void set_grad(const Tensor& grad, Where where = Where::current()) const;
  bool is_leaf() const;
  void retain_grad(Where where = Where::current()) const;
  bool retains_grad() const;
  // What recorded the tensor, undefined for a leaf, and which of its results the tensor is.
  autograd::GradFn grad_fn() const;
  int64_t output_nr() const;
  // Calls `hook` with the gradient of the tensor whenever one is complete; a defined Tensor that it gives takes the
  // gradient's place. The number is for remove_hook.
  template <class F>
    requires std::invocable<F, const Tensor&>
  unsigned register_hook(F hook, Where where = Where::current()) const {
    if constexpr (std::is_void_v<std::invoke_result_t<F, const Tensor&>>)
      return add_hook([hook = std::move(hook)](const Tensor& grad) mutable { return hook(grad), Tensor(); }, where);
    else
      return add_hook(std::move(hook), where);
  }
  void remove_hook(unsigned number, Where where = Where::current()) const;
  // Calls `hook` with this leaf each time backward() has added to its gradient.
  void register_post_accumulate_grad_hook(std::function<void(const Tensor& leaf)> hook, Where where = Where::current()) const;
  // Adds the gradients to every leaf that the tensor depends on, or to `inputs` alone. See autograd::backward.
  void backward(const Tensor& gradient = {}, std::optional<bool> retain_graph = {}, bool create_graph = false,
                const std::optional<std::vector<Tensor>>& inputs = {}, Where where = Where::current()) const;
  // Forgets how the tensor came about. Not for views: those share their base's history.
  const Tensor& detach_(Where where = Where::current()) const;
  Tensor detach() const;
  Tensor data() const { return detach(); }
  Tensor variable_data() const { return detach(); }
  Tensor tensor_data() const { return detach(); }
  // Takes over the memory, shape, dtype and device of another tensor; it keeps its identity, its gradient and being a leaf.
  void set_data(const Tensor& contents, Where where = Where::current()) const;

  // --- conversions. The tensor itself where nothing changes, unless `copy` asks for another
  Tensor to(Device device, Where where = Where::current()) const { return to(TensorOptions(device), where); }
  Tensor to(DeviceType device, Where where = Where::current()) const { return to(Device(device), where); }
  Tensor to(Device device, DType dtype, Where where = Where::current()) const {
    return to(TensorOptions(dtype).device(device), where);
  }
  Tensor to(MemoryFormat format, Where where = Where::current()) const;
  // To the dtype and device that the options name.
  Tensor to(const TensorOptions& options, Where where = Where::current()) const { return to(options, false, false, where); }
  // With `non_blocking` a copy from page-locked memory (pin_memory) to a device is queued like any work of that device, and
  // the host goes on: that memory must keep its values until then. Elsewhere it changes nothing.
  Tensor to(const TensorOptions& options, bool non_blocking, bool copy = false, Where where = Where::current()) const;
  Tensor to(Device device, DType dtype, bool non_blocking, bool copy = false, Where where = Where::current()) const {
    return to(TensorOptions(dtype).device(device), non_blocking, copy, where);
  }
  Tensor to(const Tensor& other, bool non_blocking = false, bool copy = false, Where where = Where::current()) const {
    return to(other.options(where), non_blocking, copy, where);
  }
  Tensor toType(DType dtype, Where where = Where::current()) const { return to(dtype, where); }
  Tensor type_as(const Tensor& other, Where where = Where::current()) const { return to(other.options(where), where); }
  Tensor cpu(Where where = Where::current()) const { return to(Device(kCPU), where); }
  Tensor cuda(int index = 0, Where where = Where::current()) const { return to(Device(kCUDA, index), where); }
  // A copy in host memory that is page-locked for the device; the tensor itself where the device has no such memory, and
  // inside a compiled function. The memory is not given to others before the copies queued from it are done.
  Tensor pin_memory(Device device = kCUDA, Where where = Where::current()) const;
  Tensor contiguous(MemoryFormat format = MemoryFormat::kContiguous, Where where = Where::current()) const;

  // --- new tensors, of its dtype and on its device unless the options name others
  Tensor new_empty(const Shape& size, const TensorOptions& options = {}, Where where = Where::current()) const;
  Tensor new_empty_strided(const Shape& size, const IntList& strides, const TensorOptions& options = {},
                           Where where = Where::current()) const;
  Tensor new_zeros(const Shape& size, const TensorOptions& options = {}, Where where = Where::current()) const;
  Tensor new_ones(const Shape& size, const TensorOptions& options = {}, Where where = Where::current()) const;
  Tensor new_full(const Shape& size, const TensorArg& value, const TensorOptions& options = {}) const;
  Tensor new_tensor(const Tensor& values, const TensorOptions& options = {}, Where where = Where::current()) const;

  // --- the public functions of a tensor as its methods: ops/pointwise.h, reduce.h, matmul.h, view.h, creation.h, …
#include "sinter/tensor/tensor_methods.inc"

  // --- those that are no function of their name with the tensor in front
  Tensor operator[](const ItemIndex& index) const;
  // Itself where the condition holds, `other` elsewhere.
  Tensor where(const TensorArg& condition, const TensorArg& other) const;
  // Where a bound is a size: x.clamp(0, y.size(0) - 1).
  template <class A, class B>
    requires(std::same_as<A, Dim> || std::same_as<B, Dim>)
  Tensor clamp(const A& min, const B& max, Where where = Where::current()) const;

  // --- in place: each writes this tensor's memory and returns it
  const Tensor& copy_(const TensorArg& source, bool non_blocking = false) const;
  const Tensor& fill_(const TensorArg& value) const;
  const Tensor& zero_(Where where = Where::current()) const;
  // The elements whose coordinates are all the same; with `wrap`, below a tall matrix's diagonal again after a free row.
  const Tensor& fill_diagonal_(const TensorArg& value, bool wrap = false) const;
  const Tensor& clamp_(const std::optional<Scalar>& min, const std::optional<Scalar>& max = {},
                       Where where = Where::current()) const;
  const Tensor& masked_fill_(const TensorArg& mask, const TensorArg& value) const;
  const Tensor& index_put_(const std::vector<TensorIndex>& indices, const TensorArg& value, bool accumulate = false) const;
  const Tensor& uniform_(double low = 0, double high = 1, Where where = Where::current()) const;
  const Tensor& normal_(double mean = 0, double std = 1, Where where = Where::current()) const;
  const Tensor& bernoulli_(double p = 0.5, Where where = Where::current()) const;
  const Tensor& random_(int64_t from, int64_t to, Where where = Where::current()) const;
  const Tensor& random_(int64_t to, Where where = Where::current()) const;
  const Tensor& random_(Where where = Where::current()) const;
  const Tensor& exponential_(double lambd = 1, Where where = Where::current()) const;
  const Tensor& cauchy_(double median = 0, double sigma = 1, Where where = Where::current()) const;
  const Tensor& log_normal_(double mean = 1, double std = 2, Where where = Where::current()) const;
  const Tensor& geometric_(double p, Where where = Where::current()) const;
  const Tensor& uniform_(double low, double high, Generator& generator, Where where = Where::current()) const;
  const Tensor& normal_(double mean, double std, Generator& generator, Where where = Where::current()) const;
  const Tensor& bernoulli_(double p, Generator& generator, Where where = Where::current()) const;
  const Tensor& operator+=(const TensorArg& other) const;
  const Tensor& operator-=(const TensorArg& other) const;
  const Tensor& operator*=(const TensorArg& other) const;
  const Tensor& operator/=(const TensorArg& other) const;
  const Tensor& operator&=(const TensorArg& other) const;
  const Tensor& operator|=(const TensorArg& other) const;
  const Tensor& operator^=(const TensorArg& other) const;

  // --- another shape for the tensor itself, and so for all its handles. Outside of compiled functions and without gradients;
  // an Error says what to write elsewhere
  const Tensor& squeeze_(Where where = Where::current()) const;
  const Tensor& squeeze_(int64_t dim, Where where = Where::current()) const;
  const Tensor& unsqueeze_(int64_t dim, Where where = Where::current()) const;
  const Tensor& transpose_(int64_t a, int64_t b, Where where = Where::current()) const;
  const Tensor& swapaxes_(int64_t a, int64_t b, Where where = Where::current()) const { return transpose_(a, b, where); }
  const Tensor& swapdims_(int64_t a, int64_t b, Where where = Where::current()) const { return transpose_(a, b, where); }
  const Tensor& t_(Where where = Where::current()) const;
  // Row-major, over the memory there is, which must be enough.
  const Tensor& resize_(const Shape& shape, Where where = Where::current()) const;
  const Tensor& resize_as_(const Tensor& other, Where where = Where::current()) const { return resize_(other.sizes(where), where); }

  // Its dtype, sizes and device on the standard error.
  void print() const;

  // The body; an Error when the tensor is undefined.
  TensorImpl& impl() const {
    if (!impl_) [[unlikely]]
      fail_undefined();
    return *impl_;
  }
  const IntrusivePtr<TensorImpl>& impl_ptr() const { return impl_; }

 private:
  TensorImpl& impl(const char* asker, const Where& where) const {
    if (!impl_) [[unlikely]]
      fail_undefined(asker, where);
    return *impl_;
  }
  unsigned add_hook(std::function<Tensor(const Tensor& grad)> hook, const Where& where) const;
  [[noreturn]] static void fail_undefined();
  [[noreturn]] static void fail_undefined(const char* asker, const Where& where);
  void* checked_data(DType dtype, const Where& where) const;
  const TensorImpl& checked_layout(DType dtype, size_t rank, const Where& where) const;
  const Tensor& take_shape(const char* function, const Tensor& view) const;

  IntrusivePtr<TensorImpl> impl_;
};

// One entry of index() and index_put_().
struct TensorIndex {
  std::variant<Dim, Slice, EllipsisIndex, NewAxis, Tensor> value;
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  TensorIndex(T i) : value(Dim(i)) {}
  // "...", as an Ellipsis.
  TensorIndex(const char* ellipsis);
  TensorIndex(const Dim& d) : value(d) {}
  // A new dimension, of one position or none.
  template <std::same_as<bool> T>
  TensorIndex(T keep);
  // Positions, as a tensor of them.
  TensorIndex(const std::vector<int64_t>& positions);
  TensorIndex(const Slice& s) : value(s) {}
  TensorIndex(EllipsisIndex e) : value(e) {}
  TensorIndex(NewAxis n) : value(n) {}
  TensorIndex(const Tensor& t) : value(t) {}
};

// An operand of an op: a tensor or a plain number, with the line of the caller. Lives only during the call.
class TensorArg {
 public:
  TensorArg(const Tensor& tensor, Where where = Where::current()) : tensor_(tensor), where_(where) {}
  // A number that the program does not know yet is the tensor it will come from.
  TensorArg(const Scalar& scalar, Where where = Where::current()) : where_(where) {
    if (scalar.is_lazy()) [[unlikely]] {
      tensor_ = lazy_tensor(scalar);
      is_lazy_number_ = true;
    } else {
      scalar_ = scalar;
      is_scalar_ = true;
    }
  }
  template <class T>
    requires(std::is_arithmetic_v<T> || ComplexNumber<T>)
  TensorArg(T value, Where where = Where::current()) : scalar_(value), is_scalar_(true), where_(where) {}
  // A symbolic size used as a number becomes a value of the graph.
  TensorArg(const Dim& dim, Where where = Where::current());

  bool is_scalar() const { return is_scalar_; }
  // A tensor in a program being captured, which is a number when the function runs as it is.
  bool is_lazy_number() const { return is_lazy_number_; }
  // The tensor; undefined when this is a number.
  const Tensor& tensor() const { return tensor_; }
  const Scalar& scalar() const { return scalar_; }
  DType dtype() const { return is_scalar_ ? scalar_.dtype() : tensor_.dtype(where_); }
  Shape sizes() const { return is_scalar_ ? Shape() : tensor_.sizes(where_); }
  int64_t dim() const { return is_scalar_ ? 0 : tensor_.dim(where_); }
  Dim size(int64_t d) const { return tensor_.size(d, where_); }
  const Where& where() const { return where_; }

 private:
  static Tensor lazy_tensor(const Scalar& scalar);

  Tensor tensor_;
  Scalar scalar_;
  bool is_scalar_ = false, is_lazy_number_ = false;
  Where where_;
};

template <class A, class B>
  requires(std::same_as<A, Dim> || std::same_as<B, Dim>)
Tensor Tensor::clamp(const A& min, const B& max, Where where) const {
  return clamp_min(TensorArg(min, where)).clamp_max(TensorArg(max, where));
}

// An operand of &&, || and !: a tensor, with the line of the caller.
struct TruthArg {
  TensorArg arg;
  TruthArg(const Tensor& tensor, Where where = Where::current()) : arg(tensor, where) {}
};

// The elements of a tensor of rank N; what the coordinates are is not checked.
template <class T, size_t N>
class TensorAccessor {
 public:
  TensorAccessor(T* data, const int64_t* sizes, const int64_t* strides) : data_(data), sizes_(sizes), strides_(strides) {}
  int64_t size(int64_t d) const { return sizes_[d]; }
  int64_t stride(int64_t d) const { return strides_[d]; }
  std::span<const int64_t> sizes() const { return {sizes_, N}; }
  std::span<const int64_t> strides() const { return {strides_, N}; }
  T* data() const { return data_; }
  decltype(auto) operator[](int64_t i) const {
    if constexpr (N == 1)
      return (data_[i * strides_[0]]);
    else
      return TensorAccessor<T, N - 1>(data_ + i * strides_[0], sizes_ + 1, strides_ + 1);
  }

 private:
  T* data_;
  const int64_t *sizes_, *strides_;
};

template <class T, size_t N>
TensorAccessor<T, N> Tensor::accessor(Where where) const& {
  static_assert(N > 0, "accessor: a 0-d tensor has one element: item<T>() reads it");
  const TensorImpl& body = checked_layout(dtype_of<T>, N, where);
  return {data_ptr<T>(where), body.sizes.data(), body.strides.data()};
}

// --- making eager tensors from memory
// Uninitialised memory of this shape.
Tensor empty(const Shape& shape, const TensorOptions& options = {}, MemoryFormat format = MemoryFormat::kContiguous,
             Where where = Where::current());
Tensor empty_strided(const Shape& shape, const IntList& strides, const TensorOptions& options = {},
                     Where where = Where::current());
// Copies row-major elements.
Tensor from_bytes(const void* data, const Shape& shape, DType dtype, Where where = Where::current());
// The same, and an Error unless `count` elements fill the shape.
Tensor from_bytes_checked(const void* data, size_t count, const Shape& shape, DType dtype, Where where = Where::current());
template <class T>
Tensor from_data(const std::vector<T>& data, const Shape& shape, Where where = Where::current()) {
  return from_bytes_checked(data.data(), data.size(), shape, dtype_of<T>, where);
}
template <class T>
Tensor from_data(const T* data, const Shape& shape, Where where = Where::current()) {
  return from_bytes(data, shape, dtype_of<T>, where);
}
Tensor from_data(const std::vector<bool>& data, const Shape& shape, Where where = Where::current());
// Borrows memory that must outlive the tensor, unless `release` says when it may go.
Tensor from_blob(void* data, const Shape& shape, const TensorOptions& options = {}, std::function<void()> release = {},
                 Where where = Where::current());
// The same, told by whom it is released; with strides in elements (none: row-major).
Tensor from_blob(void* data, const Shape& shape, const std::function<void(void*)>& deleter, const TensorOptions& options = {},
                 Where where = Where::current());
Tensor from_blob(void* data, const Shape& shape, const IntList& strides, const TensorOptions& options = {},
                 Where where = Where::current());
Tensor from_blob(void* data, const Shape& shape, const IntList& strides, const std::function<void(void*)>& deleter,
                 const TensorOptions& options = {}, Where where = Where::current());
// A view of the same buffer with another geometry, `offset` elements from the buffer's start; the caller has checked
// that it fits.
Tensor make_view(const Tensor& base, const IntList& sizes, const IntList& strides, int64_t offset);

namespace detail {
// Values of the host type of `source`, converted. Without a dtype: i32 literals give i64, floating ones the default dtype, c128 ones
// the complex type of that.
Tensor from_literals(const void* values, DType source, const Shape& shape, const TensorOptions& options);
// How many entries the braces of a level have: an Error unless it is what braces of that level had before.
void note_braces(IntList& sizes, size_t level, size_t count);

// Numbers in nested braces.
template <class T>
struct Literals {
  SmallVector<T, 16> values;
  IntList sizes;

  void add(const T& value, size_t) { values.push_back(value); }
  template <class Entry>
  void add(const std::initializer_list<Entry>& entries, size_t level = 0) {
    note_braces(sizes, level, entries.size());
    for (auto& entry : entries) add(entry, level + 1);
  }
};
template <class T, class Braces>
Tensor from_braces(const Braces& braces, const TensorOptions& options) {
  Literals<T> literals;
  literals.add(braces);
  return from_literals(literals.values.data(), dtype_of<T>, Shape(std::span<const int64_t>(literals.sizes)), options);
}

struct AnyNumber {
  template <class T>
    requires(std::is_arithmetic_v<T>)
  AnyNumber(T) {}
};
template <class>
inline constexpr bool never = false;
}  // namespace detail

// tensor({1.0, 2.0}), tensor({{1, 2}, {3, 4}}), tensor(3), from C++ literals, to five dimensions; from_data() makes more.
template <class T>
Tensor tensor(std::initializer_list<T> values, const TensorOptions& options = {}) {
  return detail::from_braces<T>(values, options);
}
template <class T>
Tensor tensor(std::initializer_list<std::initializer_list<T>> rows, const TensorOptions& options = {}) {
  return detail::from_braces<T>(rows, options);
}
template <class T>
Tensor tensor(std::initializer_list<std::initializer_list<std::initializer_list<T>>> values,
              const TensorOptions& options = {}) {
  return detail::from_braces<T>(values, options);
}
template <class T>
Tensor tensor(std::initializer_list<std::initializer_list<std::initializer_list<std::initializer_list<T>>>> values,
              const TensorOptions& options = {}) {
  return detail::from_braces<T>(values, options);
}
template <class T>
Tensor tensor(
    std::initializer_list<std::initializer_list<std::initializer_list<std::initializer_list<std::initializer_list<T>>>>> values,
    const TensorOptions& options = {}) {
  return detail::from_braces<T>(values, options);
}
template <class T = void>
Tensor tensor(std::initializer_list<detail::AnyNumber>, const TensorOptions& = {}) {
  static_assert(detail::never<T>, "tensor: write all numbers as one type: tensor({1.0, 2.5}), not tensor({1, 2.5})");
  return {};
}
template <class T>
  requires((std::is_arithmetic_v<T> && !std::same_as<T, bool>) || ComplexNumber<T>)
Tensor tensor(const std::vector<T>& values, const TensorOptions& options = {}) {
  return detail::from_literals(values.data(), dtype_of<T>, {Dim(values.size())}, options);
}
template <class T>
  requires(std::is_arithmetic_v<T> || ComplexNumber<T>)
Tensor tensor(T value, const TensorOptions& options = {}) {
  return detail::from_literals(&value, dtype_of<T>, {}, options);
}
template <std::same_as<bool> T>
TensorIndex::TensorIndex(T keep) : value(tensor(keep)) {}
Tensor scalar_tensor(const Scalar& value, std::optional<DType> dtype = {});

// --- showing
struct PrintOptions {
  int64_t edge_items = 3, threshold = 1000;
  int precision = 4, line_width = 80;
};
std::string to_string(const Tensor& tensor, const PrintOptions& options);
std::string to_string(const Tensor& tensor);
std::ostream& operator<<(std::ostream& out, const Tensor& tensor);
// "TensorOptions(dtype=f32, device=cpu, requires_grad=false)".
std::ostream& operator<<(std::ostream& out, const TensorOptions& options);
// On the standard output.
void print(const Tensor& tensor, int line_width = 80);

// What functions do that are given the tensor for their result (LibTorch's add_out): an empty one becomes the result, another
// one of its shape takes its values.
const Tensor& store_out(const char* function, const Tensor& out, const Tensor& result);

// --- as functions what a tensor tells of itself
inline Dim numel(const Tensor& x) { return x.numel(); }
inline bool is_floating_point(const Tensor& x) { return x.is_floating_point(); }
inline bool is_complex(const Tensor& x) { return x.is_complex(); }
inline bool is_signed(const Tensor& x) { return x.is_signed(); }
inline bool is_nonzero(const Tensor& x) { return x.is_nonzero(); }

// LibTorch's `using namespace torch::indexing`.
namespace indexing {
using sinter::Ellipsis;
using sinter::None;
using sinter::Slice;
using sinter::TensorIndex;
}  // namespace indexing

}  // namespace sinter
