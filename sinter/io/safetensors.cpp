#include "sinter/io/safetensors.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>

#include "sinter/base/error.h"
#include "sinter/io/file.h"
#include "sinter/io/safetensors_codes.h"
#include "sinter/tensor/memory_format.h"

namespace sinter {

namespace {

using nlohmann::json;

constexpr uint64_t kMaxHeader = 100'000'000;
constexpr size_t kMaxRank = 64;
constexpr const char* kMetadata = "__metadata__";

struct FileType {
  const char* name;
  uint64_t bits;
  std::optional<DType> dtype;
};

constexpr FileType kTypes[] = {
    {"BOOL", 8, kBool},  {"U8", 8, kUInt8},     {"I8", 8, kInt8},        {"I16", 16, kInt16},    {"I32", 32, kInt32},
    {"I64", 64, kInt64}, {"F16", 16, kFloat16}, {"BF16", 16, kBFloat16}, {"F32", 32, kFloat32},  {"F64", 64, kFloat64},
    {"U16", 16, {}},     {"U32", 32, {}},       {"U64", 64, {}},         {"C64", 64, kComplex64},        {"F8_E4M3", 8, {}},
    {"F8_E5M2", 8, {}},  {"F8_E8M0", 8, {}},    {"F8_E4M3FNUZ", 8, {}},  {"F8_E5M2FNUZ", 8, {}}, {"F6_E2M3", 6, {}},
    {"F6_E3M2", 6, {}},  {"F4", 4, {}},
};

const char* file_type_name(DType d) {
  for (auto& type : kTypes)
    if (type.dtype == d) return type.name;
  throw_error(format("save_safetensors: the format has no {}; save view_as_real(x), or a tensor of another dtype", d));
}

// The header as JSON, its keys in order. Nesting and repeated keys are refused while parsing.
json parse_header(const std::string& path, const char* begin, const char* end, std::vector<std::string>& names) {
  std::set<std::string> seen, seen_inside;
  auto watch = [&](int depth, json::parse_event_t event, json& parsed) {
    if (event == json::parse_event_t::object_start || event == json::parse_event_t::array_start) {
      check(depth <= 2, "safetensors: the header of '{}' is nested too deeply", path);
      if (depth == 1) seen_inside.clear();
    } else if (event == json::parse_event_t::key) {
      const auto& key = parsed.get_ref<const std::string&>();
      check((depth == 1 ? seen : seen_inside).insert(key).second, "safetensors: '{}' names '{}' twice", path, key);
      if (depth == 1 && key != kMetadata) names.push_back(key);
    }
    return true;
  };
  try {
    return json::parse(begin, end, watch);
  } catch (const json::exception& error) {
    throw_error(format("safetensors: the header of '{}' is not valid JSON: {}", path, error.what()));
  }
}

uint64_t unsigned_number(const std::string& path, const std::string& name, const json& value) {
  check(value.is_number_unsigned() && value.get<uint64_t>() <= uint64_t(INT64_MAX),
        "safetensors: '{}' in '{}' has a size or offset that is not a non-negative integer: {}", name, path,
        value.dump(-1, ' ', true, json::error_handler_t::replace));
  return value.get<uint64_t>();
}

const json& field(const std::string& path, const std::string& name, const json& entry, const char* key,
                  json::value_t type) {
  auto found = entry.is_object() ? entry.find(key) : entry.end();
  check(entry.is_object() && found != entry.end() && found->type() == type,
        "safetensors: '{}' in '{}' lacks a proper '{}'", name, path, key);
  return *found;
}

SafeTensorInfo parse_entry(const std::string& path, const std::string& name, const json& entry) {
  SafeTensorInfo info;
  info.dtype_text = field(path, name, entry, "dtype", json::value_t::string).get<std::string>();
  auto* type = std::find_if(std::begin(kTypes), std::end(kTypes), [&](auto& t) { return t.name == info.dtype_text; });
  check(type != std::end(kTypes), "safetensors: '{}' in '{}' has the unknown dtype '{}'", name, path, info.dtype_text);
  info.dtype = type->dtype;

  const json& shape = field(path, name, entry, "shape", json::value_t::array);
  check(shape.size() <= kMaxRank, "safetensors: '{}' in '{}' has {} dimensions", name, path, shape.size());
  uint64_t bits = type->bits;
  bool overflow = false, zero = false;
  for (auto& size : shape) {
    uint64_t n = unsigned_number(path, name, size);
    info.shape.push_back(Dim(int64_t(n)));
    zero |= n == 0;
    overflow |= __builtin_mul_overflow(bits, n, &bits);
  }
  if (zero) bits = 0;
  check(zero || !overflow, "safetensors: '{}' in '{}' has sizes that overflow: {}", name, path, info.shape);
  check(bits % 8 == 0, "safetensors: '{}' in '{}' does not fill whole bytes", name, path);

  const json& offsets = field(path, name, entry, "data_offsets", json::value_t::array);
  check(offsets.size() == 2, "safetensors: '{}' in '{}' needs two data_offsets", name, path);
  info.begin = unsigned_number(path, name, offsets[0]);
  info.end = unsigned_number(path, name, offsets[1]);
  check(info.begin <= info.end && info.end - info.begin == bits / 8,
        "safetensors: '{}' in '{}': {}{} takes {} bytes, its offsets are {} to {}", name, path, info.dtype_text,
        info.shape, bits / 8, info.begin, info.end);
  return info;
}

// The bytes of all tensors must cover the data exactly: no overlap, no gap, no rest.
void check_cover(const std::string& path, const std::vector<SafeTensorInfo>& infos, uint64_t data_size) {
  std::vector<const SafeTensorInfo*> order;
  for (auto& info : infos) order.push_back(&info);
  std::sort(order.begin(), order.end(),
            [](auto* a, auto* b) { return std::pair(a->begin, a->end) < std::pair(b->begin, b->end); });
  uint64_t position = 0;
  for (auto* info : order) {
    check(info->begin >= position, "safetensors: tensors of '{}' overlap at byte {}", path, info->begin);
    check(info->begin == position, "safetensors: bytes {} to {} of '{}' belong to no tensor", position, info->begin,
          path);
    check(info->end <= data_size, "safetensors: '{}' is cut short: {} bytes of data, a tensor ends at {}", path,
          data_size, info->end);
    position = info->end;
  }
  check(position == data_size, "safetensors: bytes {} to {} of '{}' belong to no tensor", position, data_size, path);
}

}  // namespace

// --- reading ---------------------------------------------------------------------------------------------------------

struct SafeTensorsFile::Contents {
  explicit Contents(const std::string& path, uint64_t offset = 0, std::optional<uint64_t> size = {})
      : path(path), mapping(std::make_shared<MappedFile>("safetensors", path, offset, size)) {
    check(mapping->size() >= 8, "safetensors: '{}' has {} bytes, too few for a header", path, mapping->size());
    uint64_t header = 0;
    std::memcpy(&header, mapping->data(), 8);
    check(header <= kMaxHeader, "safetensors: '{}' claims a header of {} bytes; at most {} are accepted", path, header,
          kMaxHeader);
    check(header <= mapping->size() - 8, "safetensors: '{}' claims a header of {} bytes but has {} in all", path,
          header, mapping->size());
    const char* text = mapping->data() + 8;
    check(header > 0 && text[0] == '{', "safetensors: the header of '{}' does not begin with '{'", path);
    json root = parse_header(path, text, text + header, names);
    if (auto found = root.find(kMetadata); found != root.end()) {
      check(found->is_object(), "safetensors: the metadata of '{}' is not an object", path);
      for (auto& [key, value] : found->items()) {
        check(value.is_string(), "safetensors: the metadata '{}' of '{}' is not a text", key, path);
        metadata[key] = value.get<std::string>();
      }
    }
    for (size_t i = 0; i < names.size(); ++i) {
      infos.push_back(parse_entry(path, names[i], root[names[i]]));
      index[names[i]] = i;
    }
    check_cover(path, infos, mapping->size() - 8 - header);
    data = mapping->data() + 8 + header;
  }

  const SafeTensorInfo& info(std::string_view name) const {
    auto found = index.find(std::string(name));
    check(found != index.end(), "safetensors: '{}' holds no tensor named '{}'", path, name);
    return infos[found->second];
  }

  std::string path;
  std::shared_ptr<MappedFile> mapping;
  char* data = nullptr;
  std::vector<std::string> names;
  std::vector<SafeTensorInfo> infos;
  std::unordered_map<std::string, size_t> index;
  std::map<std::string, std::string> metadata;
};

SafeTensorsFile::SafeTensorsFile(const std::string& path) : contents_(std::make_shared<const Contents>(path)) {}

SafeTensorsFile::SafeTensorsFile(const std::string& path, uint64_t offset, uint64_t size)
    : contents_(std::make_shared<const Contents>(path, offset, size)) {}

const std::vector<std::string>& SafeTensorsFile::names() const { return contents_->names; }
const std::map<std::string, std::string>& SafeTensorsFile::metadata() const { return contents_->metadata; }
bool SafeTensorsFile::contains(std::string_view name) const { return contents_->index.contains(std::string(name)); }
const SafeTensorInfo& SafeTensorsFile::info(std::string_view name) const { return contents_->info(name); }

Tensor SafeTensorsFile::tensor(std::string_view name) const {
  const SafeTensorInfo& info = contents_->info(name);
  check(info.dtype.has_value(), "safetensors: '{}' in '{}' has the dtype {}, which is not supported", name,
        contents_->path, info.dtype_text);
  char* data = contents_->data + info.begin;
  uint64_t bytes = info.end - info.begin;
  if (*info.dtype == kBool)
    check(std::all_of(data, data + bytes, [](char c) { return c == 0 || c == 1; }),
          "safetensors: '{}' in '{}' has values that are neither true nor false", name, contents_->path);
  if (uintptr_t(data) % uint64_t(item_size(real_dtype(*info.dtype))) != 0) return from_bytes(data, info.shape, *info.dtype);
  return from_blob(data, info.shape, *info.dtype, [mapping = contents_->mapping] {});
}

Tensor SafeTensorsFile::codes(std::string_view name) const {
  const SafeTensorInfo& info = contents_->info(name);
  check(info.dtype_text.starts_with("F8_"), "safetensors: '{}' in '{}' is {}, whose elements are no codes of eight bits", name,
        contents_->path, info.dtype_text);
  return from_blob(contents_->data + info.begin, info.shape, kUInt8, [mapping = contents_->mapping] {});
}

NamedTensors load_safetensors(const std::string& path) {
  SafeTensorsFile file(path);
  NamedTensors out;
  for (auto& name : file.names()) out.emplace_back(name, file.tensor(name));
  return out;
}

// --- writing ---------------------------------------------------------------------------------------------------------

namespace {

uint64_t byte_size(const Tensor& t) { return uint64_t(t.impl().numel) * uint64_t(item_size(t.dtype())); }

}  // namespace

void save_safetensors(const std::string& path, const NamedTensors& tensors,
                      const std::map<std::string, std::string>& metadata) {
  save_safetensors(path, tensors, metadata, {});
}

void save_safetensors(const std::string& path, const NamedTensors& tensors, const std::map<std::string, std::string>& metadata,
                      const std::map<std::string, std::string>& types) {
  std::set<std::string_view> names;
  std::vector<size_t> order;
  for (auto& [name, tensor] : tensors) {
    check(name != kMetadata, "save_safetensors: '{}' cannot be the name of a tensor", name);
    check(names.insert(name).second, "save_safetensors: two tensors are named '{}'", name);
    check(tensor.defined(), "save_safetensors: '{}' is undefined", name);
    check(!tensor.is_traced(), "save_safetensors: '{}' is a value of a graph being captured", name);
    order.push_back(order.size());
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return item_size(tensors[a].second.dtype()) > item_size(tensors[b].second.dtype());
  });
  std::vector<uint64_t> begin(tensors.size());
  uint64_t position = 0;
  for (size_t i : order) {
    begin[i] = position;
    position += byte_size(tensors[i].second);
  }

  std::string header = "{";
  try {
    if (!metadata.empty()) header += json(kMetadata).dump() + ":" + json(metadata).dump();
    for (size_t i = 0; i < tensors.size(); ++i) {
      auto& [name, tensor] = tensors[i];
      auto& sizes = tensor.impl().sizes;
      auto type = types.find(name);
      check(type == types.end() || tensor.dtype() == kUInt8, "save_safetensors: '{}' is {}, and bytes of {} are u8", name,
            tensor.dtype(), type == types.end() ? "" : type->second);
      json entry = {{"dtype", type == types.end() ? file_type_name(tensor.dtype()) : type->second},
                    {"shape", std::vector<int64_t>(sizes.begin(), sizes.end())},
                    {"data_offsets", {begin[i], begin[i] + byte_size(tensor)}}};
      header += (header.size() > 1 ? "," : "") + json(name).dump() + ":" + entry.dump();
    }
  } catch (const json::exception& error) {
    throw_error(format("save_safetensors: a name or the metadata is not valid UTF-8: {}", error.what()));
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  check(header.size() <= kMaxHeader, "save_safetensors: the header of {} bytes is too long", header.size());

  PendingFile file("safetensors", path);
  uint64_t length = header.size();
  file.write(&length, 8);
  file.write(header.data(), header.size());
  std::vector<char> packed;
  for (size_t i : order) {
    const Tensor& tensor = tensors[i].second;
    check(tensor.device().is_cpu(), "save_safetensors: '{}' is on {}; copy it with .cpu() first", tensors[i].first,
          tensor.device());
    if (tensor.is_contiguous()) {
      file.write(tensor.data_ptr(), byte_size(tensor));
    } else {
      packed.resize(byte_size(tensor));
      copy_packed(tensor, packed.data());
      file.write(packed.data(), packed.size());
    }
  }
  file.commit();
}

}  // namespace sinter
