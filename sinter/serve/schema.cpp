// JSON schemas as grammars.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "sinter/serve/grammar.h"
#include "sinter/serve/json_api.h"

namespace sinter::serve {

namespace {

constexpr size_t kMostNodes = 20000;
constexpr int kMostNesting = 64;

// Words that say nothing of what is valid.
const std::set<std::string> kRemarks = {
    "title",       "description", "default",   "examples",      "$schema",         "$id",
    "$comment",    "readOnly",    "writeOnly", "deprecated",    "format",          "$defs",
    "definitions", "$anchor",     "nullable",  "discriminator", "contentEncoding", "contentMediaType"};

template <class... Args>
void understand(bool condition, const char* pattern, const Args&... args) {
  if (!condition)
    throw ApiError(400, format("the schema is not understood: {}", format(pattern, args...)), "response_format");
}

}  // namespace

// Makes nodes; internal to this file but for its name, which the grammar knows.
class SchemaReader {
 public:
  static std::shared_ptr<const Grammar> read(const Json& schema) {
    std::shared_ptr<Grammar> grammar(new Grammar);
    SchemaReader reader(*grammar, schema);
    grammar->root_ = reader.of(schema, 0);
    reader.check_choices();
    return grammar;
  }

 private:
  SchemaReader(Grammar& grammar, const Json& whole) : nodes_(grammar.nodes_), whole_(whole) {}

  int64_t add(JsonNode node) {
    understand(nodes_.size() < kMostNodes, "it has more than {} parts", kMostNodes);
    nodes_.push_back(std::move(node));
    return int64_t(nodes_.size()) - 1;
  }
  int64_t literal(const Json& value) { return add({.kind = JsonKind::kLiteral, .literals = {to_line(value)}}); }
  int64_t choice(std::vector<int64_t> among) {
    if (among.size() == 1) return among[0];
    return add({.kind = JsonKind::kChoice, .first = std::move(among)});
  }
  int64_t string() {
    if (string_ < 0) string_ = add({.kind = JsonKind::kString});
    return string_;
  }
  int64_t boolean() { return add({.kind = JsonKind::kLiteral, .literals = {"true", "false"}}); }
  // Any value.
  int64_t any() {
    if (any_ >= 0) return any_;
    any_ = add({.kind = JsonKind::kChoice});
    std::vector<int64_t> all = {string(),         add({.kind = JsonKind::kNumber}),
                                any_object(any_), add({.kind = JsonKind::kArray, .others = any_}),
                                boolean(),        literal(nullptr)};
    nodes_[size_t(any_)].first = std::move(all);
    return any_;
  }
  int64_t any_object(int64_t values) { return add({.kind = JsonKind::kObject, .others = values, .first = {string()}}); }

  int64_t of(const Json& schema, int depth) {
    understand(depth < kMostNesting, "it is nested deeper than {} levels", kMostNesting);
    if (schema.is_boolean()) {
      understand(schema.get<bool>(), "false allows nothing");
      return any();
    }
    understand(schema.is_object(), "a schema is an object, not {}", to_line(schema));
    if (schema.contains("$ref")) return of_reference(schema, depth);
    if (schema.contains("const")) return only(schema, {"const", "type"}), literal(schema["const"]);
    if (schema.contains("enum")) return of_enum(schema);
    for (const char* word : {"anyOf", "oneOf", "allOf"})
      if (schema.contains(word)) return of_several(schema, word, depth);
    if (!schema.contains("type")) {
      if (schema.contains("properties") || schema.contains("required")) return of_object(schema, depth);
      only(schema, {});
      return any();
    }
    if (schema["type"].is_array()) {
      std::vector<int64_t> among;
      for (auto& type : schema["type"]) among.push_back(of_type(type, schema, depth));
      understand(!among.empty(), "a type is missing");
      return choice(std::move(among));
    }
    return of_type(schema["type"], schema, depth);
  }

  int64_t of_type(const Json& type, const Json& schema, int depth) {
    understand(type.is_string(), "the type {}", to_line(type));
    const auto name = type.get<std::string>();
    // Of a list of types each has its own words, and nothing says of the others.
    const bool alone = !schema["type"].is_array();
    if (name == "object") return of_object(schema, depth);
    if (name == "array") return of_array(schema, depth);
    if (name == "string") {
      if (alone) only(schema, {"type", "minLength", "maxLength"});
      understand(!schema.contains("pattern"), "pattern is not supported");
      const int64_t least = count(schema, "minLength", 0), most = count(schema, "maxLength", INT64_MAX);
      understand(least <= most, "minLength {} is above maxLength {}", least, most);
      return least == 0 && most == INT64_MAX ? string()
                                             : add({.kind = JsonKind::kString, .least = least, .most = most});
    }
    if (name == "integer" || name == "number") return of_number(schema, name == "integer", alone);
    if (alone) only(schema, {"type"});
    if (name == "boolean") return boolean();
    understand(name == "null", "there is no type {}", name);
    return literal(nullptr);
  }

  int64_t of_number(const Json& schema, bool integer, bool alone) {
    if (alone) only(schema, {"type", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"});
    understand(!schema.contains("multipleOf") || (integer && schema["multipleOf"] == 1), "multipleOf is not supported");
    const double endless = std::numeric_limits<double>::infinity();
    JsonNode node{.kind = JsonKind::kNumber, .integer = integer, .low = -endless, .high = endless};
    auto bound = [&](const char* word, auto take) {
      if (!schema.contains(word)) return;
      understand(schema[word].is_number() && std::abs(schema[word].get<double>()) <= 1e14, "{} of {}", word,
                 to_line(schema[word]));
      node.bounded = true;
      take(schema[word].get<double>());
    };
    auto low = [&](double value, bool open) {
      if (value > node.low || (value == node.low && open)) node.low = value, node.low_open = open;
    };
    auto high = [&](double value, bool open) {
      if (value < node.high || (value == node.high && open)) node.high = value, node.high_open = open;
    };
    bound("minimum", [&](double value) { low(value, false); });
    bound("exclusiveMinimum", [&](double value) { integer ? low(std::floor(value) + 1, false) : low(value, true); });
    bound("maximum", [&](double value) { high(value, false); });
    bound("exclusiveMaximum", [&](double value) { integer ? high(std::ceil(value) - 1, false) : high(value, true); });
    const bool some = integer ? std::ceil(node.low) <= std::floor(node.high)
                              : node.low < node.high || (node.low == node.high && !node.low_open && !node.high_open);
    understand(some, "no number is from {} to {}", node.low, node.high);
    return add(std::move(node));
  }

  int64_t of_array(const Json& schema, int depth) {
    if (!schema["type"].is_array())
      only(schema, {"type", "items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems"});
    JsonNode node{
        .kind = JsonKind::kArray, .least = count(schema, "minItems", 0), .most = count(schema, "maxItems", INT64_MAX)};
    understand(!schema.contains("uniqueItems") || schema["uniqueItems"] == false || node.most <= 1,
               "uniqueItems is not supported");
    if (schema.contains("prefixItems")) {
      understand(schema["prefixItems"].is_array(), "prefixItems is a list");
      for (auto& each : schema["prefixItems"]) node.first.push_back(of(each, depth + 1));
    }
    const bool none = schema.contains("items") && schema["items"] == false;
    if (!none) {
      understand(!schema.contains("items") || !schema["items"].is_array(),
                 "items as a list; prefixItems is its name now");
      node.others = schema.contains("items") ? of(schema["items"], depth + 1) : any();
    }
    if (node.others < 0) node.most = std::min(node.most, int64_t(node.first.size()));
    understand(node.least <= node.most, "minItems {} is above what there may be, {}", node.least, node.most);
    return add(std::move(node));
  }

  int64_t of_object(const Json& schema, int depth) {
    if (!schema.contains("type") || !schema["type"].is_array())
      only(schema, {"type", "properties", "required", "additionalProperties", "unevaluatedProperties"});
    std::set<std::string> required;
    if (schema.contains("required")) {
      understand(schema["required"].is_array(), "required is a list");
      for (auto& each : schema["required"]) {
        understand(each.is_string(), "required has {}", to_line(each));
        required.insert(each.get<std::string>());
      }
    }
    const Json* others = schema.contains("additionalProperties") ? &schema["additionalProperties"] : nullptr;
    const bool closed = others && *others == false;
    JsonNode node{.kind = JsonKind::kObject};
    std::set<std::string> named;
    auto add_property = [&](const std::string& name, int64_t value) {
      const int64_t key = literal(name);
      node.properties.push_back({key, value, required.contains(name)});
      named.insert(name);
    };
    if (schema.contains("properties")) {
      understand(schema["properties"].is_object(), "properties is an object");
      for (auto& [name, value] : schema["properties"].items()) {
        // One that may not be there is left out.
        if (value.is_boolean() && !value.get<bool>() && !required.contains(name)) continue;
        add_property(name, of(value, depth + 1));
      }
    }
    auto of_others = [&] { return others && !others->is_boolean() ? of(*others, depth + 1) : any(); };
    for (auto& name : required)
      if (!named.contains(name)) {
        understand(!closed, "'{}' is required and not allowed", name);
        add_property(name, of_others());
      }
    if (node.properties.empty() && !closed) return any_object(of_others());
    return add(std::move(node));
  }

  int64_t of_enum(const Json& schema) {
    only(schema, {"enum", "type"});
    understand(schema["enum"].is_array() && !schema["enum"].empty(), "enum is a list of at least one value");
    JsonNode node{.kind = JsonKind::kLiteral};
    for (auto& value : schema["enum"])
      if (fits_type(value, schema)) node.literals.push_back(to_line(value));
    understand(!node.literals.empty(), "no value of enum has its type");
    return add(std::move(node));
  }

  static bool fits_type(const Json& value, const Json& schema) {
    if (!schema.contains("type")) return true;
    auto is = [&](const std::string& type) {
      return type == "string"    ? value.is_string()
             : type == "integer" ? value.is_number_integer()
             : type == "number"  ? value.is_number()
             : type == "boolean" ? value.is_boolean()
             : type == "null"    ? value.is_null()
             : type == "object"  ? value.is_object()
                                 : value.is_array();
    };
    const Json& type = schema["type"];
    if (type.is_string()) return is(type.get<std::string>());
    return std::any_of(type.begin(), type.end(),
                       [&](auto& each) { return each.is_string() && is(each.template get<std::string>()); });
  }

  int64_t of_several(const Json& schema, const char* word, int depth) {
    only(schema, {word});
    const Json& all = schema[word];
    understand(all.is_array() && !all.empty(), "{} is a list of at least one schema", word);
    understand(std::string(word) != "allOf" || all.size() == 1, "allOf of several schemas is not supported");
    understand(std::string(word) != "oneOf" || exclude_each_other(all),
               "oneOf whose alternatives do not differ in their type or in a "
               "constant property; use anyOf");
    std::vector<int64_t> among;
    for (auto& each : all) among.push_back(of(each, depth + 1));
    return choice(std::move(among));
  }

  // By their types, or by a property that each of them requires with a constant of its own.
  static bool exclude_each_other(const Json& all) {
    std::set<std::string> types;
    for (auto& each : all)
      if (each.is_object() && each.contains("type") && each["type"].is_string())
        types.insert(each["type"] == "integer" ? "number" : each["type"].get<std::string>());
    if (types.size() == all.size()) return true;
    if (!all[0].is_object() || !all[0].contains("properties")) return all.size() == 1;
    for (auto& [name, first] : all[0]["properties"].items()) {
      std::set<std::string> constants;
      for (auto& each : all) {
        const bool has =
            each.is_object() && each.contains("properties") && each["properties"].contains(name) &&
            each["properties"][name].is_object() && each["properties"][name].contains("const") &&
            each.contains("required") &&
            std::find(each["required"].begin(), each["required"].end(), Json(name)) != each["required"].end();
        if (has) constants.insert(to_line(each["properties"][name]["const"]));
      }
      if (constants.size() == all.size()) return true;
    }
    return all.size() == 1;
  }

  int64_t of_reference(const Json& schema, int depth) {
    only(schema, {"$ref"});
    understand(schema["$ref"].is_string(), "$ref is a string");
    const auto name = schema["$ref"].get<std::string>();
    if (auto known = references_.find(name); known != references_.end()) return known->second;
    understand(name == "#" || name.starts_with("#/"), "the reference {}; those inside the schema are known", name);
    const Json* found = nullptr;
    try {
      found = &whole_.at(Json::json_pointer(name.substr(1)));
    } catch (const nlohmann::json::exception&) {
    }
    understand(found != nullptr, "there is no {}", name);
    // It may be met again inside of itself.
    const int64_t node = references_[name] = add({.kind = JsonKind::kChoice});
    const int64_t inner = of(*found, depth + 1);
    nodes_[size_t(node)].first = {inner};
    return node;
  }

  // A choice that leads to itself before a character is read would never end.
  void check_choices() const {
    for (size_t i = 0; i < nodes_.size(); ++i) {
      std::set<int64_t> met, next{int64_t(i)};
      while (!next.empty()) {
        const int64_t node = *next.begin();
        next.erase(next.begin());
        if (nodes_[size_t(node)].kind != JsonKind::kChoice) continue;
        for (int64_t each : nodes_[size_t(node)].first) {
          understand(each != int64_t(i), "a schema is defined by itself alone");
          if (met.insert(each).second) next.insert(each);
        }
      }
    }
  }

  static int64_t count(const Json& schema, const char* word, int64_t otherwise) {
    if (!schema.contains(word)) return otherwise;
    understand(schema[word].is_number_integer() && schema[word].get<int64_t>() >= 0, "{} of {}", word,
               to_line(schema[word]));
    return schema[word].get<int64_t>();
  }

  // What is not known might restrict: it is refused.
  static void only(const Json& schema, const std::set<std::string>& words) {
    for (auto& [word, value] : schema.items())
      understand(words.contains(word) || kRemarks.contains(word) || word.starts_with("x-"), "{} is not supported here",
                 word);
  }

  std::vector<JsonNode>& nodes_;
  const Json& whole_;
  std::map<std::string, int64_t> references_;
  int64_t any_ = -1, string_ = -1;
};

std::shared_ptr<const Grammar> Grammar::of_schema(const std::string& schema) {
  return SchemaReader::read(parse_object(schema));
}

}  // namespace sinter::serve
