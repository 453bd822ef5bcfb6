#pragma once
// The filters, tests, methods and functions that templates may use.
#include <string>

#include "sinter/io/chat_template/value.h"

namespace sinter::jinja {

// `value | name(arguments)`.
Value apply_filter(const std::string& name, const Value& value, const Arguments& arguments);
// `value is name(arguments)`.
bool apply_test(const std::string& name, const Value& value, const Arguments& arguments);
// `value.name`, when it is a method of its type; undefined otherwise.
Value find_method(const Value& value, const std::string& name);
// A function that every template has: range, namespace, raise_exception, … Undefined when there is none.
Value find_global(const std::string& name);

// --- what the interpreter shares with them ---

// The attribute or item `key`, as `.` or `[]` looks it up; undefined when there is none.
Value attribute(const Value& value, const std::string& name);
Value item(const Value& value, const Value& key);
// What a loop over the value sees: elements, keys, characters.
List elements(const Value& value);
bool contains(const Value& container, const Value& element);
int64_t length(const Value& value);
Value binary(const std::string& op, const Value& a, const Value& b);

// New values; a list is freed only when the rendering ends, so that no chain of them is freed by recursion.
Value make_list(List elements);
Value make_dict(Dict fields);
Value make_text(std::string text);
Value from_json(std::string_view json, const char* what);

// Empties every list and mapping that was made on this thread since.
class ValueArena {
 public:
  ValueArena();
  ~ValueArena();
  ValueArena(const ValueArena&) = delete;
  void keep(std::shared_ptr<List> list) { lists_.push_back(std::move(list)); }
  void keep(std::shared_ptr<Dict> dict) { dicts_.push_back(std::move(dict)); }

 private:
  ValueArena* outer_;
  std::vector<std::shared_ptr<List>> lists_;
  std::vector<std::shared_ptr<Dict>> dicts_;
};

}  // namespace sinter::jinja
