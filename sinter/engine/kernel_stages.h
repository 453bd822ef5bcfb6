#pragma once
// Every generated kernel at every stage, for people: as a log, and as a list.
#include <vector>

#include "sinter/engine/report.h"

namespace sinter {

// To SINTER_LOGS=code, and to whoever lists; most often there is nobody, and the texts need not be made.
bool kernels_are_noted();
void note_kernel(const KernelStages& kernel);

// While alive, kernels that this thread makes are listed, in the order in which they are made. One at a time.
class KernelList {
 public:
  KernelList();
  ~KernelList();
  KernelList(const KernelList&) = delete;

  std::vector<KernelStages> take() { return std::move(list_); }

 private:
  friend void note_kernel(const KernelStages& kernel);
  std::vector<KernelStages> list_;
};

}  // namespace sinter
