#include "sinter/capture/compiler.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>

#include "sinter/base/table.h"
#include "sinter/capture/activations.h"
#include "sinter/capture/captures.h"
#include "sinter/capture/entry.h"
#include "sinter/capture/explain_html.h"
#include "sinter/capture/function.h"
#include "sinter/engine/report.h"

namespace sinter {

namespace capture {

std::string advice_for(const Question& question) {
  switch (question.kind) {
    case Question::Kind::kTruth:
      return "Choose with where(), or with cond(), which stays inside the graph";
    case Question::Kind::kNumber:
      return question.output < 0 ? "Keep the size a Dim (write `auto`, not `int64_t`)"
                                 : "Keep the number lazy: compare the Scalar of item() itself, or feed it back into ops";
    case Question::Kind::kSize:
      return "Use a form of fixed size: where(), a masked sum, a one-hot product";
    case Question::Kind::kMemory:
      return "Move what reads memory out of the function, or into one kept out with compiler::disable()";
    default:
      return "";
  }
}

namespace {

std::string note_of(const CacheEntry& entry) {
  std::vector<std::string> notes;
  if (entry.is_stored) notes.push_back("found in the store, not traced");
  if (!entry.eager_reason.empty()) notes.push_back("runs eagerly: " + entry.eager_reason);
  if (entry.follow)
    notes.push_back(format("the function is called every time, because of {} at {}", entry.follow_reason.what,
                           entry.follow_reason.where));
  std::set<std::string> lines;
  for (auto& segment : entry.segments)
    for (auto& number : segment->host_numbers) lines.insert(number.where);
  for (auto& line : lines) notes.push_back("the host's number at " + line + " changes and is a value of the graph");
  if (entry.crowded.kind != Question::Kind::kReturn)
    notes.push_back(format("what follows {} at {} has had too many forms (recompile_limit): others run op by op",
                           entry.crowded.what, entry.crowded.where));
  std::string text;
  for (auto& note : notes) text += (text.empty() ? "" : "; ") + note;
  return text;
}

Explanation::Capture capture_of(const CaptureRecord& record, const std::vector<std::shared_ptr<CacheEntry>>& entries) {
  using Kind = CaptureRecord::Kind;
  Explanation::Capture out{.start = record.start, .seconds = record.seconds, .stages = record.stages};
  auto entry = record.entry.lock();
  for (size_t i = 0; i < entries.size(); ++i)
    if (entries[i] == entry) out.program = int(i);
  for (auto& guard : record.failed) out.failed.push_back({guard.text, guard.where});
  switch (record.kind) {
    case Kind::kFirst:
      out.kind = "first";
      out.why = entry && entry->is_stored ? "the first call; found in the store" : "the first call";
      break;
    case Kind::kAgain:
      out.kind = "recompile";
      out.why = "no program fits the call";
      break;
    case Kind::kBranch:
      out.kind = "branch";
      out.why = entry && entry->follow
                    ? format("a piece that was not seen before; the function is called every time because of {}",
                             entry->follow_reason.what)
                    : format("{} had an answer that was not seen before", record.asked.what);
      out.where = record.asked.where;
      break;
    case Kind::kLimit:
      out.kind = "limit";
      out.why = "no program fits, and there are as many as recompile_limit allows: such calls run eagerly";
      break;
  }
  return out;
}

}  // namespace

Explanation explain(const Function& function) {
  Explanation out;
  out.name = function.name();
  auto entries = function.entries();
  for (auto& record : function.captures().list()) out.captures.push_back(capture_of(record, entries));
  for (auto& entry : entries) {
    auto& program = out.programs.emplace_back();
    std::shared_lock lock(entry->tree);
    for (auto& segment : entry->segments) {
      program.graphs.push_back(segment->text);
      program.plans.push_back(segment->run ? segment->run->text() : "nothing to run");
      program.reports.push_back(segment->run ? segment->run->report() : nullptr);
      auto backward = segment->backward ? segment->backward->run : nullptr;
      program.backward_graphs.push_back(segment->backward ? segment->backward->text : "");
      program.backward_reports.push_back(backward ? backward->report() : nullptr);
      program.activations.push_back(activations_of(*segment));
      program.ops += segment->ops;
      auto& question = segment->question;
      if (question.kind != Question::Kind::kReturn)
        program.breaks.push_back({question.what, question.where, advice_for(question)});
    }
    for (auto& guard : entry->guards.list()) program.guards.push_back({guard.text, guard.where});
    program.note = note_of(*entry);
  }
  return out;
}

}  // namespace capture

int Explanation::recompile_count() const { return int(std::ranges::count(captures, "recompile", &Capture::kind)); }

int Explanation::graph_count() const {
  int count = 0;
  for (auto& program : programs) count += int(program.graphs.size());
  return count;
}

int Explanation::break_count() const {
  int count = 0;
  for (auto& program : programs) count += int(program.breaks.size());
  return count;
}

int Explanation::op_count() const {
  int count = 0;
  for (auto& program : programs) count += program.ops;
  return count;
}

namespace {

// Each line behind so many spaces.
std::string indented(const std::string& text, size_t spaces) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    out += std::string(spaces, ' ') + text.substr(at, end - at) + "\n";
    at = end + 1;
  }
  return out;
}

nlohmann::json activations_json(const std::vector<Explanation::Activations>& points) {
  nlohmann::json out = nlohmann::json::array();
  for (auto& point : points) out.push_back({{"share", point.share}, {"bytes", point.bytes}, {"seconds", point.seconds}});
  return out;
}

nlohmann::json stages_json(const StageTimes& times) {
  nlohmann::json out = {{"kernels", times.kernels}};
  for (auto& [name, seconds] : times.list()) out[name] = seconds;
  return out;
}

// One line: what more and less of the activation memory would come to.
std::string activations_text(const std::vector<Explanation::Activations>& points) {
  std::string out;
  for (auto& point : points) {
    out += out.empty() ? "kept for gradients, by activation_memory: " : ", ";
    out += format("{}: {}", fixed(point.share, 2), bytes_text(double(point.bytes)));
    if (point.seconds > 0) out += " and " + seconds_text(point.seconds) + " more";
  }
  return out.empty() ? out : out + "\n";
}

// The kernels of one graph and of its backward, and what is kept for that.
std::string fusion_of(const Explanation::Program& program, size_t graph) {
  std::string out;
  if (auto& report = program.reports[graph]) out += report->text();
  if (auto& report = program.backward_reports[graph]) out += "backward:\n" + report->text();
  return out + activations_text(program.activations[graph]);
}

}  // namespace

std::string Explanation::fusion() const {
  std::string out;
  for (size_t i = 0; i < programs.size(); ++i)
    for (size_t g = 0; g < programs[i].graphs.size(); ++g)
      out += format("{}, program {}, graph {}:\n", name, i, g) + indented(fusion_of(programs[i], g), 2);
  return out;
}

std::string Explanation::html() const { return capture::explanation_page({this, 1}); }

std::string Explanation::json() const {
  using nlohmann::json;
  auto report = [](const std::shared_ptr<const PlanReport>& r) { return r ? json::parse(r->json()) : json(); };
  auto guard_list = [](const std::vector<Guard>& guards) {
    json out = json::array();
    for (auto& guard : guards) out.push_back({{"text", guard.text}, {"where", guard.where}});
    return out;
  };
  json list = json::array(), times = json::array();
  for (auto& c : captures)
    times.push_back({{"kind", c.kind},
                     {"why", c.why},
                     {"where", c.where},
                     {"failed", guard_list(c.failed)},
                     {"program", c.program},
                     {"start_seconds", c.start},
                     {"seconds", c.seconds},
                     {"stages", stages_json(c.stages)}});
  for (auto& program : programs) {
    json breaks = json::array(), graphs = json::array();
    for (auto& b : program.breaks) breaks.push_back({{"what", b.what}, {"where", b.where}, {"advice", b.advice}});
    for (size_t g = 0; g < program.graphs.size(); ++g)
      graphs.push_back({{"text", program.graphs[g]},
                        {"report", report(program.reports[g])},
                        {"activations", activations_json(program.activations[g])},
                        {"backward_text", program.backward_graphs[g]},
                        {"backward", report(program.backward_reports[g])}});
    list.push_back({{"ops", program.ops},
                    {"note", program.note},
                    {"guards", guard_list(program.guards)},
                    {"breaks", breaks},
                    {"graphs", graphs}});
  }
  return json{{"name", name}, {"captures", times}, {"programs", list}}.dump();
}

std::string Explanation::text() const {
  std::string out = format("{}: {} program(s), {} graph(s), {} break(s), {} ops\n", name, programs.size(), graph_count(),
                           break_count(), op_count());
  for (auto& c : captures) {
    if (c.kind == "first") continue;
    out +=
        format("{} after {} s: {}{}\n", c.kind, fixed(c.start, 3), c.why, c.where.empty() ? "" : " (" + c.where + ")");
    for (size_t i = 0; i < c.failed.size(); ++i) out += format("  program {}: {}\n", i, c.failed[i].text);
  }
  for (size_t i = 0; i < programs.size(); ++i) {
    auto& program = programs[i];
    out += format("\nprogram {}\n", i);
    if (!program.note.empty()) out += "  " + program.note + "\n";
    out += "  guards:\n";
    for (auto& guard : program.guards)
      out += "    " + guard.text + (guard.where.empty() ? "" : "  (" + guard.where + ")") + "\n";
    for (auto& b : program.breaks) out += format("  break: {} at {}\n    {}\n", b.what, b.where, b.advice);
    for (size_t g = 0; g < program.graphs.size(); ++g) {
      out += format("  graph {}:\n", g);
      out += indented(program.graphs[g], 4);
      if (auto kernels = fusion_of(program, g); !kernels.empty()) out += "    becomes\n" + indented(kernels, 4);
    }
  }
  return out;
}

std::ostream& operator<<(std::ostream& out, const Explanation& explanation) { return out << explanation.text(); }

}  // namespace sinter
