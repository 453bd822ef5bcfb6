#include "sinter/io/tokenizer/json_ref.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "sinter/base/error.h"

namespace sinter::tokenizers {

namespace {

using nlohmann::json;

constexpr int kMaxDepth = 64;
constexpr int64_t kMaxFile = int64_t(1) << 30;

const json& tree(const void* node) { return *static_cast<const json*>(node); }

// Depth is counted before parsing: the parser itself would build any depth, and its values are copied recursively.
void check_depth(std::string_view text, const std::string& name) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      check(++depth <= kMaxDepth, "{}: the JSON is nested deeper than {}", name, kMaxDepth);
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
}

std::shared_ptr<const void> parse(std::string_view text, const std::string& name) {
  check_depth(text, name);
  try {
    return std::make_shared<const json>(json::parse(text));
  } catch (const json::exception& error) {
    throw_error(format("{}: not valid JSON: {}", name, error.what()));
  }
}

}  // namespace

bool JsonRef::is_null() const { return node_ == nullptr || tree(node_).is_null(); }
bool JsonRef::is_string() const { return node_ != nullptr && tree(node_).is_string(); }
bool JsonRef::is_object() const { return node_ != nullptr && tree(node_).is_object(); }
bool JsonRef::is_array() const { return node_ != nullptr && tree(node_).is_array(); }

void JsonRef::fail(const std::string& what) const { throw_error(format("{} {}", *path_, what)); }

JsonRef JsonRef::operator[](const char* key) const {
  if (!is_object()) fail("must be an object");
  auto found = tree(node_).find(key);
  const void* node = found == tree(node_).end() ? nullptr : &*found;
  bool at_root = !path_->empty() && path_->back() == ':';
  return JsonRef(node, std::make_shared<std::string>(*path_ + (at_root ? " " : ".") + key));
}

void JsonRef::each(const std::function<void(JsonRef)>& body) const {
  if (!is_array()) fail("must be a list");
  for (auto& element : tree(node_)) body(JsonRef(&element, path_));
}

void JsonRef::each_field(const std::function<void(const std::string&, JsonRef)>& body) const {
  if (!is_object()) fail("must be an object");
  for (auto it = tree(node_).begin(); it != tree(node_).end(); ++it) body(it.key(), JsonRef(&*it, path_));
}

size_t JsonRef::size() const { return is_null() ? 0 : tree(node_).size(); }

const std::string& JsonRef::text() const {
  if (!is_string()) fail("must be a string");
  return tree(node_).get_ref<const std::string&>();
}

bool JsonRef::boolean() const {
  if (node_ == nullptr || !tree(node_).is_boolean()) fail("must be true or false");
  return tree(node_).get<bool>();
}

double JsonRef::number() const {
  if (node_ == nullptr || !tree(node_).is_number()) fail("must be a number");
  return tree(node_).get<double>();
}

uint32_t JsonRef::id() const {
  if (node_ == nullptr || !tree(node_).is_number_unsigned() || tree(node_).get<uint64_t>() > uint64_t(INT32_MAX))
    fail("must be an integer from 0 to 2147483647");
  return tree(node_).get<uint32_t>();
}

JsonDocument::JsonDocument(std::string_view text, const std::string& name)
    : tree_(parse(text, name)), root_(tree_.get(), std::make_shared<const std::string>(name + ":")) {}

std::string read_file(const std::string& path) {
  int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  check(file >= 0, "cannot open '{}': {}", path, std::strerror(errno));
  struct Closer {
    int file;
    ~Closer() { ::close(file); }
  } closer{file};
  struct stat status {};
  check(fstat(file, &status) == 0 && S_ISREG(status.st_mode), "'{}' is not a file", path);
  check(status.st_size <= kMaxFile, "'{}' has {} bytes, more than {}", path, int64_t(status.st_size), kMaxFile);
  std::string text(size_t(status.st_size), '\0');
  size_t at = 0;
  while (at < text.size()) {
    ssize_t got = ::read(file, text.data() + at, text.size() - at);
    if (got < 0 && errno == EINTR) continue;
    check(got >= 0, "cannot read '{}': {}", path, std::strerror(errno));
    if (got == 0) break;
    at += size_t(got);
  }
  text.resize(at);
  return text;
}

}  // namespace sinter::tokenizers
