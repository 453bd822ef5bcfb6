#include "sinter/io/config.h"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "sinter/base/error.h"

namespace sinter {

using nlohmann::json;

namespace {

constexpr uintmax_t kMaxBytes = uintmax_t(64) << 20;
constexpr int kMaxDepth = 64;

bool is_integer(const json& v) {
  return v.is_number_integer() && (!v.is_number_unsigned() || v.get<uint64_t>() <= uint64_t(INT64_MAX));
}

}  // namespace

struct ConfigFile::Value {
  json value;
};

ConfigFile ConfigFile::read(const std::string& path) {
  std::error_code error;
  auto bytes = std::filesystem::file_size(path, error);
  check(!error, "config: cannot read '{}': {}", path, error.message());
  check(bytes <= kMaxBytes, "config: '{}' has {} bytes; at most {} are accepted", path, bytes, kMaxBytes);
  std::ifstream in(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(in)), {});
  check(bool(in) || in.eof(), "config: cannot read '{}'", path);
  return parse(text, path);
}

ConfigFile ConfigFile::parse(std::string_view text, const std::string& name) {
  auto watch = [&](int depth, json::parse_event_t, json&) {
    check(depth <= kMaxDepth, "config: '{}' is nested too deeply", name);
    return true;
  };
  ConfigFile file;
  file.name_ = name;
  try {
    file.root_ = std::make_shared<const Value>(Value{json::parse(text.begin(), text.end(), watch)});
  } catch (const json::exception& error) {
    throw_error(format("config: '{}' is not valid JSON: {}", name, error.what()));
  }
  check(file.root_->value.is_object(), "config: '{}' does not hold an object", name);
  return file;
}

std::string ConfigFile::dump() const { return root_->value.dump(); }

bool ConfigFile::contains(std::string_view key) const {
  auto found = root_->value.find(std::string(key));
  return found != root_->value.end() && !found->is_null();
}

std::vector<std::string> ConfigFile::keys() const {
  std::vector<std::string> keys;
  for (auto& [key, value] : root_->value.items()) keys.push_back(key);
  return keys;
}

namespace {

const json& find(const json& root, const std::string& name, std::string_view key, bool (*fits)(const json&),
                 const char* expected) {
  auto found = root.find(std::string(key));
  check(found != root.end() && !found->is_null(), "config: '{}' lacks '{}'", name, key);
  check(fits(*found), "config: '{}' in '{}' should be {}, not {}", key, name, expected,
        found->dump(-1, ' ', true, json::error_handler_t::replace).substr(0, 80));
  return *found;
}

template <class T>
std::vector<T> list(const json& root, const std::string& name, std::string_view key, bool (*fits)(const json&),
                    const char* expected) {
  auto found = root.find(std::string(key));
  if (found == root.end() || found->is_null()) return {};
  if (!found->is_array()) return {find(root, name, key, fits, expected).template get<T>()};
  std::vector<T> values;
  for (auto& value : *found) {
    check(fits(value), "config: an entry of '{}' in '{}' should be {}, not {}", key, name, expected,
          value.dump(-1, ' ', true, json::error_handler_t::replace).substr(0, 80));
    values.push_back(value.template get<T>());
  }
  return values;
}

bool is_number(const json& v) { return v.is_number(); }
bool is_boolean(const json& v) { return v.is_boolean(); }
bool is_string(const json& v) { return v.is_string(); }
bool is_object(const json& v) { return v.is_object(); }

}  // namespace

int64_t ConfigFile::integer(std::string_view key) const {
  return find(root_->value, name_, key, is_integer, "an integer").get<int64_t>();
}
double ConfigFile::number(std::string_view key) const {
  return find(root_->value, name_, key, is_number, "a number").get<double>();
}
bool ConfigFile::boolean(std::string_view key) const {
  return find(root_->value, name_, key, is_boolean, "true or false").get<bool>();
}
std::string ConfigFile::text(std::string_view key) const {
  return find(root_->value, name_, key, is_string, "a text").get<std::string>();
}
std::vector<int64_t> ConfigFile::integers(std::string_view key) const {
  return list<int64_t>(root_->value, name_, key, is_integer, "an integer");
}
std::vector<double> ConfigFile::numbers(std::string_view key) const {
  return list<double>(root_->value, name_, key, is_number, "a number");
}
std::vector<std::string> ConfigFile::texts(std::string_view key) const {
  return list<std::string>(root_->value, name_, key, is_string, "a text");
}

std::optional<ConfigFile> ConfigFile::object(std::string_view key) const {
  if (!contains(key)) return {};
  ConfigFile inner;
  inner.name_ = name_ + ": " + std::string(key);
  inner.root_ = std::make_shared<const Value>(Value{find(root_->value, name_, key, is_object, "an object")});
  return inner;
}

int64_t ConfigFile::size(std::string_view key) const {
  int64_t value = integer(key);
  check(value > 0 && value <= (int64_t(1) << 40), "config: '{}' in '{}' is {}, which is no size", key, name_, value);
  return value;
}

GenerationConfig GenerationConfig::read(const CheckpointFiles& files) {
  GenerationConfig out;
  // The first file wins where both have a key.
  for (const char* name : {"generation_config.json", "config.json"}) {
    auto text = files.read(name);
    if (!text) continue;
    ConfigFile file = ConfigFile::parse(*text, files.path(name));
    auto integer = [&](std::optional<int64_t>& to, const char* key) {
      if (!to && file.contains(key)) to = file.integer(key);
    };
    auto number = [&](std::optional<double>& to, const char* key) {
      if (!to && file.contains(key)) to = file.number(key);
    };
    if (out.eos_token_ids.empty()) out.eos_token_ids = file.integers("eos_token_id");
    if (out.suppress_tokens.empty()) out.suppress_tokens = file.integers("suppress_tokens");
    if (out.begin_suppress_tokens.empty()) out.begin_suppress_tokens = file.integers("begin_suppress_tokens");
    integer(out.decoder_start_token_id, "decoder_start_token_id");
    integer(out.forced_bos_token_id, "forced_bos_token_id");
    integer(out.bos_token_id, "bos_token_id");
    integer(out.pad_token_id, "pad_token_id");
    integer(out.max_length, "max_length");
    integer(out.max_new_tokens, "max_new_tokens");
    integer(out.top_k, "top_k");
    number(out.temperature, "temperature");
    number(out.top_p, "top_p");
    number(out.min_p, "min_p");
    number(out.repetition_penalty, "repetition_penalty");
    if (file.contains("do_sample")) out.do_sample = out.do_sample || file.boolean("do_sample");
  }
  return out;
}

}  // namespace sinter
