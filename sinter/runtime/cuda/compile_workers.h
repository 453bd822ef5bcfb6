#pragma once
// NVRTC's front end reads one program at a time in a process, however many threads ask. So where several are wanted at once,
// one is compiled here and the others in worker processes (compile_worker/).
#include <cstdint>

#include "sinter/runtime/cuda/nvrtc_library.h"

namespace sinter::runtime {

// As library.compile(), by this process or a worker of its own. Waits where all are busy. SINTER_CUDA_WORKERS says how many
// workers there may be (0: none); by default one less than the pool has threads, 15 at most. Where they cannot be started,
// this process compiles everything.
NvrtcOutcome compile_on_any(const NvrtcLibrary& library, const std::string& text, const std::string& architecture);

// Programs that workers compiled so far.
int64_t compiled_by_workers();

}  // namespace sinter::runtime
