#include "sinter/serve/json_api.h"

namespace sinter::serve {

namespace {
constexpr int kMostDepth = 64;
}

Json parse_object(const std::string& text) {
  Json out;
  try {
    out = Json::parse(text, [](int depth, Json::parse_event_t, Json&) {
      if (depth > kMostDepth) throw ApiError(400, format("the body is nested deeper than {} levels", kMostDepth));
      return true;
    });
  } catch (const nlohmann::json::exception& error) {
    throw ApiError(400, format("the body is no JSON: {}", error.what()));
  }
  if (!out.is_object()) throw ApiError(400, "the body is no JSON object");
  return out;
}

std::string to_line(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

double Fields::number(const char* name, double otherwise, double least, double most) const {
  const Json* value = find(name);
  if (!value) return otherwise;
  demand(value->is_number(), name, "{} must be a number", name);
  const double out = value->get<double>();
  demand(out >= least && out <= most, name, "{} is {}, which must be {} to {}", name, out, least, most);
  return out;
}

int64_t Fields::integer(const char* name, int64_t otherwise, int64_t least, int64_t most) const {
  const Json* value = find(name);
  if (!value) return otherwise;
  const bool fits =
      value->is_number_integer() && (!value->is_number_unsigned() || value->get<uint64_t>() <= uint64_t(INT64_MAX));
  demand(fits, name, "{} must be an integer", name);
  const int64_t out = value->get<int64_t>();
  demand(out >= least && out <= most, name, "{} is {}, which must be {} to {}", name, out, least, most);
  return out;
}

bool Fields::boolean(const char* name, bool otherwise) const {
  const Json* value = find(name);
  if (!value) return otherwise;
  demand(value->is_boolean(), name, "{} must be true or false", name);
  return value->get<bool>();
}

std::string Fields::text(const char* name, const std::string& otherwise) const {
  const Json* value = find(name);
  if (!value) return otherwise;
  demand(value->is_string(), name, "{} must be a string", name);
  return value->get<std::string>();
}

std::vector<std::string> Fields::texts(const char* name) const {
  const Json* value = find(name);
  if (!value) return {};
  if (value->is_string()) return {value->get<std::string>()};
  demand(value->is_array(), name, "{} must be a string or a list of strings", name);
  std::vector<std::string> out;
  for (auto& each : *value) {
    demand(each.is_string(), name, "{} must be a string or a list of strings", name);
    out.push_back(each.get<std::string>());
  }
  return out;
}

std::vector<int64_t> Fields::integers(const char* name) const {
  const Json* value = find(name);
  if (!value) return {};
  demand(value->is_array(), name, "{} must be a list of integers", name);
  std::vector<int64_t> out;
  for (auto& each : *value) {
    demand(each.is_number_integer(), name, "{} must be a list of integers", name);
    out.push_back(each.get<int64_t>());
  }
  return out;
}

}  // namespace sinter::serve
