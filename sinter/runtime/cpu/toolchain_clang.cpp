// Finds and loads the clang plugin on the first compile.
#include <cstdlib>

#include "sinter/base/dynamic_library.h"
#include "sinter/runtime/cpu/clang_plugin/interface.h"
#include "sinter/runtime/cpu/compilers.h"
#include "sinter/runtime/cpu/elf_loader.h"

namespace sinter::runtime {

namespace {

// SINTER_CLANG_PLUGIN, or where this installation has it.
std::string clang_plugin_path() {
  const char* path = std::getenv("SINTER_CLANG_PLUGIN");
  return path && *path ? path : plugin_path("libsinter_clang.so");
}

struct Plugin {
  DynamicLibrary* library = nullptr;
  ClangCompile compile = nullptr;
  ClangRelease release = nullptr;
  std::string problem;
};

const Plugin& plugin() {
  // Never unloaded: LLVM's static objects do not survive that, nor a compile still running at exit.
  static const Plugin* loaded = [] {
    auto* plugin = new Plugin;
    auto library = DynamicLibrary::try_open(clang_plugin_path(), /*lazy=*/true, &plugin->problem);
    if (!library) return plugin;
    plugin->library = new DynamicLibrary(std::move(*library));
    plugin->compile = reinterpret_cast<ClangCompile>(plugin->library->find_symbol(kClangCompileSymbol));
    plugin->release = reinterpret_cast<ClangRelease>(plugin->library->find_symbol(kClangReleaseSymbol));
    if (!plugin->compile || !plugin->release)
      plugin->problem = format("{} is of another version of Sinter", plugin->library->path());
    return plugin;
  }();
  return *loaded;
}

void check_loaded() {
  if (!plugin().problem.empty()) throw CompilerFailure("the clang plugin cannot be loaded: " + plugin().problem);
}

struct Outcome {
  int status = kClangCrashed;
  std::string bytes;
};

}  // namespace

std::string clang_identity() { return elf_loader_supported() ? format("clang {}", kClangVersion) : ""; }

std::string clang_release() {
  check_loaded();
  return plugin().release();
}

std::string compile_with_clang(const std::string& source, const std::string& label, const CpuTarget& target) {
  check_loaded();
  std::string features;
  for (auto& feature : target.features) features += (features.empty() ? "+" : ",+") + feature;
  ClangRequest request{source.data(), source.size(),    label.c_str(),           target.triple.c_str(),
                       target.arch.c_str(), features.c_str(), target.vector_bytes * 8, /*opt_level=*/3};
  Outcome outcome;
  auto sink = [](void* context, int status, const char* bytes, size_t size) {
    static_cast<Outcome*>(context)->status = status;
    static_cast<Outcome*>(context)->bytes.assign(bytes, size);
  };
  plugin().compile(&request, sink, &outcome);
  if (outcome.status == kClangCrashed) throw CompilerCrash(outcome.bytes);
  if (outcome.status == kClangRejected) throw Error(outcome.bytes);
  return std::move(outcome.bytes);
}

}  // namespace sinter::runtime
