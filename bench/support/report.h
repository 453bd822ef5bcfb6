#pragma once
// The results of a benchmark: tables for people as they come, or one JSON object for machines at the end.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sinter/base/table.h"

namespace sinter::bench {

using Json = nlohmann::json;

// A column of a section: the key in its rows, the heading, and how a number is shown. A row without the key shows "-".
struct Column {
  std::string key, heading;
  int digits = 0;
  bool percent = false;  // the number is a fraction
};

class Report {
 public:
  explicit Report(bool json) : json_(json) {}

  // Begins a table; `key` names its rows in the JSON object.
  void section(const std::string& key, const std::string& title, std::vector<Column> columns);
  // A row of the current table. Its member "deviation" (relative) is watched: above 5 % the row is marked.
  void row(Json row);
  // A line under the current table.
  void note(const std::string& text);
  // A fact about the run as a whole.
  void fact(const std::string& key, const Json& value);
  // Something that makes the results doubtful; told at once on standard error too.
  void warning(const std::string& text);
  // Prints what is left; `seconds` is how long the whole run took.
  void finish(double seconds);

 private:
  void flush();

  bool json_;
  Json root_ = Json::object();
  std::string key_, title_;
  std::vector<Column> columns_;
  std::vector<std::string> notes_;
  int noisy_ = 0, noisy_in_all_ = 0;
};

}  // namespace sinter::bench
