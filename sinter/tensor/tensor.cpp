#include "sinter/tensor/tensor.h"

#include <algorithm>
#include <complex>
#include <cstring>

#include "sinter/base/error.h"
#include "sinter/tensor/memory_format.h"
#include "sinter/tensor/program_tracer.h"

namespace sinter {

namespace {

constexpr int64_t kMaxElements = int64_t(1) << 59;  // as checked_numel has it

// Real memory needs numbers: a symbolic size is specialised to its present value.
int64_t number_of(const Dim& d) { return d.is_number() ? d.number() : d.to_int(); }

// Sizes, row-major strides and the count of elements in one sweep.
void set_row_major(const char* op, TensorImpl& impl, const Shape& shape) {
  size_t rank = shape.size();
  impl.sizes.resize(rank);
  impl.strides.resize(rank);
  int64_t numel = 1, stride = 1;
  bool doubtful = false;
  for (size_t d = rank; d-- > 0;) {
    int64_t size = number_of(shape[d]);
    impl.sizes[d] = size;
    impl.strides[d] = stride;
    doubtful |= size < 0 || __builtin_mul_overflow(numel, size, &numel);
    if (size > 1) doubtful |= __builtin_mul_overflow(stride, size, &stride);
  }
  if (doubtful || numel >= kMaxElements) [[unlikely]]
    numel = checked_numel(op, impl.sizes);
  impl.numel = numel;
}

void apply_options(const char* op, TensorImpl& impl, const TensorOptions& options) {
  impl.dtype = options.dtype_;
  impl.device = options.device_;
  if (options.requires_grad_) {
    check(is_differentiable(impl.dtype),
          "{}: a tensor of {} cannot require a gradient; only floating-point and complex tensors can", op, impl.dtype);
    impl.requires_grad = true;
  }
}

[[noreturn]] void rethrow_out_of_memory(const char* op, const TensorImpl& impl, const OutOfMemoryError& error) {
  // The allocator names the function under way too: once is enough.
  std::string_view reason = error.message();
  reason.remove_prefix(std::min(reason.find("out of memory"), reason.size()));
  if (UserPosition::current()) op = UserPosition::function();
  auto message = format("{}: no memory for a tensor {}{}: {}", op, impl.dtype, impl.sizes, reason);
  if (auto* where = UserPosition::current()) throw OutOfMemoryError(message, *where);
  throw OutOfMemoryError(message);
}

void allocate(const char* op, TensorImpl& impl, int64_t elements) {
  try {
    impl.buffer = allocate_buffer(size_t(elements * item_size(impl.dtype)), impl.device);
  } catch (const OutOfMemoryError& error) {
    rethrow_out_of_memory(op, impl, error);
  }
}

// The public function under way is named before one that it asked.
std::string undefined_text(const char* asker) {
  return format("{}: the tensor is undefined: it was default-constructed or moved from; give it a value first",
                UserPosition::current() ? UserPosition::function() : asker);
}

[[noreturn]] void fail_at(const Where& where, const std::string& text) {
  auto* outer = UserPosition::current();
  throw Error(text, outer ? *outer : where);
}

const TensorImpl& eager(const char* what, const Tensor& tensor, const Where& where = Where::current()) {
  if (!tensor.defined()) [[unlikely]]
    fail_at(where, undefined_text(what));
  const TensorImpl& impl = tensor.impl();
  if (auto* tracer = Tracer::current()) [[unlikely]] {
    UserPosition here(where);
    return tracer->memory_of(tensor, what);
  }
  if (impl.traced) [[unlikely]]
    fail_at(where, format("{}: the tensor is a value of a graph that was being captured and has no memory: return it "
                          "from the captured function instead", what));
  return impl;
}

// The tensor that a traced one stands for at present.
Tensor real_tensor(const char* what, const Tensor& tensor) {
  return Tensor(IntrusivePtr<TensorImpl>::share(const_cast<TensorImpl*>(&eager(what, tensor))));
}

// The body whose strides are asked for. A traced one has its present layout, to which the program is now specialised.
const TensorImpl& laid_out(const char* what, const Tensor& tensor, const Where& where = Where::current()) {
  if (!tensor.defined() || !tensor.is_traced() || !tensor.impl().traced->has_layout()) {
    TracerScope eagerly(nullptr);
    return eager(what, tensor, where);
  }
  UserPosition here(where);
  for (auto& d : tensor.impl().traced_shape) d.to_int(where);
  return tensor.impl();
}

// Tensors made of the host's numbers are constants of a program being captured.
Tensor made(Tensor tensor) {
  auto* tracer = Tracer::current();
  return tracer ? tracer->constant(tensor) : tensor;
}

// Calls f with a value of the element's host type, also of a complex one.
template <class F>
decltype(auto) visit_element(DType d, F&& f) {
  if (d == kComplex64) return f(std::complex<float>());
  if (d == kComplex128) return f(std::complex<double>());
  return visit_dtype(d, std::forward<F>(f));
}

// A value of the host type T from one of the host type U; the half types go through float, and a complex number without an
// imaginary part may become a real one.
template <class T, class U>
T convert(U value) {
  constexpr bool kFromHalf = std::is_same_v<U, Half> || std::is_same_v<U, BFloat16>;
  if constexpr (std::is_same_v<T, U>)
    return value;
  else if constexpr (ComplexNumber<U> && ComplexNumber<T>)
    return T(value);
  else if constexpr (ComplexNumber<U> && std::is_same_v<T, bool>)
    return value != U(0);
  else if constexpr (ComplexNumber<U>)
    return convert<T>(Scalar(value).to_double());
  else if constexpr (ComplexNumber<T>)
    return T(convert<typename T::value_type>(value));
  else if constexpr (kFromHalf)
    return convert<T>(float(value));
  else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
    return T(float(value));
  else if constexpr (std::is_same_v<T, bool>)
    return value != U(0);
  else
    return static_cast<T>(value);
}

[[gnu::noinline]] void fail_size(int64_t d, int64_t rank, const Where& where) {
  UserPosition here(where);
  check(rank > 0, "size: dimension {} of a tensor of 0 dimensions does not exist", d);
  wrap_dim("size", d, rank);
}

}  // namespace

// --- what it is ------------------------------------------------------------------------------------------------------

void Tensor::fail_undefined() { throw_error(undefined_text("Tensor")); }

void Tensor::fail_undefined(const char* asker, const Where& where) {
  fail_at(where, undefined_text(asker));
}

TensorIndex::TensorIndex(const char* ellipsis) : value(Ellipsis) {
  check(std::string_view(ellipsis) == "...", "index: the text \"{}\" is no index; only \"...\" is", ellipsis);
}

TensorIndex::TensorIndex(const std::vector<int64_t>& positions) : value(tensor(positions)) {}

Dim Tensor::size(int64_t d, Where where) const {
  TensorImpl& body = impl("size", where);
  int64_t rank = dim(), i = d < 0 ? d + rank : d;
  if (i < 0 || i >= rank) [[unlikely]]
    fail_size(d, rank, where);
  if (!body.traced) return body.sizes[size_t(i)];
  const Dim& size = body.traced_shape[size_t(i)];
  if (auto* tracer = Tracer::current(); tracer && !size.is_number()) tracer->asked_size(size, where);
  return size;
}

Shape Tensor::sizes(Where where) const {
  TensorImpl& body = impl("sizes", where);
  return body.traced ? body.traced_shape : Shape(std::span<const int64_t>(body.sizes));
}

Dim Tensor::numel(Where where) const {
  TensorImpl& body = impl("numel", where);
  return body.traced ? body.traced_shape.numel() : Dim(body.numel);
}

const IntList& Tensor::strides(Where where) const { return laid_out("strides", *this, where).strides; }

int64_t Tensor::stride(int64_t d, Where where) const {
  UserPosition here(where);
  auto& body = laid_out("stride", *this);
  check(!body.strides.empty(), "stride: dimension {} of a tensor of 0 dimensions does not exist", d);
  return body.strides[size_t(wrap_dim("stride", d, dim()))];
}

int64_t Tensor::storage_offset(Where where) const { return laid_out("storage_offset", *this, where).offset; }

bool Tensor::is_contiguous(MemoryFormat format) const {
  TensorImpl& body = impl();
  if (body.traced && !body.traced->has_layout()) return format == MemoryFormat::kContiguous;
  return format == MemoryFormat::kContiguous ? body.contiguous : has_format(body.sizes, body.strides, format);
}

bool Tensor::is_alias_of(const Tensor& other) const {
  TensorImpl &a = impl(), &b = other.impl();
  if (a.traced && b.traced) return a.traced->memory() == b.traced->memory();
  return !a.traced && !b.traced && a.buffer == b.buffer;
}

// --- its values ------------------------------------------------------------------------------------------------------

void* Tensor::data_ptr(Where where) const {
  auto& body = eager("data_ptr", *this, where);
  auto* start = static_cast<char*>(body.buffer->data());
  return start ? start + body.offset * item_size(body.dtype) : nullptr;
}

void* Tensor::checked_data(DType dtype, const Where& where) const {
  void* data = data_ptr(where);
  UserPosition here(where);
  check(dtype == impl().dtype, "data_ptr: asked for elements of {}, the tensor holds {}; convert it with .to()", dtype, impl().dtype);
  return data;
}

const TensorImpl& Tensor::checked_layout(DType dtype, size_t rank, const Where& where) const {
  UserPosition here(where);
  const TensorImpl& body = eager("accessor", *this);
  check(body.device.is_cpu(), "accessor: the tensor is on {}: only the host's memory is read by coordinates; take x.cpu()",
        body.device);
  check(body.dtype == dtype, "accessor: asked for elements of {}, the tensor holds {}; convert it with .to()", dtype, body.dtype);
  check(body.sizes.size() == rank, "accessor: asked for {} dimensions, the tensor has shape {}", rank, body.sizes);
  return body;
}

Scalar Tensor::item(Where where) const {
  UserPosition here(where);
  if (auto* tracer = Tracer::current()) {
    check(numel() == 1, "item: the tensor of shape {} has {} elements; item() reads a tensor of exactly one", sizes(),
          numel());
    if (is_complex()) {
      Tensor parts = view_as_real().reshape({2});
      return Scalar(std::complex<double>(parts[0].item().to_double(), parts[1].item().to_double()));
    }
    return tracer->item(*this);
  }
  auto& body = eager("item", *this);
  check(body.numel == 1, "item: the tensor of shape {} has {} elements; item() reads a tensor of exactly one",
        body.sizes, body.numel);
  return visit_element(body.dtype, [&](auto zero) {
    using T = decltype(zero);
    T value;
    copy_bytes(&value, Device(), data_ptr(), body.device, sizeof value);
    if constexpr (std::is_class_v<T> && !ComplexNumber<T>)
      return Scalar(float(value));
    else
      return Scalar(value);
  });
}

template <class T>
std::vector<T> Tensor::to_vector(Where where) const {
  UserPosition here(where);
  if (Tracer::current()) {
    Tensor real = real_tensor("to_vector", *this);
    TracerScope eagerly(nullptr);
    return real.to_vector<T>();
  }
  auto& body = eager("to_vector", *this);
  std::vector<T> out(size_t(body.numel));
  visit_element(body.dtype, [&](auto zero) {
    using U = decltype(zero);
    if constexpr (std::is_same_v<T, U> && !std::is_same_v<T, bool>) {
      copy_packed(*this, static_cast<std::vector<U>&>(out).data());
    } else {
      auto packed = std::make_unique_for_overwrite<U[]>(out.size());
      copy_packed(*this, packed.get());
      for (size_t i = 0; i < out.size(); ++i) out[i] = convert<T>(packed[i]);
    }
  });
  return out;
}

template std::vector<bool> Tensor::to_vector(Where) const;
template std::vector<uint8_t> Tensor::to_vector(Where) const;
template std::vector<int8_t> Tensor::to_vector(Where) const;
template std::vector<int16_t> Tensor::to_vector(Where) const;
template std::vector<int32_t> Tensor::to_vector(Where) const;
template std::vector<int64_t> Tensor::to_vector(Where) const;
template std::vector<long long> Tensor::to_vector(Where) const;
template std::vector<float> Tensor::to_vector(Where) const;
template std::vector<double> Tensor::to_vector(Where) const;
template std::vector<Half> Tensor::to_vector(Where) const;
template std::vector<BFloat16> Tensor::to_vector(Where) const;
template std::vector<std::complex<float>> Tensor::to_vector(Where) const;
template std::vector<std::complex<double>> Tensor::to_vector(Where) const;

// --- making eager tensors from memory --------------------------------------------------------------------------------

Tensor empty(const Shape& shape, const TensorOptions& options, MemoryFormat format, Where where) {
  UserPosition here(where);
  if (auto* tracer = Tracer::current()) {
    Tensor out = tracer->empty(shape, options);
    if (format == MemoryFormat::kChannelsLast || format == MemoryFormat::kChannelsLast3d)
      tracer->lay_out(out, format_strides("empty", out.impl().sizes, format));
    return out;
  }
  auto impl = make_intrusive<TensorImpl>();
  set_row_major("empty", *impl, shape);
  apply_options("empty", *impl, options);
  if (format == MemoryFormat::kChannelsLast || format == MemoryFormat::kChannelsLast3d) {
    impl->strides = format_strides("empty", impl->sizes, format);
    impl->contiguous = has_format(impl->sizes, impl->strides, MemoryFormat::kContiguous);
  }
  allocate("empty", *impl, impl->numel);
  return Tensor(std::move(impl));
}

Tensor empty_strided(const Shape& shape, const IntList& strides, const TensorOptions& options, Where where) {
  UserPosition here(where);
  if (auto* tracer = Tracer::current(); tracer && tracer->answers()) {
    Tensor out = tracer->empty(shape, options);
    tracer->lay_out(out, strides);
    return out;
  }
  auto impl = make_intrusive<TensorImpl>();
  set_row_major("empty_strided", *impl, shape);
  apply_options("empty_strided", *impl, options);
  check(strides.size() == shape.size(), "empty_strided: {} strides for the shape {}", strides.size(), shape);
  int64_t elements = impl->numel > 0;
  bool overflow = false;
  for (size_t d = 0; d < strides.size(); ++d) {
    check(strides[d] >= 0, "empty_strided: a stride is negative: {}", strides);
    int64_t span = 0;
    if (impl->numel == 0) continue;
    overflow |= __builtin_mul_overflow(impl->sizes[d] - 1, strides[d], &span);
    overflow |= __builtin_add_overflow(elements, span, &elements);
  }
  check(!overflow && elements < kMaxElements, "empty_strided: shape {} with strides {} overflows the address space",
        shape, strides);
  impl->strides = strides;
  impl->contiguous = has_format(impl->sizes, strides, MemoryFormat::kContiguous);
  allocate("empty_strided", *impl, elements);
  return Tensor(std::move(impl));
}

Tensor from_bytes(const void* data, const Shape& shape, DType dtype, Where where) {
  UserPosition here(where);
  Tensor out;
  {
    Shape numbers;
    for (auto& d : shape) numbers.push_back(number_of(d));
    TracerScope eagerly(nullptr);
    out = empty(numbers, dtype);
    if (size_t bytes = out.impl().buffer->bytes()) std::memcpy(out.data_ptr(), data, bytes);
  }
  return made(out);
}

Tensor from_bytes_checked(const void* data, size_t count, const Shape& shape, DType dtype, Where where) {
  UserPosition here(where);
  IntList sizes;
  for (auto& d : shape) sizes.push_back(number_of(d));
  int64_t numel = checked_numel("from_data", sizes);
  check(size_t(numel) == count, "from_data: {} values do not fill the shape {}, which has {} elements", count, shape,
        numel);
  return from_bytes(data, shape, dtype);
}

Tensor from_data(const std::vector<bool>& data, const Shape& shape, Where where) {
  auto bytes = std::make_unique_for_overwrite<bool[]>(data.size());
  std::copy(data.begin(), data.end(), bytes.get());
  return from_bytes_checked(bytes.get(), data.size(), shape, kBool, where);
}

Tensor from_blob(void* data, const Shape& shape, const TensorOptions& options, std::function<void()> release,
                 Where where) {
  UserPosition here(where);
  auto impl = make_intrusive<TensorImpl>();
  set_row_major("from_blob", *impl, shape);
  apply_options("from_blob", *impl, options);
  check(data || impl->numel == 0, "from_blob: the pointer is null, the shape is {}", shape);
  int64_t item = item_size(impl->dtype);
  const int64_t alignment = item_size(real_dtype(impl->dtype));
  check(uintptr_t(data) % uintptr_t(alignment) == 0, "from_blob: the pointer is not aligned to the {} bytes of {}", alignment,
        real_dtype(impl->dtype));
  impl->buffer = make_intrusive<Buffer>(data, size_t(impl->numel * item), impl->device, std::move(release));
  Tensor blob(std::move(impl));
  if (auto* program = ProgramTracer::current()) program->lends(blob);
  return blob;
}

Tensor from_blob(void* data, const Shape& shape, const std::function<void(void*)>& deleter, const TensorOptions& options,
                 Where where) {
  return from_blob(data, shape, IntList(), deleter, options, where);
}

Tensor from_blob(void* data, const Shape& shape, const IntList& strides, const TensorOptions& options, Where where) {
  return from_blob(data, shape, strides, std::function<void(void*)>(), options, where);
}

Tensor from_blob(void* data, const Shape& shape, const IntList& strides, const std::function<void(void*)>& deleter,
                 const TensorOptions& options, Where where) {
  UserPosition here(where);
  std::function<void()> release;
  if (deleter) release = [=] { deleter(data); };
  if (strides.empty()) return from_blob(data, shape, options, std::move(release), where);
  check(strides.size() == shape.size(), "from_blob: {} strides for the shape {}", strides.size(), shape);
  int64_t last = 0, numel = 1;
  for (size_t d = 0; d < strides.size(); ++d) {
    check(strides[d] >= 0, "from_blob: a stride is negative: {}", strides);
    last += (number_of(shape[d]) - 1) * strides[d];
    numel *= number_of(shape[d]);
  }
  // The memory from the first element to the last, and the look at it that was asked for.
  Tensor flat = from_blob(data, {numel == 0 ? 0 : last + 1}, options, std::move(release), where);
  return make_view(flat, IntList(shape.vec()), strides, 0);
}

Tensor make_view(const Tensor& base, const IntList& sizes, const IntList& strides, int64_t offset) {
  const TensorImpl& from = eager("make_view", base);
  auto impl = make_intrusive<TensorImpl>();
  impl->dtype = from.dtype;
  impl->device = from.device;
  impl->offset = offset;
  impl->sizes = sizes;
  impl->strides = strides;
  int64_t numel = 1, expected = 1;
  bool contiguous = true, overflow = false;
  for (size_t d = sizes.size(); d-- > 0;) {
    overflow |= __builtin_mul_overflow(numel, sizes[d], &numel);
    contiguous &= sizes[d] == 1 || strides[d] == expected;
    expected = int64_t(uint64_t(expected) * uint64_t(sizes[d]));
  }
  if (overflow || numel >= kMaxElements) [[unlikely]]
    numel = checked_numel("view", sizes);
  impl->numel = numel;
  impl->contiguous = contiguous || numel == 0;
  impl->buffer = from.buffer;
  return Tensor(std::move(impl));
}

namespace detail {

Tensor from_literals(const void* values, DType source, const Shape& shape, const TensorOptions& options) {
  DType standard = source == kInt32           ? kInt64
                   : is_floating(source)      ? get_default_dtype()
                   : source == kComplex128    ? complex_dtype(get_default_dtype())
                                              : source;
  DType target = options.has_dtype_ ? options.dtype_ : standard;
  Tensor out;
  {
    TracerScope eagerly(nullptr);
    out = empty(shape, target);
  }
  size_t count = size_t(out.impl().numel);
  auto* values_of_out = out.impl().buffer->data();
  visit_element(source, [&](auto from) {
    visit_element(target, [&](auto to) {
      auto* read = static_cast<const decltype(from)*>(values);
      auto* write = static_cast<decltype(to)*>(values_of_out);
      for (size_t i = 0; i < count; ++i) write[i] = convert<decltype(to)>(read[i]);
    });
  });
  out = made(out);
  if (!options.device_.is_cpu()) out = out.to(options.device_);
  return options.requires_grad_ ? out.requires_grad_() : out;
}

void note_braces(IntList& sizes, size_t level, size_t count) {
  if (level == sizes.size()) sizes.push_back(int64_t(count));
  check(sizes[level] == int64_t(count), "tensor: rows of {} and {} values do not make a {}", sizes[level], count,
        level == 1 ? "matrix" : "tensor");
}

}  // namespace detail

Tensor TensorArg::lazy_tensor(const Scalar& scalar) { return scalar.lazy()->tensor(); }

Tensor scalar_tensor(const Scalar& value, std::optional<DType> dtype) {
  if (value.is_lazy()) {
    Tensor tensor = TensorArg(value).tensor();
    return dtype ? tensor.to(*dtype) : tensor;
  }
  TensorOptions options = dtype ? TensorOptions(*dtype) : TensorOptions();
  if (value.dtype() == kFloat64) {
    double v = value.to_double();
    return detail::from_literals(&v, kFloat64, {}, options);
  }
  if (value.is_complex()) {
    auto v = value.to<std::complex<double>>();
    return detail::from_literals(&v, kComplex128, {}, options);
  }
  if (value.dtype() == kBool) {
    bool v = value.to_bool();
    return detail::from_literals(&v, kBool, {}, options);
  }
  int64_t v = value.to_int();
  return detail::from_literals(&v, kInt64, {}, options);
}

}  // namespace sinter
