#pragma once
// Tensor: a small handle on an eager tensor (a strided view of a Buffer) or a traced one (a value of the graph being
// captured). Copying a Tensor copies the handle. Names follow LibTorch.
#include <iosfwd>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
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

enum class MemoryFormat : uint8_t { kContiguous, kChannelsLast, kChannelsLast3d, kPreserve };
inline constexpr MemoryFormat kContiguousFormat = MemoryFormat::kContiguous, kChannelsLast = MemoryFormat::kChannelsLast,
                              kChannelsLast3d = MemoryFormat::kChannelsLast3d, kPreserve = MemoryFormat::kPreserve;

// How a new tensor is made: zeros({2, 3}, kInt64), ones({4}, TensorOptions().dtype(kBFloat16).requires_grad(true)).
struct TensorOptions {
  DType dtype_ = kFloat32;
  Device device_;
  bool requires_grad_ = false;

  TensorOptions() = default;
  TensorOptions(DType d) : dtype_(d) {}
  TensorOptions(Device d) : device_(d) {}
  TensorOptions(DeviceType d) : device_(d) {}
  TensorOptions dtype(DType d) const { return with([&](auto& o) { o.dtype_ = d; }); }
  TensorOptions device(Device d) const { return with([&](auto& o) { o.device_ = d; }); }
  TensorOptions requires_grad(bool r) const { return with([&](auto& o) { o.requires_grad_ = r; }); }

 private:
  template <class F>
  TensorOptions with(F f) const {
    auto copy = *this;
    f(copy);
    return copy;
  }
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

class Tensor;
class TensorArg;

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
  explicit operator bool() const = delete;  // ask `defined()`, or `item<bool>()` for the value

  // --- what it is
  int64_t dim(Where where = Where::current()) const {
    TensorImpl& body = impl("dim", where);
    return body.traced ? body.traced_shape.rank() : int64_t(body.sizes.size());
  }
  Dim size(int64_t d, Where where = Where::current()) const;
  Shape sizes(Where where = Where::current()) const;
  Dim numel(Where where = Where::current()) const;
  DType dtype(Where where = Where::current()) const { return impl("dtype", where).dtype; }
  Device device(Where where = Where::current()) const { return impl("device", where).device; }
  DType scalar_type(Where where = Where::current()) const { return dtype(where); }
  int64_t element_size(Where where = Where::current()) const { return item_size(dtype(where)); }
  bool is_floating_point() const { return is_floating(dtype()); }
  bool is_traced() const { return bool(impl().traced); }
  bool is_cuda() const { return device().is_cuda(); }
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
  Scalar item(Where where = Where::current()) const;
  template <class T>
  T item(Where where = Where::current()) const {
    Scalar s = item(where);
    if constexpr (std::is_same_v<T, bool>)
      return s.to_bool();
    else if constexpr (std::is_integral_v<T>)
      return T(s.to_int());
    else
      return T(s.to_double());
  }
  // All elements in row-major order, converted.
  template <class T>
  std::vector<T> to_vector(Where where = Where::current()) const;

  // --- autograd
  bool requires_grad() const;
  const Tensor& requires_grad_(bool requires_grad = true, Where where = Where::current()) const;
  Tensor grad() const;
  void set_grad(const Tensor& grad, Where where = Where::current()) const;
  bool is_leaf() const;
  void backward(const Tensor& gradient = {}, bool retain_graph = false, bool create_graph = false,
                Where where = Where::current()) const;
  Tensor detach() const;

  // --- conversions
  Tensor to(DType dtype, Where where = Where::current()) const;
  Tensor to(Device device, Where where = Where::current()) const;
  Tensor to(DeviceType device, Where where = Where::current()) const { return to(Device(device), where); }
  // With `non_blocking` a copy from page-locked memory (pin_memory) to a device is queued like any work of that device, and
  // the host goes on: that memory must keep its values until then. Elsewhere it changes nothing.
  Tensor to(Device device, bool non_blocking, Where where = Where::current()) const;
  Tensor to(Device device, DType dtype, Where where = Where::current()) const {
    return to(TensorOptions(dtype).device(device), where);
  }
  Tensor to(MemoryFormat format, Where where = Where::current()) const;
  Tensor to(const TensorOptions& options, Where where = Where::current()) const;
  Tensor type_as(const Tensor& other, Where where = Where::current()) const { return to(other.options(where), where); }
  Tensor cpu(Where where = Where::current()) const { return to(Device(kCPU), where); }
  Tensor cuda(int index = 0, Where where = Where::current()) const { return to(Device(kCUDA, index), where); }
  // A copy in host memory that is page-locked for the device; the tensor itself where the device has no such memory, and
  // inside a compiled function. The memory is not given to others before the copies queued from it are done.
  Tensor pin_memory(Device device = kCUDA, Where where = Where::current()) const;
  Tensor contiguous(MemoryFormat format = MemoryFormat::kContiguous, Where where = Where::current()) const;
  Tensor clone(MemoryFormat format = MemoryFormat::kPreserve, Where where = Where::current()) const;

  // --- views
  Tensor view(const Shape& shape, Where where = Where::current()) const;
  Tensor reshape(const Shape& shape, Where where = Where::current()) const;
  Tensor flatten(int64_t start = 0, int64_t end = -1, Where where = Where::current()) const;
  Tensor permute(const IntList& dims, Where where = Where::current()) const;
  Tensor transpose(int64_t a, int64_t b, Where where = Where::current()) const;
  Tensor t(Where where = Where::current()) const;
  Tensor squeeze(Where where = Where::current()) const;
  Tensor squeeze(int64_t dim, Where where = Where::current()) const;
  Tensor unsqueeze(int64_t dim, Where where = Where::current()) const;
  Tensor expand(const Shape& shape, Where where = Where::current()) const;
  Tensor expand_as(const Tensor& other, Where where = Where::current()) const {
    return expand(other.sizes(where), where);
  }
  Tensor view_as(const Tensor& other, Where where = Where::current()) const { return view(other.sizes(where), where); }
  Tensor select(int64_t dim, Dim index, Where where = Where::current()) const;
  Tensor slice(int64_t dim, std::optional<Dim> start = {}, std::optional<Dim> stop = {}, int64_t step = 1,
               Where where = Where::current()) const;
  Tensor narrow(int64_t dim, Dim start, Dim length, Where where = Where::current()) const;
  Tensor diagonal(int64_t offset = 0, int64_t dim1 = 0, int64_t dim2 = 1, Where where = Where::current()) const;
  std::vector<Tensor> split(Dim size, int64_t dim = 0, Where where = Where::current()) const;
  std::vector<Tensor> chunk(int64_t chunks, int64_t dim = 0, Where where = Where::current()) const;
  std::vector<Tensor> unbind(int64_t dim = 0, Where where = Where::current()) const;
  Tensor operator[](const ItemIndex& index) const;
  Tensor index(const std::vector<TensorIndex>& indices, Where where = Where::current()) const;

  // --- arithmetic and reductions most used as methods; every op is also a free function
  Tensor abs(Where where = Where::current()) const;
  Tensor neg(Where where = Where::current()) const;
  Tensor exp(Where where = Where::current()) const;
  Tensor log(Where where = Where::current()) const;
  Tensor sqrt(Where where = Where::current()) const;
  Tensor rsqrt(Where where = Where::current()) const;
  Tensor tanh(Where where = Where::current()) const;
  Tensor sigmoid(Where where = Where::current()) const;
  Tensor relu(Where where = Where::current()) const;
  Tensor sin(Where where = Where::current()) const;
  Tensor cos(Where where = Where::current()) const;
  Tensor square(Where where = Where::current()) const;
  Tensor pow(const TensorArg& exponent) const;
  Tensor add(const TensorArg& other, const Scalar& alpha = 1) const;
  Tensor sub(const TensorArg& other, const Scalar& alpha = 1) const;
  Tensor mul(const TensorArg& other) const;
  Tensor div(const TensorArg& other) const;
  Tensor eq(const TensorArg& other) const;
  Tensor ne(const TensorArg& other) const;
  Tensor lt(const TensorArg& other) const;
  Tensor le(const TensorArg& other) const;
  Tensor gt(const TensorArg& other) const;
  Tensor ge(const TensorArg& other) const;
  Tensor matmul(const TensorArg& other) const;
  Tensor mm(const TensorArg& other) const;
  Tensor bmm(const TensorArg& other) const;
  Tensor sum(const IntList& dims = {}, bool keepdim = false, Where where = Where::current()) const;
  Tensor mean(const IntList& dims = {}, bool keepdim = false, Where where = Where::current()) const;
  Tensor prod(Where where = Where::current()) const;
  Tensor amax(const IntList& dims = {}, bool keepdim = false, Where where = Where::current()) const;
  Tensor amin(const IntList& dims = {}, bool keepdim = false, Where where = Where::current()) const;
  Tensor argmax(std::optional<int64_t> dim = {}, bool keepdim = false, Where where = Where::current()) const;
  Tensor argmin(std::optional<int64_t> dim = {}, bool keepdim = false, Where where = Where::current()) const;
  Tensor max(Where where = Where::current()) const;
  std::tuple<Tensor, Tensor> max(int64_t dim, bool keepdim = false, Where where = Where::current()) const;
  Tensor min(Where where = Where::current()) const;
  std::tuple<Tensor, Tensor> min(int64_t dim, bool keepdim = false, Where where = Where::current()) const;
  Tensor all(const IntList& dims = {}, bool keepdim = false, Where where = Where::current()) const;
  Tensor any(const IntList& dims = {}, bool keepdim = false, Where where = Where::current()) const;
  Tensor var(const IntList& dims = {}, int64_t correction = 1, bool keepdim = false, Where where = Where::current()) const;
  Tensor std(const IntList& dims = {}, int64_t correction = 1, bool keepdim = false, Where where = Where::current()) const;
  Tensor norm(const Scalar& p = 2, Where where = Where::current()) const;
  Tensor softmax(int64_t dim, Where where = Where::current()) const;
  Tensor log_softmax(int64_t dim, Where where = Where::current()) const;
  Tensor cumsum(int64_t dim, Where where = Where::current()) const;
  Tensor clamp(const std::optional<Scalar>& min, const std::optional<Scalar>& max = {}, Where where = Where::current()) const;
  Tensor masked_fill(const TensorArg& mask, const TensorArg& value) const;
  Tensor index_select(int64_t dim, const TensorArg& index) const;
  Tensor gather(int64_t dim, const TensorArg& index) const;
  Tensor floor(Where where = Where::current()) const;
  Tensor ceil(Where where = Where::current()) const;
  Tensor round(Where where = Where::current()) const;
  Tensor trunc(Where where = Where::current()) const;
  Tensor sign(Where where = Where::current()) const;
  Tensor reciprocal(Where where = Where::current()) const;
  Tensor erf(Where where = Where::current()) const;
  Tensor log1p(Where where = Where::current()) const;
  Tensor log2(Where where = Where::current()) const;
  Tensor isnan(Where where = Where::current()) const;
  Tensor isinf(Where where = Where::current()) const;
  Tensor isfinite(Where where = Where::current()) const;
  Tensor logical_not(Where where = Where::current()) const;
  Tensor nonzero(Where where = Where::current()) const;
  Tensor floor_divide(const TensorArg& other) const;
  Tensor fmod(const TensorArg& other) const;
  Tensor remainder(const TensorArg& other) const;
  Tensor maximum(const TensorArg& other) const;
  Tensor minimum(const TensorArg& other) const;
  Tensor dot(const TensorArg& other) const;
  Tensor outer(const TensorArg& other) const;
  Tensor masked_select(const TensorArg& other) const;
  Tensor clamp_min(const TensorArg& other) const;
  Tensor clamp_max(const TensorArg& other) const;
  Tensor logical_and(const TensorArg& other) const;
  Tensor logical_or(const TensorArg& other) const;
  Tensor lerp(const TensorArg& end, const TensorArg& weight) const;
  Tensor logsumexp(const IntList& dims, bool keepdim = false, Where where = Where::current()) const;
  Tensor prod(int64_t dim, bool keepdim = false, Where where = Where::current()) const;
  std::tuple<Tensor, Tensor> sort(int64_t dim = -1, bool descending = false, Where where = Where::current()) const;
  Tensor argsort(int64_t dim = -1, bool descending = false, Where where = Where::current()) const;
  std::tuple<Tensor, Tensor> topk(Dim k, int64_t dim = -1, bool largest = true, Where where = Where::current()) const;
  Tensor tril(int64_t diagonal = 0, Where where = Where::current()) const;
  Tensor triu(int64_t diagonal = 0, Where where = Where::current()) const;
  Tensor roll(const Shape& shifts, const IntList& dims = {}, Where where = Where::current()) const;
  Tensor unflatten(int64_t dim, const Shape& sizes, Where where = Where::current()) const;
  Tensor movedim(int64_t source, int64_t destination, Where where = Where::current()) const;
  Tensor scatter(int64_t dim, const TensorArg& index, const TensorArg& source) const;
  Tensor scatter_add(int64_t dim, const TensorArg& index, const TensorArg& source) const;
  Tensor index_add(int64_t dim, const TensorArg& index, const TensorArg& source) const;
  bool equal(const TensorArg& other) const;
  bool allclose(const TensorArg& other, double rtol = 1e-5, double atol = 1e-8) const;
  Tensor repeat(const Shape& repeats, Where where = Where::current()) const;
  Tensor flip(const IntList& dims, Where where = Where::current()) const;

  // --- in place: each writes this tensor's memory and returns it
  const Tensor& copy_(const TensorArg& source) const;
  const Tensor& fill_(const TensorArg& value) const;
  const Tensor& zero_(Where where = Where::current()) const;
  const Tensor& add_(const TensorArg& other, const Scalar& alpha = 1) const;
  const Tensor& sub_(const TensorArg& other, const Scalar& alpha = 1) const;
  const Tensor& mul_(const TensorArg& other) const;
  const Tensor& div_(const TensorArg& other) const;
  const Tensor& pow_(const TensorArg& exponent) const;
  const Tensor& neg_(Where where = Where::current()) const;
  const Tensor& exp_(Where where = Where::current()) const;
  const Tensor& sqrt_(Where where = Where::current()) const;
  const Tensor& relu_(Where where = Where::current()) const;
  const Tensor& sigmoid_(Where where = Where::current()) const;
  const Tensor& tanh_(Where where = Where::current()) const;
  const Tensor& clamp_(const std::optional<Scalar>& min, const std::optional<Scalar>& max = {},
                       Where where = Where::current()) const;
  const Tensor& lerp_(const TensorArg& end, const TensorArg& weight) const;
  const Tensor& addcmul_(const TensorArg& a, const TensorArg& b, const Scalar& value = 1) const;
  const Tensor& addcdiv_(const TensorArg& a, const TensorArg& b, const Scalar& value = 1) const;
  const Tensor& masked_fill_(const TensorArg& mask, const TensorArg& value) const;
  const Tensor& index_put_(const std::vector<TensorIndex>& indices, const TensorArg& value, bool accumulate = false) const;
  const Tensor& index_copy_(int64_t dim, const TensorArg& index, const TensorArg& source) const;
  const Tensor& index_add_(int64_t dim, const TensorArg& index, const TensorArg& source) const;
  const Tensor& scatter_(int64_t dim, const TensorArg& index, const TensorArg& source) const;
  const Tensor& scatter_add_(int64_t dim, const TensorArg& index, const TensorArg& source) const;
  const Tensor& uniform_(double low = 0, double high = 1, Where where = Where::current()) const;
  const Tensor& normal_(double mean = 0, double std = 1, Where where = Where::current()) const;
  const Tensor& bernoulli_(double p = 0.5, Where where = Where::current()) const;
  const Tensor& operator+=(const TensorArg& other) const;
  const Tensor& operator-=(const TensorArg& other) const;
  const Tensor& operator*=(const TensorArg& other) const;
  const Tensor& operator/=(const TensorArg& other) const;

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
  [[noreturn]] static void fail_undefined();
  [[noreturn]] static void fail_undefined(const char* asker, const Where& where);
  void* checked_data(DType dtype, const Where& where) const;

  IntrusivePtr<TensorImpl> impl_;
};

using TensorList = std::vector<Tensor>;

// One entry of index() and index_put_().
struct TensorIndex {
  std::variant<Dim, Slice, EllipsisIndex, NewAxis, Tensor> value;
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  TensorIndex(T i) : value(Dim(i)) {}
  // "...", as an Ellipsis.
  TensorIndex(const char* ellipsis);
  TensorIndex(const Dim& d) : value(d) {}
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
    requires(std::is_arithmetic_v<T>)
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
// A view of the same buffer with another geometry, `offset` elements from the buffer's start; the caller has checked
// that it fits.
Tensor make_view(const Tensor& base, const IntList& sizes, const IntList& strides, int64_t offset);

namespace detail {
// Values of the host type of `source`, converted. Without a dtype: i32 literals give i64, f64 literals f32.
Tensor from_literals(const void* values, DType source, const Shape& shape, std::optional<DType> dtype);
// The same for a matrix given row by row; an Error when the rows differ in length.
Tensor from_rows(const void* values, DType source, std::span<const size_t> row_sizes, std::optional<DType> dtype);
}  // namespace detail

// tensor({1.0, 2.0}), tensor({{1, 2}, {3, 4}}), tensor(3), from C++ literals.
template <class T>
Tensor tensor(std::initializer_list<T> values, std::optional<DType> dtype = {}) {
  return detail::from_literals(values.begin(), dtype_of<T>, {Dim(values.size())}, dtype);
}
template <class T>
Tensor tensor(std::initializer_list<std::initializer_list<T>> rows, std::optional<DType> dtype = {}) {
  SmallVector<T, 16> values;
  SmallVector<size_t, 8> row_sizes;
  for (auto& row : rows) {
    values.append({row.begin(), row.size()});
    row_sizes.push_back(row.size());
  }
  return detail::from_rows(values.data(), dtype_of<T>, row_sizes, dtype);
}
template <class T>
  requires(std::is_arithmetic_v<T> && !std::same_as<T, bool>)
Tensor tensor(const std::vector<T>& values, std::optional<DType> dtype = {}) {
  return detail::from_literals(values.data(), dtype_of<T>, {Dim(values.size())}, dtype);
}
template <class T>
  requires(std::is_arithmetic_v<T>)
Tensor tensor(T value, std::optional<DType> dtype = {}) {
  return detail::from_literals(&value, dtype_of<T>, {}, dtype);
}
Tensor scalar_tensor(const Scalar& value, std::optional<DType> dtype = {});

// --- showing
struct PrintOptions {
  int64_t edge_items = 3, threshold = 1000;
  int precision = 4, line_width = 80;
};
std::string to_string(const Tensor& tensor, const PrintOptions& options);
std::string to_string(const Tensor& tensor);
std::ostream& operator<<(std::ostream& out, const Tensor& tensor);

}  // namespace sinter
