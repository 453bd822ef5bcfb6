#pragma once
// The part of an explanation's page that tells of one graph: kernels, memory, its text before and after the passes.
#include <map>
#include <string>
#include <utility>

#include "sinter/engine/report.h"

namespace sinter::capture {

class PlanHtml {
 public:
  struct Source {
    std::string title;  // "graph 0", "graph 0, backward"
    const std::string& captured;
    const std::string& plan;   // how it is executed, where there is no report
    const PlanReport* report;  // null: nothing is planned
  };
  std::string write(const Source& source);

 private:
  std::string kernel_rows(const PlanReport& report);
  std::string code_of(const KernelStages& text);

  std::map<std::pair<std::string, std::string>, int> shown_;  // code and loops that the page has already
  int plans_ = 0;
};

// A source line at the end of a row; nothing where there is none.
std::string where_html(const std::string& where);
// A folded part with its heading; `attributes` as "open=\"\"".
std::string folded(const std::string& summary, const std::string& content, const std::string& attributes = {});

}  // namespace sinter::capture
