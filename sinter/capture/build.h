#pragma once
// From a recorded segment to one that runs: gradients, passes, executables.
#include "sinter/base/background.h"
#include "sinter/capture/options.h"
#include "sinter/capture/recorder.h"

namespace sinter::capture {

// Consumes the draft. `label` names the function and the segment in logs and in the files of SINTER_DEBUG. With `tasks`
// the executables run op by op until they have been compiled in the background; `op_by_op`: for good, and nothing is
// compiled.
std::shared_ptr<Segment> build(Recorder& recorder, Draft& draft, const SizeTable& sizes, const CompileOptions& options,
                               const std::string& label, const std::shared_ptr<BackgroundTasks>& tasks,
                               bool op_by_op = false);

// The executable of a segment without gradients whose graph is in the store; null when it no longer is.
std::shared_ptr<Executable> load_executable(const Segment& segment, const SizeTable& sizes, const CompileOptions& options,
                                            const std::string& label);

}  // namespace sinter::capture
