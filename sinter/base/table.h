#pragma once
// An aligned text table, for reports on a terminal:
//   Table table({"kernel", "time"});  table.row("softmax", fixed(1.5, 2) + " ms");  std::cout << table.text();
#include <string>
#include <vector>

#include "sinter/base/format.h"

namespace sinter {

// `value` with that many digits after the point.
std::string fixed(double value, int digits);

class Table {
 public:
  explicit Table(std::vector<std::string> columns);

  // Adds a row: anything `format` takes. Missing cells are empty; more cells than columns are an Error.
  template <class... Cells>
  Table& row(const Cells&... cells) {
    return add({detail::FormatArg(cells).text...});
  }
  Table& add(std::vector<std::string> cells);

  // The header, a line of dashes, the rows; two spaces between columns, none at a line's end. A column is right-aligned
  // when all its cells are numbers, with or without a short unit ("1.5 ms", "2x", "98%"); empty cells and "-" may be
  // among them. Widths count UTF-8 characters.
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;  // the header first
};

}  // namespace sinter
