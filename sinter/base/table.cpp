#include "sinter/base/table.h"

#include <algorithm>
#include <cstdio>
#include <string_view>

#include "sinter/base/error.h"

namespace sinter {

namespace {

size_t width(std::string_view text) {
  return size_t(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// A number, then at most six characters of unit without a digit and with at most one leading space.
bool is_number(std::string_view text) {
  if (text == "inf" || text == "-inf" || text == "nan") return true;
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  if (text.empty() || !is_digit(text[0])) return false;
  size_t i = 0;
  auto exponent = [&] {
    size_t j = i + 1;
    if (j < text.size() && (text[j] == '-' || text[j] == '+')) ++j;
    return (text[i] == 'e' || text[i] == 'E') && j < text.size() && is_digit(text[j]);
  };
  while (i < text.size() && (is_digit(text[i]) || text[i] == '.' || text[i] == ',' || exponent()))
    i += exponent() ? 2 : 1;
  text.remove_prefix(i);
  if (text.starts_with(' ')) text.remove_prefix(1);
  return width(text) <= 6 && std::none_of(text.begin(), text.end(), [](char c) { return is_digit(c) || c == ' '; });
}

}  // namespace

std::string fixed(double value, int digits) {
  int size = std::snprintf(nullptr, 0, "%.*f", digits, value);
  std::string text(size_t(size), '\0');
  std::snprintf(text.data(), text.size() + 1, "%.*f", digits, value);
  return text;
}

Table::Table(std::vector<std::string> columns) { rows_.push_back(std::move(columns)); }

Table& Table::add(std::vector<std::string> cells) {
  check(cells.size() <= rows_[0].size(), "table: a row of {} cells, but there are {} columns", cells.size(),
        rows_[0].size());
  cells.resize(rows_[0].size());
  rows_.push_back(std::move(cells));
  return *this;
}

std::string Table::text() const {
  size_t columns = rows_[0].size();
  std::vector<size_t> widths(columns, 0);
  std::vector<bool> right(columns, false);
  for (size_t c = 0; c < columns; ++c) {
    bool any = false, all = true;
    for (size_t r = 0; r < rows_.size(); ++r) {
      const std::string& cell = rows_[r][c];
      widths[c] = std::max(widths[c], width(cell));
      if (r == 0 || cell.empty() || cell == "-") continue;
      any = true;
      all = all && is_number(cell);
    }
    right[c] = any && all;
  }

  std::string out;
  auto finish_line = [&] {
    while (out.ends_with(' ')) out.pop_back();
    out += '\n';
  };
  for (size_t r = 0; r < rows_.size(); ++r) {
    for (size_t c = 0; c < columns; ++c) {
      std::string padding(widths[c] - width(rows_[r][c]), ' ');
      if (c > 0) out += "  ";
      out += right[c] ? padding + rows_[r][c] : rows_[r][c] + padding;
    }
    finish_line();
    if (r > 0) continue;
    for (size_t c = 0; c < columns; ++c) out += (c > 0 ? "  " : "") + std::string(widths[c], '-');
    finish_line();
  }
  return out;
}

}  // namespace sinter
