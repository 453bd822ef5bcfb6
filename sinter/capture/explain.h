#pragma once
// What became of a compiled function, for people: programs, guards, breaks with their cause and a remedy.
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "sinter/base/stage_times.h"

namespace sinter {

struct PlanReport;

struct Explanation {
  struct Break {
    std::string what, where, advice;
  };
  struct Guard {
    std::string text, where;
  };
  // A time at which the function was captured, or would have been.
  struct Capture {
    std::string kind = {};  // "first"; "recompile"; "branch": a program has grown; "limit": nothing was captured
    std::string why = {}, where = {};  // in words, and the line that it is about, if there is one
    std::vector<Guard> failed = {};    // of a recompile: by program there was, the first of its guards that did not hold
    int program = -1;                  // the one made or grown; -1: it is gone
    double start = 0, seconds = 0;     // start: since the first capture of the process began
    StageTimes stages = {};            // of the whole process meanwhile; threads add up
  };
  struct Program {
    std::vector<std::string> graphs;           // one a segment, as captured, with the user's lines
    std::vector<std::string> backward_graphs;  // of its gradients, before the passes; empty where it has none
    std::vector<std::string> plans;            // how each is executed
    // The kernels of each graph and of its backward, their bytes and floors (engine/report.h); null where nothing is
    // planned: another backend's, or one whose sizes no call has told yet.
    std::vector<std::shared_ptr<const PlanReport>> reports, backward_reports;
    std::vector<Guard> guards;
    std::vector<Break> breaks;
    int ops = 0;
    std::string note;                 // "called every time, because …"; empty in the plain case
  };

  std::string name;
  std::vector<Capture> captures;  // in the order of time
  std::vector<Program> programs;  // one for each set of guards

  int recompile_count() const;
  int graph_count() const;
  int break_count() const;
  int op_count() const;
  std::string text() const;
  // The fusion report alone: for each graph its kernels with their ops, template, bytes and floor time, and its memory.
  std::string fusion() const;
  // All of it for machines: an object {name, captures: [{kind, why, where, failed, program, start_seconds, seconds,
  // stages}], programs: [{ops, note, guards, breaks, graphs: [{text, report, backward_text, backward}]}]}.
  std::string json() const;
  // All of it to look at: one page that needs nothing else, neither a network nor scripts to be read.
  std::string html() const;
};

std::ostream& operator<<(std::ostream& out, const Explanation& explanation);

namespace capture {

class Function;
Explanation explain(const Function& function);
// What to do about a break.
std::string advice_for(const struct Question& question);

}  // namespace capture

}  // namespace sinter
