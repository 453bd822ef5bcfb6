#include "sinter/engine/kernel_stages.h"

#include "sinter/base/log.h"

namespace sinter {

namespace {

thread_local KernelList* listing = nullptr;

}  // namespace

bool kernels_are_noted() { return listing || log_enabled(LogTopic::kCode); }

void note_kernel(const KernelStages& kernel) {
  if (log_enabled(LogTopic::kCode)) log(LogTopic::kCode, "{}schedule: {}\n{}", kernel.loops, kernel.schedule, kernel.code);
  if (listing) listing->list_.push_back(kernel);
}

KernelList::KernelList() { listing = this; }
KernelList::~KernelList() { listing = nullptr; }

}  // namespace sinter
