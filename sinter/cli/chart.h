#pragma once
// Charts as SVG, readable on light and dark pages.
#include <string>
#include <utility>
#include <vector>

namespace sinter::cli {

struct BarPanel {
  std::string title;                // with the unit: "decode step, ms"
  std::vector<std::string> groups;  // below the axis, a group of bars each
  struct Series {
    std::string name;                     // in the legend
    std::vector<double> values;           // one a group; negative: no bar
    std::vector<double> deviations = {};  // drawn as whiskers; empty: none
  };
  std::vector<Series> series;
};

// The panels below each other under one heading, with one legend: panels have the same series, in the same order.
std::string bar_chart_svg(const std::string& heading, const std::string& caption, const std::vector<BarPanel>& panels);

struct LineSeries {
  std::string name;                                // in the legend
  std::vector<std::pair<double, double>> points;   // by rising x
};

// Lines over one pair of axes, which reach from the smallest to the largest value.
std::string line_chart_svg(const std::string& heading, const std::string& caption, const std::string& x_name,
                           const std::vector<LineSeries>& series);

}  // namespace sinter::cli
