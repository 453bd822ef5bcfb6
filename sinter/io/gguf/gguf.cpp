#include "sinter/io/gguf/gguf.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <set>
#include <unordered_map>
#include <variant>

#include "sinter/base/error.h"
#include "sinter/io/file.h"
#include "sinter/tensor/dim.h"

namespace sinter {

namespace {

static_assert(std::endian::native == std::endian::little, "numbers are read as they lie");

constexpr char kMagic[] = {'G', 'G', 'U', 'F'};
constexpr uint32_t kOldest = 2, kNewest = 3;
constexpr uint64_t kMaxDimensions = 4, kMaxName = 1 << 16;
constexpr uint64_t kMaxAlignment = 1 << 20;

// All that llama.cpp has given an id, so that a file with a type that is not read tells which.
constexpr GgufType kTypes[] = {
    {0, "F32", 1, 4},         {1, "F16", 1, 2},         {2, "Q4_0", 32, 18},      {3, "Q4_1", 32, 20},
    {6, "Q5_0", 32, 22},      {7, "Q5_1", 32, 24},      {8, "Q8_0", 32, 34},      {9, "Q8_1", 32, 36},
    {10, "Q2_K", 256, 84},    {11, "Q3_K", 256, 110},   {12, "Q4_K", 256, 144},   {13, "Q5_K", 256, 176},
    {14, "Q6_K", 256, 210},   {15, "Q8_K", 256, 292},   {16, "IQ2_XXS", 256, 66}, {17, "IQ2_XS", 256, 74},
    {18, "IQ3_XXS", 256, 98}, {19, "IQ1_S", 256, 50},   {20, "IQ4_NL", 32, 18},   {21, "IQ3_S", 256, 110},
    {22, "IQ2_S", 256, 82},   {23, "IQ4_XS", 256, 136}, {24, "I8", 1, 1},         {25, "I16", 1, 2},
    {26, "I32", 1, 4},        {27, "I64", 1, 8},        {28, "F64", 1, 8},        {29, "IQ1_M", 256, 56},
    {30, "BF16", 1, 2},       {34, "TQ1_0", 256, 54},   {35, "TQ2_0", 256, 66},   {39, "MXFP4", 32, 17},
};

// Kinds of values, as numbered in files.
enum Kind : uint32_t { kU8, kI8, kU16, kI16, kU32, kI32, kF32, kBool, kText, kList, kU64, kI64, kF64 };

using Entry = std::variant<int64_t, double, bool, std::string, std::vector<int64_t>, std::vector<double>,
                           std::vector<std::string>>;

const char* kind_of(const Entry& value) {
  constexpr const char* kNames[] = {"an integer",         "a number",          "true or false",  "a text",
                                    "a list of integers", "a list of numbers", "a list of texts"};
  return kNames[value.index()];
}

// Reads a file from its beginning; never beyond its end.
class Cursor {
 public:
  Cursor(std::string_view bytes, const std::string& path) : bytes_(bytes), path_(path) {}

  uint64_t at() const { return at_; }
  uint64_t left() const { return bytes_.size() - at_; }

  std::string_view take(uint64_t size) {
    check(size <= left(), "gguf: '{}' is cut short, or a length at byte {} is wrong: {} bytes are left, {} are wanted",
          path_, at_, left(), size);
    at_ += size;
    return bytes_.substr(at_ - size, size);
  }
  template <class T>
  T number() {
    T out;
    std::memcpy(&out, take(sizeof out).data(), sizeof out);
    return out;
  }
  std::string text() { return std::string(take(number<uint64_t>())); }

  Entry value(uint32_t kind, const std::string& key) {
    switch (kind) {
      case kText:
        return text();
      case kBool:
        return boolean(key);
      case kF32:
      case kF64:
        return floating(kind);
      case kList:
        return list(key);
      default:
        return integer(kind, key);
    }
  }

 private:
  bool boolean(const std::string& key) {
    const auto byte = number<uint8_t>();
    check(byte <= 1, "gguf: '{}' in '{}' is neither true nor false", key, path_);
    return byte == 1;
  }
  double floating(uint32_t kind) { return kind == kF32 ? double(number<float>()) : number<double>(); }
  int64_t integer(uint32_t kind, const std::string& key) {
    switch (kind) {
      case kU8:
        return number<uint8_t>();
      case kI8:
        return number<int8_t>();
      case kU16:
        return number<uint16_t>();
      case kI16:
        return number<int16_t>();
      case kU32:
        return number<uint32_t>();
      case kI32:
        return number<int32_t>();
      case kBool:
        return boolean(key);
      case kI64:
        return number<int64_t>();
      case kU64: {
        const auto whole = number<uint64_t>();
        check(whole <= uint64_t(INT64_MAX), "gguf: '{}' in '{}' is too large: {}", key, path_, whole);
        return int64_t(whole);
      }
      default:
        throw_error(format("gguf: '{}' in '{}' is of the unknown kind {}", key, path_, kind));
    }
  }

  static uint64_t least_size(uint32_t kind) {
    constexpr uint64_t kSizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 8, 0, 8, 8, 8};
    return kind <= kF64 ? kSizes[kind] : 0;
  }
  template <class T, class F>
  static std::vector<T> many(uint64_t count, F&& one) {
    std::vector<T> out;
    out.reserve(count);
    for (uint64_t i = 0; i < count; ++i) out.push_back(one());
    return out;
  }
  Entry list(const std::string& key) {
    const auto kind = number<uint32_t>();
    const auto count = number<uint64_t>();
    const uint64_t least = least_size(kind);
    check(least > 0, "gguf: '{}' in '{}' is a list of the unknown kind {}", key, path_, kind);
    check(count <= left() / least, "gguf: '{}' in '{}' claims {} entries; {} bytes are left", key, path_, count,
          left());
    if (kind == kText) return many<std::string>(count, [&] { return text(); });
    if (kind == kF32 || kind == kF64) return many<double>(count, [&] { return floating(kind); });
    return many<int64_t>(count, [&] { return integer(kind, key); });
  }

  std::string_view bytes_;
  const std::string& path_;
  uint64_t at_ = 0;
};

}  // namespace

struct GgufFile::Contents {
  explicit Contents(const std::string& path) : path(path), mapping("gguf", path) {
    Cursor cursor(mapping.bytes(), this->path);
    const bool is_one =
        mapping.size() >= sizeof kMagic && std::equal(std::begin(kMagic), std::end(kMagic), mapping.data());
    check(is_one, "gguf: '{}' does not begin like a GGUF file", path);
    cursor.take(sizeof kMagic);
    const auto version = cursor.number<uint32_t>();
    check((version & 0xffff) != 0, "gguf: '{}' is of a machine with the other byte order", path);
    check(version >= kOldest && version <= kNewest, "gguf: '{}' is of version {}; {} and {} are read", path, version,
          kOldest, kNewest);
    const auto tensor_count = cursor.number<uint64_t>(), pairs = cursor.number<uint64_t>();
    for (uint64_t i = 0; i < pairs; ++i) {
      std::string key = cursor.text();
      const auto kind = cursor.number<uint32_t>();
      Entry value = cursor.value(kind, key);
      check(values.emplace(key, std::move(value)).second, "gguf: '{}' has two values for '{}'", path, key);
    }
    for (uint64_t i = 0; i < tensor_count; ++i) read_tensor(cursor);
    place_tensors(cursor.at());
  }

  void read_tensor(Cursor& cursor) {
    GgufTensor tensor;
    tensor.name = cursor.text();
    check(!tensor.name.empty() && tensor.name.size() <= kMaxName, "gguf: a tensor of '{}' has a name of {} bytes", path,
          tensor.name.size());
    const auto rank = cursor.number<uint32_t>();
    check(rank >= 1 && rank <= kMaxDimensions, "gguf: '{}' in '{}' has {} dimensions", tensor.name, path, rank);
    uint64_t count = 1;
    std::vector<int64_t> sizes;
    for (uint32_t d = 0; d < rank; ++d) {
      const auto size = cursor.number<uint64_t>();
      check(size > 0 && size <= uint64_t(INT64_MAX) && !__builtin_mul_overflow(count, size, &count) &&
                count <= uint64_t(INT64_MAX) / 8,
            "gguf: '{}' in '{}' has sizes beyond reason", tensor.name, path);
      sizes.push_back(int64_t(size));
    }
    for (auto size = sizes.rbegin(); size != sizes.rend(); ++size) tensor.shape.push_back(Dim(*size));
    const auto id = cursor.number<uint32_t>();
    auto* type = std::find_if(std::begin(kTypes), std::end(kTypes), [&](auto& t) { return t.id == id; });
    check(type != std::end(kTypes), "gguf: '{}' in '{}' is of the unknown type {}", tensor.name, path, id);
    tensor.type = *type;
    check(sizes[0] % type->items == 0, "gguf: rows of '{}' in '{}' have {} numbers, no whole blocks of {} of {}",
          tensor.name, path, sizes[0], type->items, type->name);
    tensor.size = count / uint64_t(type->items) * uint64_t(type->bytes);
    tensor.begin = cursor.number<uint64_t>();
    check(index.emplace(tensor.name, tensors.size()).second, "gguf: two tensors of '{}' are named '{}'", path,
          tensor.name);
    tensors.push_back(std::move(tensor));
  }

  void place_tensors(uint64_t end_of_header) {
    uint64_t alignment = 32;
    if (auto found = values.find("general.alignment"); found != values.end()) {
      auto* given = std::get_if<int64_t>(&found->second);
      check(given && *given > 0 && uint64_t(*given) <= kMaxAlignment && std::has_single_bit(uint64_t(*given)),
            "gguf: general.alignment of '{}' is no power of two", path);
      alignment = uint64_t(*given);
    }
    const uint64_t start = (end_of_header + alignment - 1) / alignment * alignment;
    check(tensors.empty() || start <= mapping.size(), "gguf: '{}' is cut short: it has no tensors", path);
    data = mapping.data() + std::min<uint64_t>(start, mapping.size());
    const uint64_t size = mapping.size() - std::min<uint64_t>(start, mapping.size());
    std::vector<const GgufTensor*> order;
    for (auto& tensor : tensors) {
      check(tensor.begin % alignment == 0, "gguf: '{}' in '{}' begins at byte {}, no multiple of {}", tensor.name, path,
            tensor.begin, alignment);
      check(tensor.begin <= size && tensor.size <= size - tensor.begin,
            "gguf: '{}' is cut short: {} bytes of tensors, '{}' takes {} from {} on", path, size, tensor.name,
            tensor.size, tensor.begin);
      order.push_back(&tensor);
    }
    std::sort(order.begin(), order.end(), [](auto* a, auto* b) { return a->begin < b->begin; });
    for (size_t i = 1; i < order.size(); ++i)
      check(order[i - 1]->begin + order[i - 1]->size <= order[i]->begin, "gguf: '{}' and '{}' in '{}' overlap",
            order[i - 1]->name, order[i]->name, path);
  }

  const Entry& value(std::string_view key) const {
    auto found = values.find(key);
    check(found != values.end(), "gguf: '{}' lacks '{}'", path, key);
    return found->second;
  }
  [[noreturn]] void wrong(std::string_view key, const char* expected) const {
    throw_error(format("gguf: '{}' in '{}' is {}, not {}", key, path, kind_of(value(key)), expected));
  }
  template <class T>
  const T& as(std::string_view key, const char* expected) const {
    if (auto* out = std::get_if<T>(&value(key))) return *out;
    wrong(key, expected);
  }

  std::string path;
  MappedFile mapping;
  char* data = nullptr;
  std::map<std::string, Entry, std::less<>> values;
  std::vector<GgufTensor> tensors;
  std::unordered_map<std::string, size_t> index;
};

bool GgufFile::is_gguf(const std::string& path) {
  try {
    const MappedFile file("gguf", path);
    return file.size() >= sizeof kMagic && std::equal(std::begin(kMagic), std::end(kMagic), file.data());
  } catch (const Error&) {
    return false;
  }
}

GgufFile::GgufFile(const std::string& path) : contents_(std::make_shared<const Contents>(path)) {}

const std::string& GgufFile::path() const { return contents_->path; }
const std::vector<GgufTensor>& GgufFile::tensors() const { return contents_->tensors; }

const GgufTensor* GgufFile::find(std::string_view name) const {
  auto found = contents_->index.find(std::string(name));
  return found == contents_->index.end() ? nullptr : &contents_->tensors[found->second];
}

const uint8_t* GgufFile::data(const GgufTensor& tensor) const {
  return reinterpret_cast<const uint8_t*>(contents_->data) + tensor.begin;
}

bool GgufFile::contains(std::string_view key) const { return contents_->values.find(key) != contents_->values.end(); }

std::vector<std::string> GgufFile::keys() const {
  std::vector<std::string> out;
  for (auto& [key, value] : contents_->values) out.push_back(key);
  return out;
}

int64_t GgufFile::integer(std::string_view key) const { return contents_->as<int64_t>(key, "an integer"); }
double GgufFile::number(std::string_view key) const {
  if (auto* whole = std::get_if<int64_t>(&contents_->value(key))) return double(*whole);
  return contents_->as<double>(key, "a number");
}
bool GgufFile::boolean(std::string_view key) const { return contents_->as<bool>(key, "true or false"); }
std::string GgufFile::text(std::string_view key) const { return contents_->as<std::string>(key, "a text"); }

const std::vector<int64_t>& GgufFile::integers(std::string_view key) const {
  static const std::vector<int64_t> none;
  return contains(key) ? contents_->as<std::vector<int64_t>>(key, "a list of integers") : none;
}
const std::vector<double>& GgufFile::numbers(std::string_view key) const {
  static const std::vector<double> none;
  return contains(key) ? contents_->as<std::vector<double>>(key, "a list of numbers") : none;
}
const std::vector<std::string>& GgufFile::texts(std::string_view key) const {
  static const std::vector<std::string> none;
  return contains(key) ? contents_->as<std::vector<std::string>>(key, "a list of texts") : none;
}

std::optional<std::string> gguf_text(const GgufFile& file, std::string_view name) {
  if (name == "config.json") return gguf::config(file);
  if (name == "generation_config.json") return gguf::generation_config(file);
  const std::string tokenizer = file.text("tokenizer.ggml.model", "none");
  if (tokenizer == "none" || tokenizer == "no_vocab") return {};
  if (name == "tokenizer.json") return gguf::tokenizer(file);
  if (name == "tokenizer_config.json") return gguf::tokenizer_config(file);
  return {};
}

}  // namespace sinter
