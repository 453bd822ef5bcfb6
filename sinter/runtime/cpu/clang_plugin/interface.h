#pragma once
// The C interface between the library and its clang plugin (libsinter_clang.so), which is loaded on the first compile
// only. Nothing here depends on clang or on the C++ runtime.
#include <stddef.h>

namespace sinter::runtime {

// The clang the plugin is built with. A part of cache keys, so that a process which only hits the cache can make its
// keys without loading the plugin; the plugin does not build with another version.
inline constexpr int kClangVersion = 19;

// One compilation: C++ text without includes → one position-independent ELF object.
struct ClangRequest {
  const char* source;
  size_t source_size;
  const char* label;     // the file name in diagnostics
  const char* triple;    // "x86_64-linux-gnu"
  const char* cpu;       // as clang's -target-cpu
  const char* features;  // comma-separated, as clang's -target-feature: "+avx512bf16,+avx512vnni"; may be empty
  int vector_bits;       // the preferred vector width
  int opt_level;         // 0 to 3
};

enum ClangStatus : int {
  kClangOk = 0,        // the bytes are the object file
  kClangRejected = 1,  // the text is wrong; the bytes are the diagnostics
  kClangCrashed = 2,   // the compiler failed; the bytes say how
};

// Receives the outcome, exactly once, before the compile function returns. `bytes` live only during the call.
using ClangSink = void (*)(void* context, int status, const char* bytes, size_t size);

// The symbols of the plugin. Callable from any thread, many at a time. Renamed whenever this interface changes.
using ClangCompile = void (*)(const ClangRequest* request, ClangSink sink, void* context);
inline constexpr char kClangCompileSymbol[] = "sinter_clang_compile_v1";
// The release of the clang that is loaded, in full: "Debian clang version 19.1.7 (3)".
using ClangRelease = const char* (*)();
inline constexpr char kClangReleaseSymbol[] = "sinter_clang_release_v1";

}  // namespace sinter::runtime
