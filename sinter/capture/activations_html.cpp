#include "sinter/capture/activations_html.h"

#include <algorithm>

#include "sinter/base/format.h"
#include "sinter/base/table.h"
#include "sinter/engine/report.h"

namespace sinter::capture {

namespace {

constexpr double kWidth = 460, kHeight = 180, kLeft = 10, kRight = 60, kTop = 26, kBottom = 22;

// Shares that come to the same.
struct Point {
  int64_t bytes;
  double seconds;
  std::string shares;
};

std::vector<Point> merged(const std::vector<Explanation::Activations>& points) {
  std::vector<Point> out;
  for (auto& [share, bytes, seconds] : points) {
    const std::string text = fixed(share, 2);
    if (!out.empty() && out.back().bytes == bytes && out.back().seconds == seconds)
      out.back().shares += ", " + text;
    else
      out.push_back({bytes, seconds, text});
  }
  return out;
}

std::string text_at(double x, double y, const char* anchor, const std::string& text) {
  return format("<text x=\"{}\" y=\"{}\" text-anchor=\"{}\">{}</text>", fixed(x, 1), fixed(y, 1), anchor, text);
}

}  // namespace

std::string activations_html(const std::vector<Explanation::Activations>& points) {
  if (points.empty()) return {};
  auto all = merged(points);
  double most_bytes = 1, most_seconds = 0;
  for (auto& point : all) {
    most_bytes = std::max(most_bytes, double(point.bytes));
    most_seconds = std::max(most_seconds, point.seconds);
  }
  const double bottom = kHeight - kBottom;
  auto x_of = [&](const Point& p) { return kLeft + double(p.bytes) / most_bytes * (kWidth - kLeft - kRight); };
  auto y_of = [&](const Point& p) {
    return bottom - (most_seconds > 0 ? p.seconds / most_seconds : 0) * (bottom - kTop);
  };
  std::string line, marks;
  for (auto& point : all) {
    const std::string x = fixed(x_of(point), 1), y = fixed(y_of(point), 1);
    const std::string more = point.seconds > 0 ? " and " + seconds_text(point.seconds) + " more" : "";
    line += format("{}{},{}", line.empty() ? "" : " ", x, y);
    marks += format("<circle cx=\"{}\" cy=\"{}\" r=\"4\"><title>activation_memory {}: {}{}</title></circle>", x, y,
                    point.shares, bytes_text(double(point.bytes)), more);
    marks += text_at(x_of(point) + 7, y_of(point) - 6, "start", point.shares);
  }
  std::string axes = format("<path class=\"axis\" d=\"M{} {}V{}H{}\"/>", fixed(kLeft, 1), fixed(kTop - 8, 1),
                            fixed(bottom, 1), fixed(kWidth - kRight, 1)) +
                     text_at(kLeft, kTop - 13, "start", seconds_text(most_seconds) + " more") +
                     text_at(kLeft, kHeight - 6, "start", "0") +
                     text_at(kWidth - kRight, kHeight - 6, "end", bytes_text(most_bytes));
  return format(
      "<figure><figcaption>Kept for gradients, and the least time of computing the rest again, by "
      "activation_memory</figcaption><svg class=\"curve\" viewBox=\"0 0 {} {}\" role=\"img\" "
      "aria-label=\"memory kept for gradients and time\">{}<polyline points=\"{}\"/>{}</svg></figure>\n",
      int(kWidth), int(kHeight), axes, line, marks);
}

}  // namespace sinter::capture
