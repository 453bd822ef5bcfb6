#pragma once
// What became of a compiled function, for people: programs, guards, breaks with their cause and a remedy.
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

namespace sinter {

struct PlanReport;

struct Explanation {
  struct Break {
    std::string what, where, advice;
  };
  struct Guard {
    std::string text, where;
  };
  struct Program {
    std::vector<std::string> graphs;  // one a segment, with the user's lines
    std::vector<std::string> plans;   // how each is executed
    // The kernels of each graph and of its backward, their bytes and floors (engine/report.h); null where nothing is
    // planned: another backend's, or one whose sizes no call has told yet.
    std::vector<std::shared_ptr<const PlanReport>> reports, backward_reports;
    std::vector<Guard> guards;
    std::vector<Break> breaks;
    int ops = 0;
    std::string note;                 // "called every time, because …"; empty in the plain case
  };

  std::string name;
  std::vector<Program> programs;  // one for each set of guards

  int graph_count() const;
  int break_count() const;
  int op_count() const;
  std::string text() const;
  // The fusion report alone: for each graph its kernels with their ops, template, bytes and floor time, and its memory.
  std::string fusion() const;
  // All of it for machines: an object {name, programs: [{ops, note, guards, breaks, graphs: [{text, report, backward}]}]}.
  std::string json() const;
};

std::ostream& operator<<(std::ostream& out, const Explanation& explanation);

namespace capture {

class Function;
Explanation explain(const Function& function);
// What to do about a break.
std::string advice_for(const struct Question& question);

}  // namespace capture

}  // namespace sinter
