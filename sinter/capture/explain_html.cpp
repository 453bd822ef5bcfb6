#include "sinter/capture/explain_html.h"

#include <algorithm>
#include <set>

#include "sinter/base/debug_files.h"
#include "sinter/base/error.h"
#include "sinter/base/log.h"
#include "sinter/base/table.h"
#include "sinter/base/xml.h"
#include "sinter/capture/activations_html.h"
#include "sinter/capture/plan_html.h"
#include "sinter_embedded.h"

namespace sinter::capture {

namespace {

constexpr double kWidth = 1000;       // of the timeline, in its own units
constexpr double kIdleShare = 0.015;  // what a stretch without captures takes of it, however long it was
constexpr size_t kGuardsShown = 8;    // more are folded

// A program's numbers, its backward included.
struct Totals {
  size_t kernels = 0;
  std::set<std::string> codes;
  int64_t bytes = 0, arena = 0;
  double floor = 0;

  void add(const PlanReport& report) {
    kernels += report.kernels.size();
    for (auto& text : report.texts) codes.insert(text.code);
    bytes += report.total().bytes();
    arena = std::max(arena, report.arena_bytes);
    floor += report.floor_seconds();
  }
  void add(const Explanation::Program& program) {
    for (auto* reports : {&program.reports, &program.backward_reports})
      for (auto& report : *reports)
        if (report) add(*report);
  }
};

std::string counted(size_t count, const char* one) { return format("{} {}{}", count, one, count == 1 ? "" : "s"); }

std::string cell(const std::string& value) { return "<td class=\"n\">" + xml_escape(value) + "</td>"; }

std::string anchor(size_t function, size_t program) { return format("f{}p{}", function, program); }

class Page {
 public:
  explicit Page(std::span<const Explanation> explanations) : all_(explanations) {}

  std::string write() {
    std::string names;
    for (auto& e : all_) names += (names.empty() ? "" : ", ") + e.name;
    std::string style(embedded::explain_style, embedded::explain_style_size),
        script(embedded::explain_script, embedded::explain_script_size);
    std::string out =
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\" />"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\" />"
        "<meta name=\"color-scheme\" content=\"light dark\" />"
        "<title>Sinter: " +
        xml_escape(names) + "</title>\n<style>" + style + "</style></head>\n<body>\n";
    out += header(names) + "<main>\n" + overview() + timeline();
    for (size_t f = 0; f < all_.size(); ++f) out += function(f);
    return out + "</main>\n<script>" + script + "</script>\n</body></html>\n";
  }

 private:
  // --- what stays in view
  std::string header(const std::string& names) const {
    Totals totals;
    size_t programs = 0, graphs = 0, breaks = 0, recompiles = 0;
    double compiling = 0;
    for (auto& e : all_) {
      programs += e.programs.size();
      graphs += size_t(e.graph_count());
      breaks += size_t(e.break_count());
      recompiles += size_t(e.recompile_count());
      for (auto& program : e.programs) totals.add(program);
      for (auto& capture : e.captures) compiling += capture.seconds;
    }
    auto chip = [](const std::string& text, const char* link, bool warns = false) {
      return format("<a href=\"#{}\"{}>{}</a>", link, warns ? " class=\"warns\"" : "", xml_escape(text));
    };
    std::string out = "<header><h1>" + xml_escape(names) + "</h1><nav>";
    out += chip(counted(all_.size(), "function"), "overview") + chip(counted(programs, "program"), "overview") +
           chip(counted(graphs, "graph"), "overview") +
           chip(counted(breaks, "break"), breaks ? "break0" : "overview", breaks > 0) +
           chip(counted(recompiles, "recompile"), "captures", recompiles > 0) +
           chip(format("{}, {} generated", counted(totals.kernels, "kernel"), totals.codes.size()), "plan0") +
           chip(bytes_text(double(totals.bytes)) + " moved", "overview") +
           chip("floor " + seconds_text(totals.floor), "overview") +
           chip("captured in " + seconds_text(compiling), "captures");
    return out + "</nav></header>\n";
  }

  std::string overview() const {
    std::string rows;
    for (size_t f = 0; f < all_.size(); ++f)
      for (size_t p = 0; p < all_[f].programs.size(); ++p) {
        auto& program = all_[f].programs[p];
        Totals totals;
        totals.add(program);
        double seconds = 0;
        for (auto& capture : all_[f].captures)
          if (capture.program == int(p)) seconds += capture.seconds;
        rows += format("<tr><td><a href=\"#{}\">{}, program {}</a></td>", anchor(f, p), xml_escape(all_[f].name), p);
        rows += cell(std::to_string(program.guards.size())) + cell(std::to_string(program.graphs.size())) +
                cell(std::to_string(program.breaks.size())) + cell(std::to_string(program.ops)) +
                cell(std::to_string(totals.kernels)) + cell(std::to_string(totals.codes.size())) +
                cell(bytes_text(double(totals.bytes))) + cell(seconds_text(totals.floor)) +
                cell(bytes_text(double(totals.arena))) + cell(seconds_text(seconds)) + "</tr>\n";
      }
    std::string head = "<th>program</th>";
    for (auto* name :
         {"guards", "graphs", "breaks", "ops", "kernels", "generated", "moved", "floor", "arena", "captured in"})
      head += format("<th class=\"n\">{}</th>", name);
    return "<section id=\"overview\"><h2>Overview</h2><div class=\"scroll\"><table><thead><tr>" + head +
           "</tr></thead><tbody>\n" + rows +
           "</tbody></table></div><p class=\"quiet\">A kernel is one launch; of those generated, equal ones count "
           "once. The floor is the least time for the bytes and operations at this machine's measured ceilings, the "
           "backward included.</p></section>\n";
  }

  // --- captures over time
  struct Moment {
    size_t function;
    const Explanation::Capture* capture;
  };

  // Where a second lies: stretches in which nothing was captured are cut short.
  class Axis {
   public:
    explicit Axis(const std::vector<Moment>& moments) {
      for (auto& moment : moments) {
        double begin = moment.capture->start, end = begin + moment.capture->seconds;
        if (!busy_.empty() && begin <= busy_.back().second)
          busy_.back().second = std::max(busy_.back().second, end);
        else
          busy_.push_back({begin, end});
      }
      double all = 0;
      for (auto& [begin, end] : busy_) all += end - begin;
      double room = kWidth * std::max(0.5, 1 - kIdleShare * double(busy_.size() - 1));
      idle_ = busy_.size() > 1 ? (kWidth - room) / double(busy_.size() - 1) : 0;
      scale_ = all > 0 ? room / all : 0;
    }
    double operator()(double second) const {
      double x = 0;
      for (auto& [begin, end] : busy_) {
        if (second <= end) return x + std::max(0.0, second - begin) * scale_;
        x += (end - begin) * scale_ + idle_;
      }
      return x;
    }

   private:
    std::vector<std::pair<double, double>> busy_;
    double idle_ = 0, scale_ = 0;
  };

  // A capture's stretch of the timeline, cut into its stages. What is left of it is kernels that ran meanwhile.
  static std::string bar(const Explanation::Capture& capture, const Axis& axis) {
    double left = axis(capture.start), width = std::max(2.0, axis(capture.start + capture.seconds) - left);
    left = std::min(left, kWidth - width);
    double whole = std::max(capture.seconds, capture.stages.total());
    std::string out = format(
        "<svg class=\"time\" viewBox=\"0 0 {} 18\" preserveAspectRatio=\"none\" role=\"img\" "
        "aria-label=\"{}\"><rect class=\"track\" width=\"{}\" height=\"18\"/>",
        int(kWidth), xml_escape(capture.stages.text()), int(kWidth));
    auto piece = [&](const char* name, double seconds) {
      if (!(seconds > 0) || !(whole > 0)) return;
      double part = width * seconds / whole;
      out += format("<rect class=\"stage {}\" x=\"{}\" width=\"{}\" height=\"18\"><title>{} {}</title></rect>", name,
                    fixed(left, 2), fixed(part, 2), name, seconds_text(seconds));
      left += part;
    };
    for (auto& [name, seconds] : capture.stages.list()) piece(name, seconds);
    piece("run", capture.seconds - capture.stages.total());
    return out + "</svg>";
  }

  std::string timeline() const {
    std::vector<Moment> moments;
    for (size_t f = 0; f < all_.size(); ++f)
      for (auto& capture : all_[f].captures) moments.push_back({f, &capture});
    std::stable_sort(moments.begin(), moments.end(),
                     [](auto& a, auto& b) { return a.capture->start < b.capture->start; });
    if (moments.empty())
      return "<section id=\"captures\"><h2>Captures</h2><p>Nothing was captured yet.</p></section>\n";
    Axis axis(moments);
    std::string rows, legend;
    for (auto& [f, capture] : moments) {
      std::string what = xml_escape(all_[f].name);
      if (capture->program >= 0)
        what =
            format("<a href=\"#{}\">{}, program {}</a>", anchor(f, size_t(capture->program)), what, capture->program);
      rows += format(
          "<tr><td class=\"n\">{} s</td><td><b class=\"tag {}\">{}</b></td><td>{}</td><td class=\"wide\">{}</td>"
          "<td class=\"n\">{}</td><td class=\"n\">{}</td></tr>\n",
          fixed(capture->start, 3), capture->kind, capture->kind, what, bar(*capture, axis),
          seconds_text(capture->seconds), capture->stages.kernels);
      rows +=
          "<tr class=\"why\"><td></td><td colspan=\"5\">" + xml_escape(capture->why) + " " + where_html(capture->where);
      if (!capture->failed.empty()) rows += failed_list(capture->failed);
      rows += "</td></tr>\n";
    }
    for (auto& [name, seconds] : stages_of(moments))
      legend += format("<span class=\"key stage {}\">{} {}</span> ", name, name, seconds_text(seconds));
    bool again = std::ranges::any_of(moments, [](auto& moment) { return !moment.capture->failed.empty(); });
    return "<section id=\"captures\"><h2>Captures</h2><div class=\"scroll\"><table class=\"timeline\"><thead><tr>"
           "<th class=\"n\">at</th><th></th><th>function</th><th class=\"wide\">stages over time</th>"
           "<th class=\"n\">took</th><th class=\"n\">generated</th></tr></thead><tbody>\n" +
           rows + "</tbody></table></div><p class=\"legend\">" + legend + "</p>" +
           (again ? "<p>What varies need not be captured again: a size that is marked with <code>mark_dynamic()</code> "
                    "or passed as a <code>Dim</code>, a number that is passed as a <code>Scalar</code>.</p>"
                  : "") +
           "<p class=\"quiet\">Times count from the first capture of the process. Stages are those of all its threads "
           "meanwhile; where these add up to more than the time that passed, a bar shows their shares.</p></section>\n";
  }

  static std::string failed_list(const std::vector<Explanation::Guard>& failed) {
    std::string out;
    for (size_t i = 0; i < failed.size(); ++i)
      out +=
          format("<li>program {}: <code>{}</code> {}</li>", i, xml_escape(failed[i].text), where_html(failed[i].where));
    return "<ul>" + out + "</ul>";
  }

  // Summed over all captures; the last is the kernels that ran meanwhile.
  static std::vector<std::pair<const char*, double>> stages_of(const std::vector<Moment>& moments) {
    std::vector<std::pair<const char*, double>> out = StageTimes().list();
    double running = 0;
    for (auto& [f, capture] : moments) {
      auto list = capture->stages.list();
      for (size_t i = 0; i < list.size(); ++i) out[i].second += list[i].second;
      running += std::max(0.0, capture->seconds - capture->stages.total());
    }
    out.push_back({"run", running});
    std::erase_if(out, [](auto& stage) { return !(stage.second > 0); });
    return out;
  }

  // --- functions and their programs
  std::string function(size_t f) {
    auto& e = all_[f];
    std::string out = format("<section class=\"function\" id=\"f{}\"><h2>{}</h2>\n", f, xml_escape(e.name));
    for (size_t p = 0; p < e.programs.size(); ++p) out += program(f, p);
    return out + "</section>\n";
  }

  std::string program(size_t f, size_t p) {
    auto& program = all_[f].programs[p];
    std::string content;
    if (!program.note.empty()) content += "<p class=\"note\">" + xml_escape(program.note) + "</p>\n";
    content += breaks(program) + guards(program);
    for (size_t g = 0; g < program.graphs.size(); ++g) {
      std::string title = format("Graph {}", g);
      content += plans_.write({title, program.graphs[g], program.plans[g], program.reports[g].get()});
      if (auto* backward = program.backward_reports[g].get())
        content += plans_.write({title + ", backward", program.backward_graphs[g], program.plans[g], backward});
      content += activations_html(program.activations[g]);
    }
    std::string summary = format("<h3>Program {}</h3> <span class=\"quiet\">{}, {}, {}</span>", p,
                                 counted(program.graphs.size(), "graph"), counted(size_t(program.ops), "op"),
                                 counted(program.guards.size(), "guard"));
    return folded(summary, content, format("class=\"program\" id=\"{}\" open=\"\"", anchor(f, p)));
  }

  std::string breaks(const Explanation::Program& program) {
    if (program.breaks.empty()) return "<p class=\"quiet\">No breaks: the whole program is one graph.</p>\n";
    std::string rows;
    for (auto& b : program.breaks)
      rows += format("<tr id=\"break{}\"><td>{}</td><td>{}</td><td>{}</td></tr>\n", breaks_++, xml_escape(b.what),
                     where_html(b.where), xml_escape(b.advice));
    return "<h4>Breaks</h4><div class=\"scroll\"><table><thead><tr><th>what the host asks</th><th>at</th><th>what to "
           "do</th>"
           "</tr></thead><tbody>\n" +
           rows + "</tbody></table></div>\n";
  }

  static std::string guards(const Explanation::Program& program) {
    std::string rows;
    for (auto& guard : program.guards)
      rows += format("<tr><td><code>{}</code></td><td>{}</td></tr>\n", xml_escape(guard.text), where_html(guard.where));
    bool few = program.guards.size() <= kGuardsShown;
    return folded(
        counted(program.guards.size(), "guard"),
        "<div class=\"scroll\"><table><thead><tr><th>holds for every call it serves</th><th>because of</th></tr>"
        "</thead><tbody>\n" +
            rows + "</tbody></table></div>",
        few ? "class=\"guards\" open=\"\"" : "class=\"guards\"");
  }

  std::span<const Explanation> all_;
  PlanHtml plans_;
  int breaks_ = 0;
};

}  // namespace

std::string explanation_page(std::span<const Explanation> explanations) { return Page(explanations).write(); }

void write_debug_page(const Function& function) {
  if (!is_debugged()) return;
  try {
    Explanation told = explain(function);
    write_debug_file(told.name, "explain", told.html(), "html");
  } catch (const Error& error) {
    warn_once("debug page", "the page that explains a function was not written: {}", error.message());
  }
}

}  // namespace sinter::capture
