#include "sinter/capture/explain.h"

#include <ostream>

#include "sinter/capture/function.h"

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

Explanation explain(const Function& function) {
  Explanation out;
  out.name = function.name();
  for (auto& entry : function.entries()) {
    auto& program = out.programs.emplace_back();
    std::shared_lock lock(entry->tree);
    for (auto& segment : entry->segments) {
      program.graphs.push_back(segment->text);
      program.plans.push_back(segment->run ? segment->run->text() : "nothing to run");
      program.ops += segment->ops;
      auto& question = segment->question;
      if (question.kind != Question::Kind::kReturn)
        program.breaks.push_back({question.what, question.where, advice_for(question)});
    }
    for (auto& guard : entry->guards.list()) program.guards.push_back({guard.text, guard.where});
    if (!entry->eager_reason.empty()) program.note = "runs eagerly: " + entry->eager_reason;
    if (entry->follow)
      program.note = format("the function is called every time, because of {} at {}", entry->follow_reason.what,
                            entry->follow_reason.where);
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
      std::string line = "    ";
      for (char c : program.graphs[g]) {
        line += c;
        if (c != '\n') continue;
        out += line;
        line = "    ";
      }
      if (line != "    ") out += line + "\n";
    }
  }
  return out;
}

std::ostream& operator<<(std::ostream& out, const Explanation& explanation) { return out << explanation.text(); }

}  // namespace sinter
