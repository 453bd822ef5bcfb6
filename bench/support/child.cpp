#include "bench/support/child.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "sinter/base/error.h"
#include "sinter/base/format.h"
#include "sinter/base/thread_pool.h"

namespace sinter::bench {

std::string output_of_self(const std::string& arguments, const OwnDirectory& cache) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string command = format("SINTER_CACHE_DIR='{}' SINTER_NUM_THREADS={} '{}' {}", cache.path().string(),
                                     num_threads(), self, arguments);
  FILE* pipe = popen(command.c_str(), "r");
  check(pipe != nullptr, "no new process: {}", std::strerror(errno));
  std::string text;
  char part[4096];
  while (size_t n = std::fread(part, 1, sizeof part, pipe)) text.append(part, n);
  check(pclose(pipe) == 0, "the measurement '{}' failed", arguments);
  return text;
}

}  // namespace sinter::bench
