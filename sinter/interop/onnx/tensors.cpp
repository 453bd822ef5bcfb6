#include "sinter/interop/onnx/tensors.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>

#include "sinter/base/error.h"
#include "sinter/interop/onnx/protobuf_api.h"

namespace sinter::interop::onnx {

using protozero::pbf_reader;

namespace {

constexpr size_t kMostRank = 64;

uint64_t number_of(std::string_view text, const char* what) {
  uint64_t out = 0;
  auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), out);
  check(wrong == std::errc() && end == text.data() + text.size(), "the {} '{}' of external data is no number", what,
        text);
  return out;
}

// Elements that a message holds as numbers, as the bytes of their type.
template <class T, class From>
std::string narrowed(const std::vector<From>& numbers) {
  std::string out(numbers.size() * sizeof(T), '\0');
  for (size_t i = 0; i < numbers.size(); ++i) {
    const T element = T(numbers[i]);
    std::memcpy(out.data() + i * sizeof(T), &element, sizeof(T));
  }
  return out;
}

}  // namespace

ElementType element_type(int64_t code) {
  static const ElementType kTypes[] = {
      {"undefined", {}},         {"float", kFloat32},       {"uint8", kUInt8},          {"int8", kInt8},
      {"uint16", {}},            {"int16", kInt16},         {"int32", kInt32},          {"int64", kInt64},
      {"string", {}},            {"bool", kBool},           {"float16", kFloat16},      {"double", kFloat64},
      {"uint32", {}},            {"uint64", {}},            {"complex64", kComplex64},  {"complex128", kComplex128},
      {"bfloat16", kBFloat16},   {"float8e4m3fn", {}},      {"float8e4m3fnuz", {}},     {"float8e5m2", {}},
      {"float8e5m2fnuz", {}},    {"uint4", {}},             {"int4", {}},               {"float4e2m1", {}},
      {"float8e8m0", {}},        {"uint2", {}},             {"int2", {}}};
  if (code > 0 && code < std::ssize(kTypes)) return kTypes[code];
  return {"of an unknown type", {}};
}

struct TensorFiles::Fields {
  IntList sizes = {};
  int64_t type = 0;
  bool is_outside = false;
  std::optional<std::string_view> raw = {};
  std::vector<float> floats = {};
  std::vector<double> doubles = {};
  std::vector<int32_t> ints = {};
  std::vector<int64_t> longs = {};
  std::string_view location = {}, offset = {}, length = {};

  explicit Fields(std::string_view bytes);
  void read_outside(pbf_reader from);
  std::string typed_bytes(DType dtype) const;
};

void TensorFiles::Fields::read_outside(pbf_reader from) {
  std::string_view key, value;
  while (from.next()) {
    if (from.tag() == 1)
      key = view_of(from);
    else if (from.tag() == 2)
      value = view_of(from);
    else
      from.skip();
  }
  if (key == "location") location = value;
  if (key == "offset") offset = value;
  if (key == "length") length = value;
}

TensorFiles::Fields::Fields(std::string_view bytes) {
  std::vector<int64_t> dims;
  for (pbf_reader from(bytes.data(), bytes.size()); from.next();) {
    switch (from.tag()) {
      case 1: append(from, [&] { return from.get_packed_int64(); }, [&] { return from.get_int64(); }, dims); break;
      case 2: type = from.get_int64(); break;
      case 4: append(from, [&] { return from.get_packed_float(); }, [&] { return from.get_float(); }, floats); break;
      case 5: append(from, [&] { return from.get_packed_int32(); }, [&] { return from.get_int32(); }, ints); break;
      case 7: append(from, [&] { return from.get_packed_int64(); }, [&] { return from.get_int64(); }, longs); break;
      case 9: raw = view_of(from); break;
      case 10: append(from, [&] { return from.get_packed_double(); }, [&] { return from.get_double(); }, doubles); break;
      case 13: read_outside(from.get_message()); break;
      case 14: is_outside = from.get_enum() == 1; break;
      default: from.skip();
    }
    check(dims.size() <= kMostRank, "a tensor has too many dimensions");
  }
  sizes = IntList(dims);
}

std::string TensorFiles::Fields::typed_bytes(DType dtype) const {
  switch (dtype) {
    case kFloat32:
    case kComplex64: return narrowed<float>(floats);
    case kFloat64:
    case kComplex128: return narrowed<double>(doubles);
    case kInt64: return narrowed<int64_t>(longs);
    case kInt32: return narrowed<int32_t>(ints);
    case kInt16: return narrowed<int16_t>(ints);
    case kFloat16:
    case kBFloat16: return narrowed<uint16_t>(ints);
    case kInt8:
    case kUInt8: return narrowed<uint8_t>(ints);
    case kBool: break;
  }
  std::string out = narrowed<uint8_t>(ints);
  for (char& each : out) each = each != 0;
  return out;
}

TensorFiles::TensorFiles(std::shared_ptr<MappedFile> file, std::string name, std::string folder)
    : file_(std::move(file)), name_(std::move(name)), folder_(std::move(folder)) {}

// The bytes of a tensor in a file of its own.
std::string_view TensorFiles::outside(const Fields& fields) const {
  const std::filesystem::path location(fields.location);
  check(!location.empty() && location.is_relative(), "the location '{}' of external data is no file beside the model",
        fields.location);
  for (auto& part : location) check(part != "..", "the location '{}' of external data leaves the folder", fields.location);
  const std::string path = (std::filesystem::path(folder_) / location).string();
  auto& mapping = others_[path];
  if (!mapping) mapping = std::make_shared<MappedFile>("load_onnx", path);
  const uint64_t offset = fields.offset.empty() ? 0 : number_of(fields.offset, "offset");
  check(offset <= mapping->size(), "external data begins behind the end of '{}'", path);
  const uint64_t rest = mapping->size() - offset;
  const uint64_t length = fields.length.empty() ? rest : number_of(fields.length, "length");
  check(length <= rest, "external data ends behind the end of '{}'", path);
  return mapping->bytes().substr(offset, length);
}

Tensor TensorFiles::from_memory(std::string_view bytes, const IntList& sizes, DType dtype,
                                const std::shared_ptr<MappedFile>& file) const {
  if (dtype == kBool)
    check(std::all_of(bytes.begin(), bytes.end(), [](char c) { return c == 0 || c == 1; }),
          "a truth value is neither true nor false");
  // The format aligns nothing; files of weights beside the model mostly are.
  const bool is_aligned = uintptr_t(bytes.data()) % uint64_t(item_size(real_dtype(dtype))) == 0;
  if (!file || !is_aligned || bytes.empty()) return from_bytes(bytes.data(), Shape(sizes), dtype);
  char* data = const_cast<char*>(bytes.data());  // the mapping is writable, and private
  return from_blob(data, Shape(sizes), TensorOptions(dtype), [kept = file] {});
}

Tensor TensorFiles::read(const TensorBytes& tensor) const {
  return guard_reading(format("the tensor '{}' of {}", tensor.name, name_), [&] {
    const Fields fields(tensor.bytes);
    const ElementType type = element_type(fields.type);
    check(type.dtype.has_value(), "it is {}, a type that Sinter has not", type.name);
    const DType dtype = *type.dtype;
    const int64_t count = checked_numel("sizes", fields.sizes);
    auto fits = [&](std::string_view bytes) {
      check(count <= int64_t(bytes.size()) / item_size(dtype) && int64_t(bytes.size()) == count * item_size(dtype),
            "its sizes {} want {} elements of {} bytes, and there are {} bytes", fields.sizes, count, item_size(dtype),
            bytes.size());
      return bytes;
    };
    if (fields.is_outside) {
      std::string_view bytes = outside(fields);
      if (fields.length.empty()) bytes = bytes.substr(0, size_t(std::min<int64_t>(count, INT64_MAX / 16) * item_size(dtype)));
      return from_memory(fits(bytes), fields.sizes, dtype, others_.at((std::filesystem::path(folder_) / fields.location).string()));
    }
    if (fields.raw) return from_memory(fits(*fields.raw), fields.sizes, dtype, file_);
    const std::string bytes = fields.typed_bytes(dtype);
    return from_memory(fits(bytes), fields.sizes, dtype, nullptr);
  });
}

}  // namespace sinter::interop::onnx
