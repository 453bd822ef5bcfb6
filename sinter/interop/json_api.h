#pragma once
// JSON of exported programs: fields by name and kind, and an Error that names the file where one is missing or another. For .cpp
// files only.
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "sinter/tensor/dtype.h"

namespace sinter::interop {

class JsonFile {
 public:
  explicit JsonFile(std::string name) : name_(std::move(name)) {}

  // The text as JSON. What is nested too deeply is refused while reading; of a program, what only tells people about it is
  // left out.
  enum class Content : uint8_t { kProgram, kIndex };
  nlohmann::json parse(std::string_view text, Content content) const;

  [[noreturn]] void damaged(const std::string& what) const;
  void require(bool holds, const char* what) const {
    if (!holds) damaged(what);
  }
  const nlohmann::json& field(const nlohmann::json& object, const char* key, nlohmann::json::value_t type) const;
  const nlohmann::json& object(const nlohmann::json& from, const char* key) const;
  const nlohmann::json& array(const nlohmann::json& from, const char* key) const;
  const std::string& text(const nlohmann::json& from, const char* key) const;
  int64_t integer(const nlohmann::json& value) const;
  bool truth(const nlohmann::json& value) const;
  // Numbers, and "Infinity", "-Infinity" and "NaN".
  double real(const nlohmann::json& value) const;
  // {"as_int": 3}: the one field of a union.
  std::pair<std::string, const nlohmann::json*> choice(const nlohmann::json& from) const;

  const std::string& name() const { return name_; }

 private:
  std::string name_;
};

// The dtype of this number in a file, and its name there; no dtype where Sinter has no such type.
struct FileDType {
  std::string_view name;
  std::optional<DType> dtype;
};
std::optional<FileDType> file_dtype(int64_t code);

}  // namespace sinter::interop
