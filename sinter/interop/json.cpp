#include <cmath>
#include <limits>

#include "sinter/base/error.h"
#include "sinter/interop/json_api.h"

namespace sinter::interop {

using nlohmann::json;

namespace {

constexpr int kMostNesting = 128;

// What tells people about a program and takes most of its text: fields of the program, of its module, and of the nodes of its
// graph, where no names of values stand.
bool is_unneeded(int depth, std::string_view key) {
  constexpr struct {
    int depth;
    std::string_view key;
  } kFields[] = {{1, "guards_code"},
                 {1, "verifiers"},
                 {2, "module_call_graph"},
                 {2, "treespec_namedtuple_fields"},
                 {5, "metadata"}};
  for (auto& field : kFields)
    if (field.depth == depth && field.key == key) return true;
  return false;
}

constexpr struct {
  int64_t code;
  FileDType type;
} kTypes[] = {{1, {"uint8", kUInt8}},        {2, {"int8", kInt8}},          {3, {"int16", kInt16}},
              {4, {"int32", kInt32}},        {5, {"int64", kInt64}},        {6, {"float16", kFloat16}},
              {7, {"float32", kFloat32}},    {8, {"float64", kFloat64}},    {9, {"complex32", {}}},
              {10, {"complex64", kComplex64}}, {11, {"complex128", kComplex128}},     {12, {"bool", kBool}},
              {13, {"bfloat16", kBFloat16}}, {28, {"uint16", {}}},          {29, {"float8_e4m3fn", {}}},
              {30, {"float8_e5m2", {}}},     {31, {"float8_e4m3fnuz", {}}}, {32, {"float8_e5m2fnuz", {}}},
              {33, {"float8_e8m0fnu", {}}},  {34, {"uint32", {}}},          {35, {"uint64", {}}}};

}  // namespace

std::optional<FileDType> file_dtype(int64_t code) {
  for (auto& entry : kTypes)
    if (entry.code == code) return entry.type;
  return std::nullopt;
}

json JsonFile::parse(std::string_view text, Content content) const {
  auto watch = [&](int depth, json::parse_event_t event, json& parsed) {
    using Event = json::parse_event_t;
    if (event == Event::object_start || event == Event::array_start)
      require(depth < kMostNesting, "it is nested too deeply");
    return !(event == Event::key && content == Content::kProgram &&
             is_unneeded(depth, parsed.get_ref<const std::string&>()));
  };
  try {
    return json::parse(text.begin(), text.end(), watch);
  } catch (const json::exception& error) {
    damaged(error.what());
  }
}

void JsonFile::damaged(const std::string& what) const {
  throw_error(format("load_exported: {} is damaged: {}", name_, what));
}

const json& JsonFile::field(const json& object, const char* key, json::value_t type) const {
  auto found = object.is_object() ? object.find(key) : object.end();
  if (!object.is_object() || found == object.end() || found->type() != type)
    damaged(format("'{}' is missing or of another kind", key));
  return *found;
}
const json& JsonFile::object(const json& from, const char* key) const {
  return field(from, key, json::value_t::object);
}
const json& JsonFile::array(const json& from, const char* key) const { return field(from, key, json::value_t::array); }
const std::string& JsonFile::text(const json& from, const char* key) const {
  return field(from, key, json::value_t::string).get_ref<const std::string&>();
}

int64_t JsonFile::integer(const json& value) const {
  require(value.is_number_integer(), "a number is no integer");
  require(!value.is_number_unsigned() || value.get<uint64_t>() <= uint64_t(INT64_MAX), "an integer is too large");
  return value.get<int64_t>();
}

bool JsonFile::truth(const json& value) const {
  require(value.is_boolean(), "a truth value is neither true nor false");
  return value.get<bool>();
}

double JsonFile::real(const json& value) const {
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    if (text == "Infinity") return std::numeric_limits<double>::infinity();
    if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
    if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  }
  require(value.is_number(), "a floating number is none");
  return value.get<double>();
}

std::pair<std::string, const json*> JsonFile::choice(const json& from) const {
  require(from.is_object() && from.size() == 1, "a choice has not one field");
  return {from.begin().key(), &from.begin().value()};
}

}  // namespace sinter::interop
