#include "sinter/cli/chart.h"

#include <algorithm>
#include <cmath>

#include "sinter/base/error.h"
#include "sinter/base/format.h"
#include "sinter/base/table.h"
#include "sinter/base/xml.h"

namespace sinter::cli {

namespace {

constexpr double kLeft = 64, kRight = 24, kTop = 92, kPanel = 232, kPlot = 150, kBar = 34, kGap = 28;
constexpr size_t kColours = 6;

// Colours of bars hold on white and on black; text and lines follow the page.
constexpr const char* kStyle = R"(<style>
  svg { color-scheme: light dark; }
  .page { fill: #ffffff; } .text { fill: #1f2328; } .quiet { fill: #59636e; }
  .line { stroke: #d1d9e0; stroke-width: 1; } .whisker { stroke: #1f2328; stroke-width: 1.2; }
  text { font: 12px system-ui, sans-serif; } .head { font-size: 16px; font-weight: 600; } .small { font-size: 11px; }
  .s0 { fill: #8c959f; } .s1 { fill: #3b82d6; } .s2 { fill: #e07b39; } .s3 { fill: #3fa45b; } .s4 { fill: #a371f7; }
  .s5 { fill: #d4a72c; }
  polyline { fill: none; stroke-width: 1.6; stroke-linejoin: round; }
  .p0 { stroke: #8c959f; } .p1 { stroke: #3b82d6; } .p2 { stroke: #e07b39; } .p3 { stroke: #3fa45b; }
  .p4 { stroke: #a371f7; } .p5 { stroke: #d4a72c; }
  @media (prefers-color-scheme: dark) {
    .page { fill: #0d1117; } .text { fill: #e6edf3; } .quiet { fill: #9198a1; }
    .line { stroke: #3d444d; } .whisker { stroke: #e6edf3; }
  }
</style>
)";

std::string at(double v) { return fixed(v, 1); }

std::string text_at(double x, double y, const char* classes, const char* anchor, const std::string& text) {
  return format("<text class=\"{}\" x=\"{}\" y=\"{}\" text-anchor=\"{}\">{}</text>\n", classes, at(x), at(y), anchor,
                xml_escape(text));
}

std::string line(const char* classes, double x1, double y1, double x2, double y2) {
  return format("<line class=\"{}\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>\n", classes, at(x1), at(y1), at(x2),
                at(y2));
}

// 1, 2 or 5 times a power of ten, at most five of which reach the value.
double tick_step(double largest) {
  double power = std::pow(10, std::floor(std::log10(largest / 5)));
  for (double factor : {1.0, 2.0, 5.0})
    if (factor * power * 5 >= largest) return factor * power;
  return 10 * power;
}

std::string number(double v) { return fixed(v, v >= 100 ? 0 : v >= 10 ? 1 : v >= 0.1 ? 2 : 4); }

std::string draw_panel(const BarPanel& panel, double top, double width) {
  double largest = 0;
  for (auto& s : panel.series)
    for (size_t g = 0; g < s.values.size(); ++g)
      largest = std::max(largest, s.values[g] + (g < s.deviations.size() ? s.deviations[g] : 0));
  if (!(largest > 0)) largest = 1;
  double step = tick_step(largest), full = std::ceil(largest / step) * step;
  double bottom = top + 30 + kPlot;
  auto y_of = [&](double v) { return bottom - std::clamp(v / full, 0.0, 1.0) * kPlot; };
  std::string out = text_at(kLeft, top + 12, "text", "start", panel.title);
  for (int i = 0; double(i) * step <= full * 1.0001; ++i) {
    double v = i * step;
    out += line("line", kLeft, y_of(v), width - kRight, y_of(v));
    out += text_at(kLeft - 8, y_of(v) + 4, "quiet small", "end",
                   fixed(v, step >= 1 ? 0 : int(std::ceil(-std::log10(step)))));
  }
  double group_width = double(panel.series.size()) * kBar + kGap;
  for (size_t g = 0; g < panel.groups.size(); ++g) {
    double left = kLeft + kGap / 2 + double(g) * group_width;
    for (size_t s = 0; s < panel.series.size(); ++s) {
      auto& series = panel.series[s];
      double value = series.values.at(g), x = left + double(s) * kBar, middle = x + kBar / 2;
      if (!(value >= 0)) continue;
      double deviation = g < series.deviations.size() ? series.deviations[g] : 0;
      out += format("<rect class=\"s{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"><title>{}</title></rect>\n",
                    s % kColours, at(x + 2), at(y_of(value)), at(kBar - 4), at(bottom - y_of(value)),
                    xml_escape(format("{}, {}: {}", series.name, panel.groups[g], number(value))));
      if (deviation > 0) out += line("whisker", middle, y_of(value - deviation), middle, y_of(value + deviation));
      out += text_at(middle, y_of(value + deviation) - 4, "text small", "middle", number(value));
    }
    out += text_at(left + double(panel.series.size()) * kBar / 2, bottom + 17, "quiet", "middle", panel.groups[g]);
  }
  return out;
}

double legend_width(const std::string& name) { return 34 + 7.5 * double(name.size()); }

// Everything before the panels: the page, the heading, and a legend of these names.
std::string opening(const std::string& heading, const std::string& caption, const std::vector<std::string>& names,
                    double width, double height) {
  std::string out = format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" viewBox=\"0 0 {} {}\" role=\"img\">\n",
      at(width), at(height), at(width), at(height));
  out += format("<title>{}</title>\n", xml_escape(heading)) + kStyle;
  out += format("<rect class=\"page\" width=\"{}\" height=\"{}\"/>\n", at(width), at(height));
  out += text_at(24, 28, "text head", "start", heading) + text_at(24, 48, "quiet small", "start", caption);
  double x = kLeft;
  for (size_t s = 0; s < names.size(); ++s) {
    out += format("<rect class=\"s{}\" x=\"{}\" y=\"62\" width=\"12\" height=\"12\"/>\n", s % kColours, at(x));
    out += text_at(x + 18, 72.5, "text", "start", names[s]);
    x += legend_width(names[s]);
  }
  return out;
}

// One axis of a line chart: where values lie between two places, and what is written beside it.
struct Axis {
  double low, high, step;

  explicit Axis(const std::vector<LineSeries>& all, double std::pair<double, double>::*part)
      : low(HUGE_VAL), high(-HUGE_VAL) {
    for (auto& series : all)
      for (auto& point : series.points) low = std::min(low, point.*part), high = std::max(high, point.*part);
    if (!(high > low)) low -= 0.5, high = low + 1;
    step = tick_step(high - low);
    low = std::floor(low / step) * step;
    high = std::ceil(high / step) * step;
  }
  double place(double value, double from, double to) const { return from + (value - low) / (high - low) * (to - from); }
  std::string text(double value) const { return fixed(value, step >= 1 ? 0 : int(std::ceil(-std::log10(step)))); }
};

}  // namespace

std::string bar_chart_svg(const std::string& heading, const std::string& caption, const std::vector<BarPanel>& panels) {
  check(!panels.empty(), "chart: there is nothing to draw");
  double width = 0, legend = kLeft;
  for (auto& panel : panels)
    width = std::max(width, double(panel.groups.size()) * (double(panel.series.size()) * kBar + kGap));
  std::vector<std::string> names;
  for (auto& series : panels[0].series) {
    names.push_back(series.name);
    legend += legend_width(series.name);
  }
  double longest = 9.5 * double(heading.size()), words = 6.6 * double(caption.size());
  width = std::max({kLeft + width + kRight, legend + kRight, 24 + longest + kRight, 24 + words + kRight, 360.0});
  std::string out = opening(heading, caption, names, width, kTop + kPanel * double(panels.size()));
  for (size_t p = 0; p < panels.size(); ++p) out += draw_panel(panels[p], kTop + double(p) * kPanel, width);
  return out + "</svg>\n";
}

std::string line_chart_svg(const std::string& heading, const std::string& caption, const std::string& x_name,
                           const std::vector<LineSeries>& series) {
  check(!series.empty(), "chart: there is nothing to draw");
  constexpr double kWidth = 720, kHeight = 420, kBottom = kHeight - 48, kEnd = kWidth - kRight;
  const Axis x(series, &std::pair<double, double>::first), y(series, &std::pair<double, double>::second);
  std::vector<std::string> names;
  for (auto& one : series) names.push_back(one.name);
  std::string out = opening(heading, caption, names, kWidth, kHeight);
  for (double v = y.low; v <= y.high + y.step / 2; v += y.step) {
    double place = y.place(v, kBottom, kTop);
    out += line("line", kLeft, place, kEnd, place) + text_at(kLeft - 8, place + 4, "quiet small", "end", y.text(v));
  }
  for (double v = x.low; v <= x.high + x.step / 2; v += x.step)
    out += text_at(x.place(v, kLeft, kEnd), kBottom + 18, "quiet small", "middle", x.text(v));
  out += text_at((kLeft + kEnd) / 2, kBottom + 38, "quiet", "middle", x_name);
  for (size_t s = 0; s < series.size(); ++s) {
    std::string points;
    // Few points are shown as such: a line of one would not be seen.
    const bool marks = series[s].points.size() <= 40;
    for (auto& [px, py] : series[s].points) {
      std::string left = at(x.place(px, kLeft, kEnd)), top = at(y.place(py, kBottom, kTop));
      points += left + "," + top + " ";
      if (marks) out += format("<circle class=\"s{}\" cx=\"{}\" cy=\"{}\" r=\"2.5\"/>\n", s % kColours, left, top);
    }
    out += format("<polyline class=\"p{}\" points=\"{}\"/>\n", s % kColours, points);
  }
  return out + "</svg>\n";
}

}  // namespace sinter::cli
