#include "sinter/data/npy.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <set>
#include <utility>

#include "sinter/base/error.h"
#include "sinter/data/zip.h"
#include "sinter/io/file.h"
#include "sinter/tensor/memory_format.h"

namespace sinter::data {

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kMaxRank = 64, kAlignment = 64;

struct ArrayType {
  const char* code;  // without the byte order
  int64_t size;
  DType dtype;  // of the tensor
};

constexpr ArrayType kTypes[] = {
    {"b1", 1, kBool},    {"u1", 1, kUInt8}, {"i1", 1, kInt8},    {"i2", 2, kInt16},
    {"i4", 4, kInt32},   {"i8", 8, kInt64}, {"f2", 2, kFloat16}, {"f4", 4, kFloat32},
    {"f8", 8, kFloat64}, {"u2", 2, kInt32}, {"u4", 4, kInt64},   {"u8", 8, kInt64},
    {"c8", 8, kComplex64}, {"c16", 16, kComplex128},
};

struct Header {
  const ArrayType* type = nullptr;
  bool big_endian = false, column_major = false;
  IntList shape;
  int64_t numel = 1;
  size_t end = 0;  // where the elements begin
};

// Reads the header, a literal of Python: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }.
class HeaderReader {
 public:
  HeaderReader(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  Header read() {
    Header header;
    std::set<std::string_view> keys;
    expect('{');
    while (!take('}')) {
      std::string_view key = quoted();
      require(keys.insert(key).second, "a key comes twice");
      expect(':');
      if (key == "descr")
        read_type(header);
      else if (key == "fortran_order")
        header.column_major = truth();
      else if (key == "shape")
        read_shape(header);
      else
        require(false, "its header has a key that is not NumPy's");
      if (!take(',')) {
        expect('}');
        break;
      }
    }
    require(keys.size() == 3, "its header lacks a key");
    return header;
  }

 private:
  void require(bool condition, const char* what) const {
    check(condition, "npy: '{}' is not understood: {}", name_, what);
  }
  void skip_spaces() {
    while (!text_.empty() && (text_[0] == ' ' || text_[0] == '\n')) text_.remove_prefix(1);
  }
  bool take(char c) {
    skip_spaces();
    if (text_.empty() || text_[0] != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  void expect(char c) { require(take(c), "its header is not a dictionary of Python"); }
  bool take_word(std::string_view word) {
    skip_spaces();
    if (!text_.starts_with(word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }

  std::string_view quoted() {
    skip_spaces();
    require(!text_.empty() && (text_[0] == '\'' || text_[0] == '"'), "its header lacks a text; records are not read");
    const size_t end = text_.find(text_[0], 1);
    require(end != text_.npos, "a text in its header does not end");
    std::string_view out = text_.substr(1, end - 1);
    text_.remove_prefix(end + 1);
    return out;
  }

  bool truth() {
    if (take_word("True")) return true;
    require(take_word("False"), "fortran_order is neither True nor False");
    return false;
  }

  void read_type(Header& header) {
    std::string_view code = quoted();
    const bool has_order = !code.empty() && std::string_view("<>|=").find(code[0]) != std::string_view::npos;
    header.big_endian = has_order && code[0] == '>';
    std::string_view bare = code.substr(has_order);
    auto* type = std::find_if(std::begin(kTypes), std::end(kTypes), [&](auto& t) { return t.code == bare; });
    check(type != std::end(kTypes), "npy: '{}' has the dtype '{}', which is not supported", name_, code);
    header.type = type;
  }

  void read_shape(Header& header) {
    expect('(');
    bool overflow = false, empty = false;
    int64_t numel = 1;
    while (!take(')')) {
      skip_spaces();
      int64_t size = -1;
      auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), size);
      require(error == std::errc() && size >= 0, "its shape is not a tuple of sizes");
      text_.remove_prefix(size_t(end - text_.data()));
      header.shape.push_back(size);
      require(header.shape.size() <= kMaxRank, "it has too many dimensions");
      empty |= size == 0;
      overflow |= __builtin_mul_overflow(numel, size, &numel);
      if (!take(',')) {
        expect(')');
        break;
      }
    }
    require(empty || !overflow, "its sizes overflow");
    header.numel = empty ? 0 : numel;
  }

  std::string_view text_;
  const std::string& name_;
};

Header read_header(std::string_view bytes, const std::string& name) {
  check(bytes.starts_with(kMagic) && bytes.size() >= 10, "npy: '{}' is not a .npy file", name);
  const int version = bytes[6];
  check(version >= 1 && version <= 3, "npy: '{}' has the version {}, which is not known", name, version);
  uint32_t length = 0;
  const size_t begin = version == 1 ? 10 : 12;
  check(bytes.size() >= begin, "npy: '{}' is cut short", name);
  std::memcpy(&length, bytes.data() + 8, version == 1 ? 2 : 4);
  check(length <= bytes.size() - begin, "npy: '{}' is cut short", name);
  Header header = HeaderReader(bytes.substr(begin, length), name).read();
  header.end = begin + length;
  const uint64_t room = bytes.size() - header.end, item = uint64_t(header.type->size);
  check(uint64_t(header.numel) <= room / item && uint64_t(header.numel) * item == room,
        "npy: '{}' has {} bytes of elements, its shape {} of {} takes another number", name, room, header.shape,
        header.type->code);
  return header;
}

// Unsigned integers for which there is no dtype.
bool is_widened(const Header& header) { return header.type->code[0] == 'u' && header.type->size > 1; }

void check_truth_values(const char* data, int64_t count, const std::string& name) {
  check(std::all_of(data, data + count, [](char c) { return c == 0 || c == 1; }),
        "npy: '{}' has values that are neither true nor false", name);
}

template <class From, class To>
void widen(std::string_view bytes, To* out, const std::string& name) {
  for (size_t i = 0; i < bytes.size() / sizeof(From); ++i) {
    From value;
    std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
    check(std::in_range<To>(value), "npy: '{}' holds {}, which is too large for {}", name, value, dtype_of<To>);
    out[i] = To(value);
  }
}

// A tensor of its own, whatever the order of bytes and elements in the file.
Tensor copy_elements(const Header& header, std::string_view bytes, const std::string& name) {
  std::string swapped;
  const auto size = size_t(header.type->size);
  if (header.big_endian && size > 1) {
    swapped = bytes;
    // Of a complex number each part.
    const int64_t number = item_size(real_dtype(header.type->dtype)), step = is_widened(header) ? header.type->size : number;
    for (auto at = swapped.begin(); at != swapped.end(); at += step) std::reverse(at, at + step);
    bytes = swapped;
  }
  Tensor out = empty(Shape(header.shape), header.type->dtype);
  if (is_widened(header)) {
    if (size == 2) widen<uint16_t>(bytes, out.data_ptr<int32_t>(), name);
    if (size == 4) widen<uint32_t>(bytes, out.data_ptr<int64_t>(), name);
    if (size == 8) widen<uint64_t>(bytes, out.data_ptr<int64_t>(), name);
  } else if (!bytes.empty()) {
    std::memcpy(out.data_ptr(), bytes.data(), bytes.size());
  }
  if (header.type->dtype == kBool) check_truth_values(bytes.data(), header.numel, name);
  if (!header.column_major || header.numel == 0) return out;
  IntList strides;
  int64_t stride = 1;
  for (int64_t n : header.shape) {
    strides.push_back(stride);
    stride *= n;
  }
  Tensor rows = empty(Shape(header.shape), header.type->dtype);
  copy_packed(make_view(out, header.shape, strides, 0), rows.data_ptr());
  return rows;
}

// The file's bytes before its elements.
std::string header_of(const Tensor& tensor) {
  auto* type = std::find_if(std::begin(kTypes), std::end(kTypes), [&](auto& t) { return t.dtype == tensor.dtype(); });
  check(type != std::end(kTypes), "save_npy: NumPy has no {}; convert the tensor first", tensor.dtype());
  std::string text =
      format("{'descr': '{}{}', 'fortran_order': False, 'shape': (", type->size == 1 ? "|" : "<", type->code);
  for (int64_t n : tensor.impl().sizes) text += format("{}, ", n);
  text += "), }";
  // The elements begin at a multiple of 64, behind magic, version and length.
  text.resize((text.size() + 11 + kAlignment - 1) / kAlignment * kAlignment - 11, ' ');
  text += '\n';
  const auto length = uint16_t(text.size());
  std::string out(kMagic);
  out += {1, 0, char(length & 0xff), char(length >> 8)};
  return out + text;
}

std::string packed_npy(const Tensor& tensor, const std::string& name) {
  check(tensor.defined() && !tensor.is_traced(), "save_npy: '{}' is undefined, or a value of a graph being captured",
        name);
  std::string out = header_of(tensor);
  const size_t begin = out.size();
  out.resize(begin + size_t(tensor.impl().numel * tensor.element_size()));
  copy_packed(tensor, out.data() + begin);
  return out;
}

}  // namespace

Tensor load_npy(const std::string& path) {
  auto file = std::make_shared<MappedFile>("npy", path);
  const Header header = read_header(file->bytes(), path);
  char* data = file->data() + header.end;
  if (header.big_endian || header.column_major || is_widened(header) ||
      uintptr_t(data) % uintptr_t(item_size(real_dtype(header.type->dtype))) != 0)
    return copy_elements(header, file->bytes().substr(header.end), path);
  if (header.type->dtype == kBool) check_truth_values(data, header.numel, path);
  return from_blob(data, Shape(header.shape), header.type->dtype, [file] {});
}

void save_npy(const std::string& path, const Tensor& tensor) {
  std::string bytes = packed_npy(tensor, path);
  PendingFile file("npy", path);
  file.write(bytes);
  file.commit();
}

NamedTensors load_npz(const std::string& path) {
  MappedFile file("npz", path);
  ZipReader archive(file.bytes(), path);
  NamedTensors out;
  for (auto& entry : archive.entries()) {
    const std::string name = format("{}' in '{}", entry.name, path);
    const std::string bytes = unpacked(archive, entry);
    const Header header = read_header(bytes, name);
    std::string key = entry.name.ends_with(".npy") ? entry.name.substr(0, entry.name.size() - 4) : entry.name;
    out.emplace_back(std::move(key), copy_elements(header, std::string_view(bytes).substr(header.end), name));
  }
  return out;
}

void save_npz(const std::string& path, const NamedTensors& tensors, bool compressed) {
  std::set<std::string_view> names;
  PendingFile file("npz", path);
  ZipWriter archive(file);
  for (auto& [name, tensor] : tensors) {
    check(names.insert(name).second, "save_npz: two tensors are named '{}'", name);
    archive.add(name + ".npy", packed_npy(tensor, name), compressed);
  }
  archive.finish();
  file.commit();
}

}  // namespace sinter::data
