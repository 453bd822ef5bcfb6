#include "tests/fuzz/fuzzer.h"

#include <unistd.h>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <iostream>

#include "sinter/base/format.h"
#include "sinter/runtime/cpu/toolchain.h"
#include "tests/fuzz/pairs.h"

namespace sinter::fuzz {

namespace {

constexpr int kMostFailures = 3;

double from_environment(const char* name, double otherwise) {
  const char* text = std::getenv(name);
  return text && *text ? std::atof(text) : otherwise;
}

// A crash still says which program it was.
char crash_text[8192];
void note_for_crash(const std::string& text) { crash_text[text.copy(crash_text, sizeof(crash_text) - 1)] = 0; }
void on_crash(int signal) {
  [[maybe_unused]] auto written = ::write(STDERR_FILENO, crash_text, std::strlen(crash_text));
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

// On a stack of its own: the other one may be what ran out.
void watch_for_crashes() {
  static char stack[1 << 16];
  stack_t own{.ss_sp = stack, .ss_flags = 0, .ss_size = sizeof(stack)};
  sigaltstack(&own, nullptr);
  struct sigaction action {};
  action.sa_handler = on_crash;
  action.sa_flags = SA_ONSTACK;
  for (int signal : {SIGSEGV, SIGABRT, SIGFPE, SIGBUS}) sigaction(signal, &action, nullptr);
}

}  // namespace

int fuzz(int shard, Limits limits) {
  limits.programs = int(from_environment("SINTER_FUZZ_PROGRAMS", limits.programs));
  limits.seconds = from_environment("SINTER_FUZZ_SECONDS", limits.seconds);
  auto seed = uint32_t(from_environment("SINTER_FUZZ_SEED", 1));
  bool gradients = from_environment("SINTER_FUZZ_GRADIENTS", 0) != 0;
  std::string how = gradients ? "SINTER_FUZZ_GRADIENTS=1 " : "";
  watch_for_crashes();
  auto began = std::chrono::steady_clock::now();
  auto passed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count(); };
  int count = 0, failed = 0;
  int most = int(from_environment("SINTER_FUZZ_FAILURES", kMostFailures));
  for (int at = shard; at < limits.programs && passed() < limits.seconds && failed < most; at += kShards, ++count) {
    uint32_t its_seed = seed + uint32_t(at);
    note_for_crash(format("{}SINTER_FUZZ_SEED={} crashes while it is made\n", how, its_seed));
    Program program =
        generate(its_seed, {.gradients = gradients || its_seed / kShards % 2 == 1, .training = gradients});
    note_for_crash(format("{}SINTER_FUZZ_SEED={} crashes:\n{}", how, its_seed, print(program, "", {{}})));
    auto failure = check(program);
    note_pairs_of(its_seed);
    if (!failure) continue;
    ++failed;
    std::string first = failure->what;
    Program small = shrink(program, *failure);
    std::string text = format("{}SINTER_FUZZ_SEED={}: {}\n{}", how, its_seed, first,
                              first == failure->what ? "" : failure->what + "\n");
    text += print(small, failure->options, failure->rounds) + "\n";
    std::cout << text << std::flush;
  }
  auto stats = runtime::toolchain_stats();
  std::cout << format(
      "{}SINTER_FUZZ_SEED={}, every {}th from {}: {} programs, {} failed, {} s ({} programs a minute); {} kernels "
      "compiled in {} s of all threads\n{}\n",
      how, seed, kShards, shard, count, failed, int(passed()), int(count / std::max(passed(), 1e-9) * 60),
      stats.compiles, int(stats.seconds), pair_report());
  return failed;
}

}  // namespace sinter::fuzz
