#pragma once
// An executable that is compiled while it runs already.
#include "sinter/base/background.h"
#include "sinter/engine/executable.h"

namespace sinter {

// Runs the program op by op as eager ops do. The first call has `compile` called in the background, and what a call of
// its kind needs made ready; calls for which all is there then run what was compiled, each either wholly or not at all.
// A call of another kind (other sizes) is served op by op until the background is done with it.
//
// Where compiling fails there is one warning, `tasks` have the exception, and calls run op by op for good.
std::shared_ptr<Executable> make_background(Program program, std::function<std::shared_ptr<Executable>()> compile,
                                            std::shared_ptr<BackgroundTasks> tasks);

}  // namespace sinter
