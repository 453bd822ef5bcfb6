// sinter-nvrtc: compiles CUDA texts for the process at the other end of descriptor 3, until that closes or is silent.
#include <csignal>
#include <string>

#include "sinter/runtime/cuda/compile_channel.h"
#include "sinter/runtime/cuda/nvrtc_library.h"

int main() {
  using namespace sinter::runtime;
  using namespace std::chrono_literals;
  std::signal(SIGINT, SIG_IGN);  // meant for the program; its end closes the channel
  const CompileChannel channel(3);
  auto file = channel.receive(5s);
  if (!file) return 1;
  const NvrtcLibrary library(std::span<const std::string>(&*file, 1));
  if (!library.problem().empty() || !channel.send(library.version())) return 1;
  for (;;) {
    auto architecture = channel.receive(5s);
    if (!architecture) return 0;
    auto text = channel.receive(5s);
    if (!text) return 1;
    NvrtcOutcome out = library.compile(*text, *architecture);
    const char kind = char(out.kind);
    if (!channel.send({&kind, 1}) || !channel.send(out.code) || !channel.send(out.log)) return 0;
  }
}
