#include "sinter/capture/explain.h"

#include <nlohmann/json.hpp>
#include <ostream>
#include <set>

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

std::string note_of(const Entry& entry) {
  std::vector<std::string> notes;
  if (entry.is_kept) notes.push_back("found in the store, not traced");
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

}  // namespace

Explanation explain(const Function& function) {
  Explanation out;
  out.name = function.name();
  for (auto& entry : function.entries()) {
    auto& program = out.programs.emplace_back();
    std::shared_lock lock(entry->tree);
    for (auto& segment : entry->segments) {
      program.graphs.push_back(segment->text);
      program.plans.push_back(segment->run ? segment->run->text() : "nothing to run");
      program.reports.push_back(segment->run ? segment->run->report() : nullptr);
      auto backward = segment->backward ? segment->backward->run : nullptr;
      program.backward_reports.push_back(backward ? backward->report() : nullptr);
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

// The kernels of one graph and of its backward.
std::string fusion_of(const Explanation::Program& program, size_t graph) {
  std::string out;
  if (auto& report = program.reports[graph]) out += report->text();
  if (auto& report = program.backward_reports[graph]) out += "backward:\n" + report->text();
  return out;
}

}  // namespace

std::string Explanation::fusion() const {
  std::string out;
  for (size_t i = 0; i < programs.size(); ++i)
    for (size_t g = 0; g < programs[i].graphs.size(); ++g)
      out += format("{}, program {}, graph {}:\n", name, i, g) + indented(fusion_of(programs[i], g), 2);
  return out;
}

std::string Explanation::json() const {
  using nlohmann::json;
  auto report = [](const std::shared_ptr<const PlanReport>& r) { return r ? json::parse(r->json()) : json(); };
  json list = json::array();
  for (auto& program : programs) {
    json guards = json::array(), breaks = json::array(), graphs = json::array();
    for (auto& guard : program.guards) guards.push_back({{"text", guard.text}, {"where", guard.where}});
    for (auto& b : program.breaks) breaks.push_back({{"what", b.what}, {"where", b.where}, {"advice", b.advice}});
    for (size_t g = 0; g < program.graphs.size(); ++g)
      graphs.push_back({{"text", program.graphs[g]},
                        {"report", report(program.reports[g])},
                        {"backward", report(program.backward_reports[g])}});
    list.push_back({{"ops", program.ops},
                    {"note", program.note},
                    {"guards", guards},
                    {"breaks", breaks},
                    {"graphs", graphs}});
  }
  return json{{"name", name}, {"programs", list}}.dump();
}

std::string Explanation::text() const {
  std::string out = format("{}: {} program(s), {} graph(s), {} break(s), {} ops\n", name, programs.size(), graph_count(),
                           break_count(), op_count());
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
