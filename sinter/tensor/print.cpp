// Tensors as text, in PyTorch's manner: one format for all elements, long tensors by their edges.
#include <cctype>
#include <cmath>
#include <cstdio>
#include <iostream>

#include "sinter/tensor/tensor.h"
#include "sinter/tensor/tracer.h"

namespace sinter {

namespace {

// Calls f(offset) for the elements that will be shown, in row-major order.
template <class F>
void for_shown(const TensorImpl& impl, size_t d, int64_t offset, int64_t edge, bool summarize, const F& f) {
  if (d == impl.sizes.size()) return f(offset);
  for (int64_t i = 0; i < impl.sizes[d]; ++i) {
    if (summarize && impl.sizes[d] > 2 * edge && i == edge) i = impl.sizes[d] - edge;
    if (i < impl.sizes[d]) for_shown(impl, d + 1, offset + i * impl.strides[d], edge, summarize, f);
  }
}

std::string printf_double(const char* pattern, int precision, double value) {
  char buffer[400];
  return std::string(buffer, size_t(std::snprintf(buffer, sizeof buffer, pattern, precision, value)));
}

// How every element of a tensor of real numbers is written: its notation and its width.
class RealFormat {
 public:
  RealFormat(const TensorImpl& impl, const void* data, const PrintOptions& options, bool summarize)
      : data_(data), dtype_(impl.dtype), precision_(options.precision) {
    if (is_floating(dtype_)) choose_notation(impl, options, summarize);
    for_shown(impl, 0, 0, options.edge_items, summarize, [&](int64_t offset) {
      // As in PyTorch, nan, inf and zero do not widen the column.
      if (is_floating(dtype_) && !is_ordinary(number(offset))) return;
      width_ = std::max(width_, int64_t(text(offset).size()));
    });
  }

  int64_t width() const { return width_; }

  std::string padded(int64_t offset) const {
    std::string out = text(offset);
    return std::string(size_t(std::max<int64_t>(0, width_ - int64_t(out.size()))), ' ') + out;
  }

 private:
  static bool is_ordinary(double v) { return std::isfinite(v) && v != 0; }

  void choose_notation(const TensorImpl& impl, const PrintOptions& options, bool summarize) {
    double least = INFINITY, most = 0;
    for_shown(impl, 0, 0, options.edge_items, summarize, [&](int64_t offset) {
      double v = number(offset);
      if (!is_ordinary(v)) return;
      least = std::min(least, std::abs(v));
      most = std::max(most, std::abs(v));
      whole_ &= v == std::ceil(v);
    });
    if (most > 0) scientific_ = most / least > 1000 || most > 1e8 || (!whole_ && least < 1e-4);
  }

  double number(int64_t offset) const {
    return visit_dtype(dtype_, [&](auto zero) { return double(static_cast<const decltype(zero)*>(data_)[offset]); });
  }

  std::string text(int64_t offset) const {
    if (!is_floating(dtype_)) {
      return visit_dtype(dtype_, [&](auto zero) -> std::string {
        auto v = static_cast<const decltype(zero)*>(data_)[offset];
        if constexpr (std::is_same_v<decltype(zero), bool>)
          return v ? "True" : "False";
        else if constexpr (std::is_integral_v<decltype(zero)>)
          return std::to_string(v);
        else
          return {};
      });
    }
    double v = number(offset);
    if (std::isnan(v)) return "nan";  // printf may show its sign
    if (scientific_) return printf_double("%.*e", precision_, v);
    if (!whole_) return printf_double("%.*f", precision_, v);
    return printf_double("%.*f", 0, v) + (std::isfinite(v) ? "." : "");
  }

  const void* data_;
  DType dtype_;
  int precision_;
  bool whole_ = true, scientific_ = false;
  int64_t width_ = 1;
};

// Of a tensor of complex numbers: 1.0000+2.0000j, each part as in a tensor of that part alone.
class ComplexFormat {
 public:
  ComplexFormat(const TensorImpl& impl, const void* data, const PrintOptions& options, bool summarize)
      : real_(part_of(impl), data, options, summarize),
        imaginary_(part_of(impl), static_cast<const char*>(data) + item_size(impl.dtype) / 2, options, summarize) {}

  int64_t width() const { return real_.width() + imaginary_.width() + 1; }

  std::string padded(int64_t offset) const {
    std::string imaginary = imaginary_.padded(2 * offset);
    imaginary.erase(0, imaginary.find_first_not_of(' '));
    return real_.padded(2 * offset) + (imaginary[0] == '-' ? "" : "+") + imaginary + "j";
  }

 private:
  static TensorImpl part_of(const TensorImpl& impl) {
    TensorImpl part;
    part.dtype = real_dtype(impl.dtype);
    part.sizes = impl.sizes;
    for (int64_t stride : impl.strides) part.strides.push_back(2 * stride);
    return part;
  }

  RealFormat real_, imaginary_;
};

template <class ElementFormat>
struct Printer {
  const TensorImpl& impl;
  const PrintOptions& options;
  const ElementFormat& element;
  bool summarize;

  // The entries of dimension d that are shown: first..edge, then "..." when there is a gap, then the rest.
  template <class Entry, class Gap>
  void entries(size_t d, const Entry& entry, const Gap& gap) const {
    int64_t size = impl.sizes[d], edge = options.edge_items;
    bool cut = summarize && size > 2 * edge;
    for (int64_t i = 0; i < (cut ? edge : size); ++i) entry(i);
    if (cut) gap();
    for (int64_t i = size - edge; cut && i < size; ++i) entry(i);
  }

  std::string vector(size_t d, int64_t offset, int64_t indent) const {
    int64_t per_line = std::max<int64_t>(1, (options.line_width - indent) / (element.width() + 2)), count = 0;
    std::string out = "[", newline = ",\n" + std::string(size_t(indent + 1), ' ');
    auto add = [&](const std::string& text) {
      if (count > 0) out += count % per_line == 0 ? newline : ", ";
      out += text;
      ++count;
    };
    entries(
        d, [&](int64_t i) { add(element.padded(offset + i * impl.strides[d])); }, [&] { add(" ..."); });
    return out + "]";
  }

  std::string values(size_t d, int64_t offset, int64_t indent) const {
    size_t rank = impl.sizes.size();
    if (d == rank) return element.padded(offset);
    if (d + 1 == rank) return vector(d, offset, indent);
    std::string out = "[", separator = "," + std::string(rank - d - 1, '\n') + std::string(size_t(indent + 1), ' ');
    bool first = true;
    auto add = [&](const std::string& text) {
      if (!first) out += separator;
      out += text;
      first = false;
    };
    entries(
        d, [&](int64_t i) { add(values(d + 1, offset + i * impl.strides[d], indent + 1)); }, [&] { add("..."); });
    return out + "]";
  }
};

// Appends ", suffix", on a new line where the last one has no room.
void append_suffix(std::string& out, const std::string& suffix, int64_t indent, int line_width) {
  size_t line = out.size() - (out.rfind('\n') + 1);
  if (line + suffix.size() + 4 > size_t(line_width))
    out += ",\n" + std::string(size_t(indent), ' ') + suffix;
  else
    out += ", " + suffix;
}

std::string size_tuple(const IntList& sizes) {
  std::string text = to_string(sizes);
  return "(" + text.substr(1, text.size() - 2) + (sizes.size() == 1 ? ",)" : ")");
}

}  // namespace

std::string to_string(const Tensor& tensor, const PrintOptions& options) {
  if (!tensor.defined()) return "Tensor(undefined)";
  if (auto* tracer = Tracer::current(); tracer && tracer->answers()) {
    const TensorImpl& real = tracer->memory_of(tensor, "printing");
    TracerScope eagerly(nullptr);
    return to_string(Tensor(IntrusivePtr<TensorImpl>::share(const_cast<TensorImpl*>(&real))), options);
  }
  const TensorImpl& impl = tensor.impl();
  if (impl.traced) return "Tensor(" + to_string(impl.dtype) + to_string(impl.traced_shape) + ", traced)";
  if (!impl.device.is_cpu()) {
    std::string text = to_string(tensor.to(Device()), options);
    text.pop_back();
    return text + ", device='" + to_string(impl.device) + "')";
  }

  std::string out = "tensor(", dtype = "dtype=" + to_string(impl.dtype);
  auto indent = int64_t(out.size());
  auto suffix = [&](const std::string& text) { append_suffix(out, text, indent, options.line_width); };
  if (impl.numel == 0) {
    out += "[]";
    if (impl.sizes.size() != 1) suffix("size=" + size_tuple(impl.sizes));
    if (impl.dtype != get_default_dtype()) suffix(dtype);
    return out + ")";
  }
  bool summarize = impl.numel > options.threshold;
  auto values_by = [&]<class ElementFormat>() {
    ElementFormat element(impl, tensor.data_ptr(), options, summarize);
    return Printer<ElementFormat>{impl, options, element, summarize}.values(0, 0, indent);
  };
  out += is_complex(impl.dtype) ? values_by.template operator()<ComplexFormat>() : values_by.template operator()<RealFormat>();
  if (summarize || (impl.dtype != get_default_dtype() && impl.dtype != kInt64 && impl.dtype != kBool && impl.dtype != complex_dtype(get_default_dtype()))) {
    suffix(dtype);
    if (!impl.sizes.empty()) suffix("shape=" + to_string(impl.sizes));
  }
  return out + ")";
}

std::string to_string(const Tensor& tensor) { return to_string(tensor, PrintOptions()); }

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) { return out << to_string(tensor); }

std::ostream& operator<<(std::ostream& out, const TensorOptions& options) {
  return out << "TensorOptions(dtype=" << options.dtype() << ", device=" << options.device()
             << ", requires_grad=" << (options.requires_grad() ? "true" : "false") << ")";
}

std::string Tensor::toString() const {
  std::string type(name_of(device().type()));
  for (char& c : type) c = char(std::toupper(c));
  return type + std::string(sinter::toString(dtype())) + "Type";
}

void print(const Tensor& tensor, int line_width) {
  std::cout << to_string(tensor, {.line_width = line_width}) << '\n';
}

void Tensor::print() const {
  if (!defined())
    std::cerr << "[undefined]\n";
  else
    std::cerr << '[' << dtype() << ' ' << sizes() << ' ' << device() << "]\n";
}

}  // namespace sinter
