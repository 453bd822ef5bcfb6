#pragma once
// How scripts that compare with peers ask a bench: a line `NAME SECONDS` on standard input, answered by a line of JSON.
#include <functional>
#include <string>

#include "bench/support/report.h"

namespace sinter::bench {

// Until the input ends. `answer` is given the name and how long a round takes at least, in seconds; what it throws is told
// as `failed`.
int serve(const std::function<Json(const std::string& name, double least)>& answer);

}  // namespace sinter::bench
