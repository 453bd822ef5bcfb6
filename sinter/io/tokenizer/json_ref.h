#pragma once
// A read-only view of a parsed JSON document. What is missing or of the wrong type is an Error that names the place,
// `model.vocab`. The parser's own header is slow to compile and stays behind this one.
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace sinter::tokenizers {

class JsonRef {
 public:
  bool is_null() const;
  bool is_string() const;
  bool is_object() const;
  bool is_array() const;

  // A field of an object; a null view when it is missing.
  JsonRef operator[](const char* key) const;
  // The elements of an array; Their places in messages are the array's own.
  void each(const std::function<void(JsonRef)>& body) const;
  // The fields of an object, in the order of their names.
  void each_field(const std::function<void(const std::string& key, JsonRef)>& body) const;
  size_t size() const;

  const std::string& text() const;
  bool boolean() const;
  double number() const;
  uint32_t id() const;  // an integer from 0 to 2³¹ - 1

  bool boolean_or(bool missing) const { return is_null() ? missing : boolean(); }
  std::string text_or(std::string missing) const { return is_null() ? missing : text(); }

  [[noreturn]] void fail(const std::string& what) const;

 private:
  friend class JsonDocument;
  JsonRef(const void* node, std::shared_ptr<const std::string> path) : node_(node), path_(std::move(path)) {}

  const void* node_;
  std::shared_ptr<const std::string> path_;
};

class JsonDocument {
 public:
  // `name` opens every message. Text that is no JSON, or is nested deeper than 64, throws.
  JsonDocument(std::string_view text, const std::string& name);
  JsonRef root() const { return root_; }

 private:
  std::shared_ptr<const void> tree_;
  JsonRef root_;
};

// The whole of a file.
std::string read_file(const std::string& path);

}  // namespace sinter::tokenizers
