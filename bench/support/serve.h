#pragma once
// How scripts that compare with peers ask a bench: a line `NAME SECONDS` on standard input, answered by a line of JSON.
#include <functional>
#include <string>

#include "bench/support/report.h"

namespace sinter::bench {

// Until the input ends. `answer` is given the name and how long a round takes at least, in seconds; what it throws is told
// as `failed`.
int serve(const std::function<Json(const std::string& name, double least)>& answer);

// The same where a name stands for a case that takes a while to make: the last one is kept, and freed before another is made.
template <class Make, class Answer>
int serve_cases(const Make& make, const Answer& answer) {
  std::string name;
  decltype(make(name)) current;
  return serve([&](const std::string& wanted, double least) {
    if (wanted != name) {
      name.clear();
      current = {};
      current = make(wanted);
      name = wanted;
    }
    return answer(name, current, least);
  });
}

}  // namespace sinter::bench
