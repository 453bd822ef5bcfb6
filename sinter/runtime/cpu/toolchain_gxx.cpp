// g++ as a child process: the fallback when the clang plugin is missing or fails.
#include <dirent.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <vector>

#include "sinter/runtime/cpu/compilers.h"

extern char** environ;

namespace sinter::runtime {

namespace {

struct ChildResult {
  bool started = false;
  int status = -1;     // the exit status; 128 + signal when it was killed
  std::string output;  // standard output and error together
};

// Runs a program found in PATH with nothing on its standard input, and waits for it.
ChildResult run_child(const std::vector<std::string>& arguments) {
  ChildResult result;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return result;
  std::vector<char*> pointers;
  for (auto& argument : arguments) pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
  pid_t child = 0;
  result.started = posix_spawnp(&child, pointers[0], &actions, nullptr, pointers.data(), environ) == 0;
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  char buffer[4096];
  for (ssize_t n; result.started && ((n = read(ends[0], buffer, sizeof buffer)) > 0 || (n < 0 && errno == EINTR));)
    if (n > 0) result.output.append(buffer, size_t(n));
  close(ends[0]);
  int status = 0;
  pid_t waited = -1;
  while (result.started && (waited = waitpid(child, &status, 0)) < 0 && errno == EINTR) continue;
  if (waited == child) result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

// `label` as a string literal in a #line directive.
std::string quoted(const std::string& label) {
  std::string out = "\"";
  for (char c : label) out += c == '"' || c == '\\' || c == '\n' ? '_' : c;
  return out + "\"";
}

}  // namespace

std::string gxx_identity() {
  static const std::string identity = [] {
    auto result = run_child({"g++", "-dumpfullversion"});
    if (result.status != 0) return std::string();
    return "g++ " + result.output.substr(0, result.output.find('\n'));
  }();
  return identity;
}

std::string compile_with_gxx(const std::string& source, const std::string& label, const CpuTarget& target) {
  TemporaryDirectory directory;
  write_file(directory.file("kernel.cpp"), "#line 1 " + quoted(label) + "\n" + source);
  std::vector<std::string> arguments = {
      "g++", "-std=c++20", "-O3", "-march=" + target.arch, "-shared", "-fPIC", "-ffp-contract=on", "-fwrapv", "-fno-math-errno",
      "-fno-trapping-math", "-fno-exceptions", "-fno-rtti", "-fno-strict-aliasing", "-fno-gnu-unique", "-nostdinc",
      "-w"};
  for (auto& feature : target.features) arguments.push_back("-m" + feature);
  if (target.isa == CpuIsa::kAvx512) arguments.push_back("-mprefer-vector-width=512");
  arguments.insert(arguments.end(), {"-o", directory.file("kernel.so"), directory.file("kernel.cpp")});
  auto result = run_child(arguments);
  if (!result.started) throw CompilerFailure("g++ cannot be started");
  // Status 1 is g++'s answer to wrong text; any other failure is its own.
  if (result.status == 1) throw Error(result.output);
  if (result.status != 0) throw CompilerCrash(format("g++ ended with status {}: {}", result.status, result.output));
  return read_file(directory.file("kernel.so"));
}

TemporaryDirectory::TemporaryDirectory() {
  const char* base = std::getenv("TMPDIR");
  path_ = std::string(base && *base ? base : "/tmp") + "/sinter-XXXXXX";
  if (!mkdtemp(path_.data())) throw CompilerFailure(format("cannot create {}: {}", path_, std::strerror(errno)));
}

TemporaryDirectory::~TemporaryDirectory() {
  if (DIR* entries = opendir(path_.c_str())) {
    while (auto* entry = readdir(entries)) unlink(file(entry->d_name).c_str());
    closedir(entries);
  }
  rmdir(path_.c_str());
}

void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(bytes.data(), std::streamsize(bytes.size()));
  out.close();
  if (!out.good()) throw CompilerFailure("cannot write " + path);
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream bytes;
  bytes << in.rdbuf();
  if (!in.good()) throw CompilerFailure("cannot read " + path);
  return std::move(bytes).str();
}

}  // namespace sinter::runtime
