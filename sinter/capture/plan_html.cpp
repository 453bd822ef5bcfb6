#include "sinter/capture/plan_html.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "sinter/base/format.h"
#include "sinter/base/table.h"
#include "sinter/base/xml.h"

namespace sinter::capture {

namespace {

using Place = ValueReport::Place;

constexpr double kWidth = 1000, kMemory = 150;  // of drawings, in their own units

std::string at(double v) { return fixed(v, 2); }

std::string joined(const std::vector<std::string>& list) {
  std::string out;
  for (auto& item : list) out += (out.empty() ? "" : ", ") + item;
  return out;
}

// A graph's text: bodies of fused nodes on lines of their own, the user's lines dimmed.
std::string graph_html(const std::string& text) {
  std::string out, opened;  // what the braces around this place belong to: a body or attributes
  auto new_line = [&] { out += "\n" + std::string(2 * size_t(std::ranges::count(opened, 'b')), ' '); };
  size_t copied = 0;
  auto copy_to = [&](size_t end) {
    out += xml_escape(std::string_view(text).substr(copied, end - copied));
    copied = end;
  };
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '{') {
      bool body = text.compare(i < 5 ? 0 : i - 5, 5, "body=") == 0;
      opened += body ? 'b' : 'a';
      copy_to(i + 1);
      if (body) new_line();
    } else if (text[i] == '}' && !opened.empty()) {
      bool body = opened.back() == 'b';
      copy_to(i);
      opened.pop_back();
      if (body) new_line();
    } else if (text.compare(i, 2, "; ") == 0 && !opened.empty() && opened.back() == 'b') {
      copy_to(i);
      copied = i + 2;
      new_line();
    } else if (text.compare(i, 5, "  // ") == 0) {
      copy_to(i);
      size_t end = std::min(text.find('\n', i), text.size());
      out += "<i>";
      copy_to(end);
      out += "</i>";
      i = end;
      opened.clear();
    }
  }
  copy_to(text.size());
  return "<pre>" + out + "</pre>";
}

// --- kernels ---------------------------------------------------------------------------------------------------------

// Kernels of a plan that differ in addresses only.
struct KernelGroup {
  const KernelReport* kernel;
  std::vector<size_t> runs;  // their numbers
  Cost cost;
  double floor = 0;
};

std::vector<KernelGroup> groups_of(const PlanReport& report) {
  std::map<std::vector<std::string>, size_t> known;
  std::vector<KernelGroup> out;
  for (size_t k = 0; k < report.kernels.size(); ++k) {
    auto& kernel = report.kernels[k];
    std::vector<std::string> key = {kernel.name, kernel.by, kernel.where, kernel.candidate};
    for (int text : kernel.texts) key.push_back(std::to_string(text));
    for (auto* types : {&kernel.operands, &kernel.results}) key.insert(key.end(), types->begin(), types->end());
    auto [place, fresh] = known.try_emplace(std::move(key), out.size());
    if (fresh) out.push_back({.kernel = &kernel, .runs = {}, .cost = {}});
    auto& group = out[place->second];
    group.runs.push_back(k);
    group.cost += kernel.cost;
    group.floor += report.floor_seconds(kernel);
  }
  std::stable_sort(out.begin(), out.end(), [](auto& a, auto& b) { return a.floor > b.floor; });
  return out;
}

// "3, 9, 15, … (32)".
std::string runs_text(const std::vector<size_t>& runs) {
  constexpr size_t kTold = 12;
  std::string out;
  for (size_t i = 0; i < std::min(runs.size(), kTold); ++i) out += (i ? ", " : "") + std::to_string(runs[i]);
  return runs.size() > kTold ? out + format(", … ({} in all)", runs.size()) : out;
}

std::string mflop_text(double flops) { return fixed(flops / 1e6, flops < 1e6 ? 3 : 1); }

std::string figure(const char* name, const std::string& value) {
  return format("<div><dt>{}</dt><dd>{}</dd></div>", name, xml_escape(value));
}

std::string figures(const PlanReport& report) {
  size_t ops = 0;
  for (auto& kernel : report.kernels) ops += kernel.ops.size();
  Cost total = report.total();
  std::string out = figure("device", to_string(report.device)) +
                    figure("kernels", std::to_string(report.kernels.size())) +
                    figure("ops in them", std::to_string(ops)) + figure("read", bytes_text(double(total.read))) +
                    figure("written", bytes_text(double(total.written)));
  if (total.flops > 0) out += figure("MFLOP", mflop_text(total.flops));
  out += figure("floor", seconds_text(report.floor_seconds())) +
         figure("arena", bytes_text(double(report.arena_bytes))) +
         figure("largest live set", bytes_text(double(report.live_bytes))) +
         figure("results", bytes_text(double(report.output_bytes)));
  if (report.loose_bytes > 0) out += figure("outside the arena", bytes_text(double(report.loose_bytes)));
  return "<dl class=\"figures\">" + out + "</dl>\n";
}

// All kernels in the order in which they run, as wide as their floors.
std::string order_strip(const PlanReport& report) {
  double all = report.floor_seconds();
  if (!(all > 0)) return {};
  std::string bars;
  double x = 0;
  for (size_t k = 0; k < report.kernels.size(); ++k) {
    auto& kernel = report.kernels[k];
    double width = report.floor_seconds(kernel) / all * kWidth;
    bars += format("<rect class=\"by {}\" x=\"{}\" width=\"{}\" height=\"26\"><title>{}</title></rect>",
                   xml_escape(kernel.by), at(x), at(width - std::min(0.08 * width, 1.5)),
                   xml_escape(format("{}: {}\n{}, floor {}\n{}", k, kernel.name, kernel.by,
                                     seconds_text(report.floor_seconds(kernel)), kernel.where)));
    x += width;
  }
  return format(
      "<figure><figcaption>Kernels in order, as wide as their floors</figcaption>"
      "<svg class=\"strip\" viewBox=\"0 0 {} 26\" preserveAspectRatio=\"none\" role=\"img\" "
      "aria-label=\"kernels in order\">{}</svg></figure>\n",
      int(kWidth), bars);
}

// --- memory ----------------------------------------------------------------------------------------------------------

// What lives while a kernel runs, the largest first.
std::string living(const PlanReport& report, size_t kernel, int64_t bytes) {
  constexpr size_t kTold = 6;
  std::vector<const ValueReport*> alive;
  for (auto& value : report.values)
    if (value.first <= int(kernel) && int(kernel) <= value.last) alive.push_back(&value);
  std::stable_sort(alive.begin(), alive.end(), [](auto* a, auto* b) { return a->bytes > b->bytes; });
  std::string out = format("{}: {}\n{} in use", kernel, report.kernels[kernel].name, bytes_text(double(bytes)));
  for (size_t i = 0; i < std::min(alive.size(), kTold); ++i) {
    auto& value = *alive[i];
    const char* what = value.place == Place::kArena    ? ""
                       : value.place == Place::kResult ? ", a result"
                                                       : ", outside the arena";
    out += format("\n{} {}, made by kernel {}{}", bytes_text(double(value.bytes)), value.type, value.first, what);
  }
  return alive.size() > kTold ? out + format("\nand {} more", alive.size() - kTold) : out;
}

// Bytes in use over the kernels: the arena below, results and what lies outside on top.
std::string memory_chart(const PlanReport& report) {
  size_t count = report.kernels.size();
  std::vector<int64_t> below(count, 0);
  struct Layer {
    const char* name;
    std::vector<int64_t> from, to;
  };
  std::vector<Layer> layers;
  for (auto [place, name] :
       {std::pair{Place::kArena, "arena"}, {Place::kResult, "result"}, {Place::kOutside, "outside"}}) {
    auto bytes = report.bytes_in_use(place);
    if (std::ranges::all_of(bytes, [](int64_t b) { return b == 0; })) continue;
    layers.push_back({name, below, below});
    for (size_t k = 0; k < count; ++k) layers.back().to[k] += bytes[k];
    below = layers.back().to;
  }
  if (layers.empty()) return {};
  size_t peak = size_t(std::ranges::max_element(below) - below.begin());
  double most = double(below[peak]), step = kWidth / double(count);
  auto y_of = [&](int64_t bytes) { return kMemory - double(bytes) / most * (kMemory - 20); };
  std::string drawing;
  for (auto& layer : layers) {
    std::string there, back;
    for (size_t k = 0; k < count; ++k) {
      double left = double(k) * step, right = left + step;
      there +=
          format("{}{} {}L{} {}", k ? "L" : "M", at(left), at(y_of(layer.to[k])), at(right), at(y_of(layer.to[k])));
      size_t b = count - 1 - k;
      left = double(b) * step;
      back += format("L{} {}L{} {}", at(left + step), at(y_of(layer.from[b])), at(left), at(y_of(layer.from[b])));
    }
    drawing += format("<path class=\"area {}\" d=\"{}{}Z\"/>", layer.name, there, back);
  }
  double x = (double(peak) + 0.5) * step;
  drawing += format("<line class=\"peak\" x1=\"{}\" x2=\"{}\" y1=\"14\" y2=\"{}\"/>", at(x), at(x), at(kMemory));
  for (size_t k = 0; k < count; ++k)
    drawing += format("<rect class=\"hit\" x=\"{}\" width=\"{}\" height=\"{}\"><title>{}</title></rect>",
                      at(double(k) * step), at(step), int(kMemory), xml_escape(living(report, k, below[k])));
  std::string names;
  for (auto& layer : layers) names += format("<span class=\"key area {}\">{}</span>", layer.name, layer.name);
  return format(
      "<figure><figcaption><span>Memory over kernels, the caller's tensors not counted: the peak is {} at kernel {}, "
      "<code>{}</code></span>{}</figcaption>"
      "<svg class=\"memory\" viewBox=\"0 0 {} {}\" preserveAspectRatio=\"none\" role=\"img\" "
      "aria-label=\"memory over kernels\">{}</svg></figure>\n",
      bytes_text(most), peak, xml_escape(report.kernels[peak].name), names, int(kWidth), int(kMemory), drawing);
}

}  // namespace

std::string where_html(const std::string& where) {
  return where.empty() ? "" : "<code class=\"where\">" + xml_escape(where) + "</code>";
}

std::string folded(const std::string& summary, const std::string& content, const std::string& attributes) {
  return format("<details{}{}><summary>{}</summary>{}</details>\n", attributes.empty() ? "" : " ", attributes, summary,
                content);
}

// What tuning chose a kernel from.
std::string tried_html(const KernelReport& kernel) {
  std::string out;
  for (auto& way : kernel.tried) {
    std::string name = xml_escape(way.name);
    out += (out.empty() ? "" : "<br>") + (kernel.is_chosen(way) ? "<b>" + name + "</b>" : name) + ": " +
           (std::isfinite(way.seconds) ? seconds_text(way.seconds) : "cannot run");
    if (way.program_seconds > 0) out += ", the program with it " + seconds_text(way.program_seconds);
  }
  return out;
}

// Once on a page; where it is needed again, a link.
std::string PlanHtml::code_of(const KernelStages& text) {
  auto [place, fresh] = shown_.try_emplace({text.code, text.loops}, int(shown_.size()));
  std::string name = "<code>" + xml_escape(text.name) + "</code>";
  if (!fresh)
    return format("<p>code: <a href=\"#code{}\">{}</a>, shown with an earlier kernel</p>\n", place->second, name);
  std::string out = format("<div id=\"code{}\">", place->second);
  if (!text.loops.empty()) out += folded("loops " + name, "<pre>" + xml_escape(text.loops) + "</pre>");
  if (!text.schedule.empty()) out += "<p>schedule: <code>" + xml_escape(text.schedule) + "</code></p>";
  return out + folded("code " + name, "<pre>" + xml_escape(text.code) + "</pre>") + "</div>\n";
}

std::string PlanHtml::kernel_rows(const PlanReport& report) {
  auto groups = groups_of(report);
  double longest = groups.empty() ? 0 : groups[0].floor, all = report.floor_seconds();
  std::string rows;
  for (auto& group : groups) {
    auto& kernel = *group.kernel;
    std::string times = group.runs.size() > 1 ? format(" <b class=\"times\">×{}</b>", group.runs.size()) : "";
    std::string ops = xml_escape(joined(kernel.ops)), by = xml_escape(kernel.by);
    std::string summary = format(
        "<span class=\"name\"><code>{}</code>{}</span><span><b class=\"by {}\">{}</b></span>"
        "<span class=\"where\">{}</span><span class=\"n\">{}</span><span class=\"n\">{}</span>"
        "<span class=\"n\">{}</span>"
        "<span class=\"bar\" title=\"{}% of the floor\"><i class=\"by {}\" style=\"width:{}%\"></i></span>",
        xml_escape(kernel.name), times, by, by, xml_escape(kernel.where), bytes_text(double(group.cost.read)),
        bytes_text(double(group.cost.written)), seconds_text(group.floor),
        fixed(all > 0 ? 100 * group.floor / all : 0, 1), by, fixed(longest > 0 ? 100 * group.floor / longest : 0, 1));
    std::string about = "<dl class=\"about\"><dt>ops</dt><dd><code>" + ops + "</code></dd><dt>reads</dt><dd><code>" +
                        xml_escape(joined(kernel.operands)) + "</code></dd><dt>gives</dt><dd><code>" +
                        xml_escape(joined(kernel.results)) + "</code></dd>";
    if (!kernel.where.empty()) about += "<dt>lines</dt><dd>" + where_html(kernel.where) + "</dd>";
    if (!kernel.tried.empty()) about += "<dt>candidates</dt><dd>" + tried_html(kernel) + "</dd>";
    about += format("<dt>runs as kernel</dt><dd>{}</dd>", runs_text(group.runs));
    about += format("<dt>one run</dt><dd>{} read, {} written, {}floor {}</dd>", bytes_text(double(kernel.cost.read)),
                    bytes_text(double(kernel.cost.written)),
                    kernel.cost.flops > 0 ? mflop_text(kernel.cost.flops) + " MFLOP, " : "",
                    seconds_text(report.floor_seconds(kernel)));
    about += "</dl>";
    for (int text : kernel.texts) about += code_of(report.texts[size_t(text)]);
    if (kernel.texts.empty())
      about += kernel.by == "loops"
                   ? format("<p>the kernel that the op has by itself: <code>sinter show {}</code> prints one</p>",
                            xml_escape(kernel.name))
                   : "<p>no generated code: a kernel that is built in, or a library</p>";
    rows += folded(summary, about,
                   format("class=\"kernel\" data-order=\"{}\" data-bytes=\"{}\" data-floor=\"{}\"", group.runs[0],
                          group.cost.bytes(), group.floor * 1e9));
  }
  return format(
      "<div class=\"kernels\" id=\"kernels{}\"><div class=\"tools\" hidden=\"\"><label>Filter "
      "<input type=\"search\" placeholder=\"name, op, line\" /></label><span>Sort by "
      "<button data-by=\"floor\">floor</button> <button data-by=\"bytes\">bytes</button> "
      "<button data-by=\"order\">order</button></span><output></output></div>"
      "<div class=\"scroll\"><div class=\"head\" aria-hidden=\"true\"><span>kernel</span><span>by</span>"
      "<span>lines</span><span class=\"n\">read</span><span class=\"n\">written</span><span class=\"n\">floor</span>"
      "<span>share</span></div>\n{}</div></div>\n",
      plans_, rows);
}

std::string PlanHtml::write(const Source& source) {
  std::string out = format("<section class=\"plan\" id=\"plan{}\"><h4>{}</h4>\n", plans_, xml_escape(source.title));
  auto lines = [](const std::string& text) { return std::ranges::count(text, '\n'); };
  std::string before =
      source.captured.empty() ? "<p>not traced: the program comes from the store</p>" : graph_html(source.captured);
  if (auto* report = source.report) {
    out += figures(*report) + order_strip(*report) + kernel_rows(*report) + memory_chart(*report);
    out += folded(
        format("graph as captured, {} lines, and after the passes, {}", lines(source.captured), lines(report->graph)),
        "<div class=\"sides\"><div><h5>as captured</h5>" + before + "</div><div><h5>after the passes</h5>" +
            graph_html(report->graph) + "</div></div>");
  } else {
    out += "<p>No kernels are planned: another backend runs it, or no call has told its sizes yet.</p>";
    out += folded("graph as captured", before) + folded("how it runs", "<pre>" + xml_escape(source.plan) + "</pre>");
  }
  ++plans_;
  return out + "</section>\n";
}

}  // namespace sinter::capture
