#pragma once
// Values of the template language: Python's, as far as templates see them.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace sinter::jinja {

class Value;
struct Undefined {
  Undefined() = default;
  explicit Undefined(std::string called) : name(std::make_shared<const std::string>(std::move(called))) {}
  std::shared_ptr<const std::string> name;  // null when it has none
};
struct None {};
using List = std::vector<Value>;

// In the order of insertion.
struct Dict {
  std::vector<std::pair<std::string, Value>> fields;
  bool is_namespace = false;

  const Value* find(std::string_view key) const;
  void set(const std::string& key, Value value);
};

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;

  // The argument at `index` or called `name`; null when it was not given.
  const Value* find(size_t index, std::string_view name) const;
};
using Function = std::function<Value(const Arguments&)>;

class Value {
 public:
  Value() : data_(Undefined{}) {}
  Value(Undefined undefined) : data_(std::move(undefined)) {}
  Value(None) : data_(None{}) {}
  Value(bool value) : data_(value) {}
  Value(int64_t value) : data_(value) {}
  Value(double value) : data_(value) {}
  Value(std::string value) : data_(std::make_shared<const std::string>(std::move(value))) {}
  Value(std::string_view value) : Value(std::string(value)) {}
  Value(const char* value) : Value(std::string(value)) {}
  Value(std::shared_ptr<List> list) : data_(std::move(list)) {}
  Value(std::shared_ptr<Dict> dict) : data_(std::move(dict)) {}
  Value(Function function) : data_(std::make_shared<const Function>(std::move(function))) {}

  bool is_undefined() const { return holds<Undefined>(); }
  bool is_none() const { return holds<None>(); }
  bool is_boolean() const { return holds<bool>(); }
  bool is_integer() const { return holds<int64_t>(); }
  bool is_float() const { return holds<double>(); }
  bool is_number() const { return is_boolean() || is_integer() || is_float(); }
  bool is_string() const { return holds<std::shared_ptr<const std::string>>(); }
  bool is_list() const { return holds<std::shared_ptr<List>>(); }
  bool is_dict() const { return holds<std::shared_ptr<Dict>>(); }
  bool is_function() const { return holds<std::shared_ptr<const Function>>(); }

  bool boolean() const { return std::get<bool>(data_); }
  int64_t integer() const { return is_boolean() ? int64_t(boolean()) : std::get<int64_t>(data_); }
  double number() const { return is_float() ? std::get<double>(data_) : double(integer()); }
  const std::string& text() const { return *std::get<std::shared_ptr<const std::string>>(data_); }
  const List& list() const { return *std::get<std::shared_ptr<List>>(data_); }
  const Dict& dict() const { return *std::get<std::shared_ptr<Dict>>(data_); }
  Dict& mutable_dict() const { return *std::get<std::shared_ptr<Dict>>(data_); }
  // How an undefined value was called; empty for others.
  std::string undefined_name() const {
    auto* undefined = std::get_if<Undefined>(&data_);
    return undefined && undefined->name ? *undefined->name : std::string();
  }
  Value call(const Arguments& arguments) const {
    return (*std::get<std::shared_ptr<const Function>>(data_))(arguments);
  }

  bool truthy() const;
  // What it is, for messages: "a string".
  const char* kind() const;

 private:
  template <class T>
  bool holds() const {
    return std::holds_alternative<T>(data_);
  }
  std::variant<Undefined, None, bool, int64_t, double, std::shared_ptr<const std::string>, std::shared_ptr<List>,
               std::shared_ptr<Dict>, std::shared_ptr<const Function>>
      data_;
};

// The work that the rendering under way on this thread may still do. `spend` throws when it is used up; without a meter
// on the thread it does nothing.
class WorkMeter {
 public:
  explicit WorkMeter(int64_t work);
  ~WorkMeter();
  WorkMeter(const WorkMeter&) = delete;

 private:
  int64_t left_;
  int64_t* outer_;
};
void spend(int64_t work);
// The same for a text of so many bytes.
inline void spend_bytes(size_t bytes) { spend(1 + int64_t(bytes / 8)); }

// Equal as Python means it: 1 == 1.0 == True.
bool equal(const Value& a, const Value& b, int depth = 0);
// Negative, zero or positive; throws for what has no order.
int compare(const Value& a, const Value& b, int depth = 0);
// As `{{ value }}` writes it, and as it stands inside a list.
std::string to_text(const Value& value, int depth = 0);
std::string to_repr(const Value& value, int depth = 0);

// Writing of JSON, as Python's json.dumps does it. A negative indent is one line.
struct JsonStyle {
  int indent = -1;
  std::string item_separator = ", ", key_separator = ": ";
  bool sort_keys = false;
};
std::string to_json(const Value& value, const JsonStyle& style, int depth = 0);

// Text with Unicode case.
enum class Case { kUpper, kLower, kTitle, kCapitalized };
std::string change_case(std::string_view text, Case to);

}  // namespace sinter::jinja
