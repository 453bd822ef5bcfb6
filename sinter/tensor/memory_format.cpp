#include "sinter/tensor/memory_format.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "sinter/base/error.h"

namespace sinter {

namespace {

// The dimensions from the innermost outward; none when the format does not fit the rank.
std::span<const int> inner_to_outer(MemoryFormat format, size_t rank) {
  static constexpr int kChannelsLast2d[] = {1, 3, 2, 0}, kChannelsLast3d[] = {1, 4, 3, 2, 0};
  if (format == MemoryFormat::kChannelsLast && rank == 4) return kChannelsLast2d;
  if (format == MemoryFormat::kChannelsLast3d && rank == 5) return kChannelsLast3d;
  return {};
}

template <class T>
T* copy_dimension(const T* from, T* to, std::span<const int64_t> sizes, std::span<const int64_t> strides) {
  if (sizes.empty()) {
    *to = *from;
    return to + 1;
  }
  if (sizes.size() == 1) {
    for (int64_t i = 0; i < sizes[0]; ++i) to[i] = from[i * strides[0]];
    return to + sizes[0];
  }
  for (int64_t i = 0; i < sizes[0]; ++i)
    to = copy_dimension(from + i * strides[0], to, sizes.subspan(1), strides.subspan(1));
  return to;
}

}  // namespace

std::string to_string(MemoryFormat format) {
  static constexpr const char* kNames[] = {"contiguous", "channels_last", "channels_last_3d", "preserve"};
  return kNames[int(format)];
}

IntList format_strides(const char* op, std::span<const int64_t> sizes, MemoryFormat format) {
  if (format == MemoryFormat::kContiguous || format == MemoryFormat::kPreserve) return contiguous_strides(sizes);
  auto order = inner_to_outer(format, sizes.size());
  check(!order.empty(), "{}: the memory format {} needs {} dimensions, the shape is {}", op, format,
        format == MemoryFormat::kChannelsLast ? 4 : 5, Shape(sizes));
  IntList strides(sizes.size());
  int64_t stride = 1;
  for (int d : order) {
    strides[d] = stride;
    if (sizes[d] > 1) stride *= sizes[d];
  }
  return strides;
}

bool has_format(std::span<const int64_t> sizes, std::span<const int64_t> strides, MemoryFormat format) {
  check(format != MemoryFormat::kPreserve, "is_contiguous: `preserve` is not an order of elements");
  int64_t expected = 1;
  auto fits = [&](size_t d) {
    if (sizes[d] == 1) return true;
    if (strides[d] != expected) return false;
    expected *= sizes[d];
    return true;
  };
  if (format == MemoryFormat::kContiguous) {
    for (int64_t s : sizes)
      if (s == 0) return true;
    for (size_t d = sizes.size(); d-- > 0;)
      if (!fits(d)) return false;
    return true;
  }
  auto order = inner_to_outer(format, sizes.size());
  for (int d : order)
    if (!fits(size_t(d))) return false;
  return !order.empty();
}

IntList preserved_strides(const IntList& sizes, const IntList& strides) {
  IntList order;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] != 1) order.push_back(int64_t(d));
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return strides[size_t(a)] < strides[size_t(b)]; });
  int64_t expected = 1;
  for (int64_t d : order) {
    if (strides[size_t(d)] != expected) return contiguous_strides(sizes);
    expected *= sizes[size_t(d)];
  }
  return strides;
}

bool overlaps_itself(const IntList& sizes, const IntList& strides) {
  struct Step {
    int64_t stride, size;
  };
  SmallVector<Step, 8> steps;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0) return false;
    if (sizes[d] > 1) steps.push_back({std::abs(strides[d]), sizes[d]});
  }
  std::sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) { return a.stride < b.stride; });
  // Beyond all that the smaller steps reach, a step leads to places of its own.
  size_t doubtful = 0;
  int64_t reach = 0, elements = 1, inner_reach = 0, inner_elements = 1;
  for (size_t i = 0; i < steps.size(); ++i) {
    bool in_doubt = steps[i].stride <= reach;
    reach += steps[i].stride * (steps[i].size - 1);
    elements *= steps[i].size;
    if (!in_doubt) continue;
    doubtful = i + 1;
    inner_reach = reach;
    inner_elements = elements;
  }
  if (doubtful == 0) return false;
  if (inner_elements > inner_reach + 1) return true;
  std::vector<bool> taken(size_t(inner_reach) + 1);
  for (int64_t element = 0; element < inner_elements; ++element) {
    int64_t place = 0, rest = element;
    for (size_t i = 0; i < doubtful; rest /= steps[i++].size) place += rest % steps[i].size * steps[i].stride;
    if (taken[size_t(place)]) return true;
    taken[size_t(place)] = true;
  }
  return false;
}

void check_apart(std::string_view op, const TensorImpl& written) {
  check(written.contiguous || !overlaps_itself(written.sizes, written.strides),
        "{}: the tensor written to is expanded, or its windows overlap: several of its elements share one place in memory. "
        "Call clone() first", op);
}

void copy_packed(const Tensor& tensor, void* out) {
  TensorImpl& impl = tensor.impl();
  const void* data = tensor.data_ptr();
  if (impl.numel == 0) return;
  if (!impl.device.is_cpu()) {
    Tensor packed = tensor.contiguous();
    return copy_bytes(out, Device(), packed.data_ptr(), impl.device, size_t(impl.numel * item_size(impl.dtype)));
  }
  if (impl.contiguous) {
    std::memcpy(out, data, size_t(impl.numel * item_size(impl.dtype)));
    return;
  }
  auto copy = [&](auto zero) {
    using T = decltype(zero);
    copy_dimension(static_cast<const T*>(data), static_cast<T*>(out), std::span<const int64_t>(impl.sizes),
                   std::span<const int64_t>(impl.strides));
  };
  switch (item_size(impl.dtype)) {
    case 1:
      return copy(uint8_t{});
    case 2:
      return copy(uint16_t{});
    case 4:
      return copy(uint32_t{});
    case 8:
      return copy(uint64_t{});
    default:
      return copy(std::array<uint64_t, 2>{});
  }
}

}  // namespace sinter
