#include "bench/support/report.h"

#include <cmath>
#include <cstdio>

namespace sinter::bench {

namespace {

constexpr double kNoise = 0.05;

std::string cell(const Json& row, const Column& column) {
  auto found = row.find(column.key);
  if (found == row.end() || found->is_null()) return "-";
  if (found->is_string()) return found->get<std::string>();
  double value = found->get<double>();
  return column.percent ? fixed(100 * value, column.digits) + "%" : fixed(value, column.digits);
}

}  // namespace

void Report::section(const std::string& key, const std::string& title, std::vector<Column> columns) {
  flush();
  key_ = key;
  title_ = title;
  columns_ = std::move(columns);
  root_[key] = Json::array();
}

void Report::row(Json row) {
  if (row.value("deviation", 0.0) > kNoise) ++noisy_;
  root_[key_].push_back(std::move(row));
}

void Report::note(const std::string& text) { notes_.push_back(text); }

void Report::fact(const std::string& key, const Json& value) {
  flush();
  root_[key] = value;
  const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  if (!json_) std::printf("%s: %s\n", key.c_str(), text.c_str());
}

void Report::warning(const std::string& text) {
  root_["warnings"].push_back(text);
  std::fprintf(stderr, "warning: %s\n", text.c_str());
}

void Report::flush() {
  if (!json_ && !key_.empty()) {
    std::vector<std::string> headings;
    for (auto& c : columns_) headings.push_back(c.heading);
    headings.push_back("");
    Table table(headings);
    for (auto& row : root_[key_]) {
      std::vector<std::string> cells;
      for (auto& c : columns_) cells.push_back(cell(row, c));
      std::string mark = row.value("wrong", false) ? "WRONG RESULT " : "";
      if (row.value("deviation", 0.0) > kNoise) mark += "±" + fixed(100 * row["deviation"].get<double>(), 0) + "%";
      cells.push_back(mark);
      table.add(cells);
    }
    std::printf("\n%s\n%s", title_.c_str(), table.text().c_str());
    for (auto& n : notes_) std::printf("%s\n", n.c_str());
    if (noisy_ > 0) std::printf("warning: the rounds of %d rows deviate by more than 5 %% (marked ±)\n", noisy_);
    std::fflush(stdout);
  }
  if (!notes_.empty()) root_["notes"][key_] = notes_;
  noisy_in_all_ += noisy_;
  noisy_ = 0;
  notes_.clear();
  key_.clear();
}

void Report::finish(double seconds) {
  flush();
  root_["noisy_rows"] = noisy_in_all_;
  fact("seconds", std::round(seconds * 10) / 10);
  if (json_) std::printf("%s\n", root_.dump(2).c_str());
}

}  // namespace sinter::bench
