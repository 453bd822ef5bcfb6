// The clang plugin: the only file that sees clang's headers. It builds a cc1 invocation directly (no driver, no child
// process, no file system) and returns the object file as bytes.
#include <clang/Basic/TargetInfo.h>
#include <clang/Basic/Version.h>
#include <clang/CodeGen/CodeGenAction.h>
#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/CompilerInvocation.h>
#include <clang/Frontend/TextDiagnosticPrinter.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/CrashRecoveryContext.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/Process.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/VirtualFileSystem.h>

#include <atomic>
#include <map>
#include <mutex>

#include "sinter/runtime/cpu/clang_plugin/interface.h"

namespace sinter::runtime {
namespace {

static_assert(CLANG_VERSION_MAJOR == kClangVersion, "kClangVersion in interface.h must name the clang built against");

constexpr unsigned kStackBytes = 8 << 20;
constexpr int kFatalExit = 70;

// Where the compile on this thread wants the reason of a fatal error.
thread_local std::string* fatal_reason = nullptr;

// LLVM's own fatal errors would end the process; inside a CrashRecoveryContext this unwinds to it instead.
void on_fatal_error(void*, const char* reason, bool) {
  if (fatal_reason) *fatal_reason = reason;
  llvm::sys::Process::Exit(kFatalExit);
}

void initialize_once() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    llvm::InitializeNativeTargetAsmParser();
    llvm::install_fatal_error_handler(on_fatal_error);
    // Kernels unroll their own hot loops; unrolling the tails as well costs a third of the compile time.
    const char* options[] = {"sinter", "-unroll-runtime=false"};
    llvm::cl::ParseCommandLineOptions(2, options);
  });
}

// Keeps the crash handlers installed only while something compiles, so that a program's own handlers are undisturbed.
class CrashHandlers {
 public:
  CrashHandlers() {
    std::lock_guard lock(mutex_);
    if (users_++ == 0) llvm::CrashRecoveryContext::Enable();
  }
  ~CrashHandlers() {
    std::lock_guard lock(mutex_);
    if (--users_ == 0) llvm::CrashRecoveryContext::Disable();
  }
  CrashHandlers(const CrashHandlers&) = delete;

 private:
  static inline std::mutex mutex_;
  static inline int users_ = 0;
};

std::vector<std::string> cc1_arguments(const ClangRequest& request) {
  std::vector<std::string> arguments = {
      "-triple", request.triple, "-emit-obj", "-x", "c++", "-std=c++20",
      "-disable-llvm-verifier", "-discard-value-names", "-w", "-Qn",
      "-mrelocation-model", "pic", "-pic-level", "2", "-mframe-pointer=none", "-fvisibility=hidden",
      "-ffp-contract=on", "-fwrapv", "-fdelayed-template-parsing", "-fno-rounding-math", "-fno-rtti", "-fno-threadsafe-statics", "-relaxed-aliasing",
      "-fgnuc-version=4.2.1", "-nostdsysteminc", "-nobuiltininc", "-ferror-limit", "19",
      "-mprefer-vector-width=" + std::to_string(request.vector_bits), "-O" + std::to_string(request.opt_level)};
  if (request.opt_level >= 2) arguments.insert(arguments.end(), {"-vectorize-loops", "-vectorize-slp"});
  arguments.insert(arguments.end(), {"-target-cpu", request.cpu});
  llvm::SmallVector<llvm::StringRef> features;
  llvm::StringRef(request.features).split(features, ',', -1, /*KeepEmpty=*/false);
  for (auto feature : features) arguments.insert(arguments.end(), {"-target-feature", feature.str()});
  arguments.push_back("kernel.cpp");
  return arguments;
}

// Parses the arguments of a target once; each compile copies the result. Null when clang does not know the target.
std::shared_ptr<const clang::CompilerInvocation> invocation_for(const ClangRequest& request) {
  static std::mutex mutex;
  static std::map<std::vector<std::string>, std::shared_ptr<const clang::CompilerInvocation>> cache;
  auto arguments = cc1_arguments(request);
  std::lock_guard lock(mutex);
  auto& cached = cache[arguments];
  if (!cached) {
    std::vector<const char*> pointers;
    for (auto& argument : arguments) pointers.push_back(argument.c_str());
    auto invocation = std::make_shared<clang::CompilerInvocation>();
    auto diagnostics = clang::CompilerInstance::createDiagnostics(new clang::DiagnosticOptions,
                                                                  new clang::IgnoringDiagConsumer);
    if (clang::CompilerInvocation::CreateFromArgs(*invocation, pointers, *diagnostics)) cached = std::move(invocation);
  }
  return cached;
}

// True when `object` holds the code; otherwise `text` holds the diagnostics.
bool compile(const ClangRequest& request, llvm::SmallVectorImpl<char>& object, std::string& text) {
  auto parsed = invocation_for(request);
  if (!parsed) {
    text = std::string("clang does not know the target ") + request.cpu + " " + request.features;
    return false;
  }
  auto buffer = llvm::MemoryBuffer::getMemBufferCopy({request.source, request.source_size}, request.label);
  auto invocation = std::make_shared<clang::CompilerInvocation>(*parsed);
  invocation->getFrontendOpts().Inputs = {clang::FrontendInputFile(buffer->getMemBufferRef(), clang::Language::CXX)};

  llvm::raw_string_ostream text_stream(text);
  clang::CompilerInstance compiler;
  compiler.setInvocation(std::move(invocation));
  clang::TextDiagnosticPrinter printer(text_stream, &compiler.getDiagnosticOpts());
  compiler.createDiagnostics(&printer, /*ShouldOwnClient=*/false);
  compiler.setVerboseOutputStream(text_stream);
  compiler.createFileManager(llvm::makeIntrusiveRefCnt<llvm::vfs::InMemoryFileSystem>());
  compiler.setOutputStream(std::make_unique<llvm::raw_svector_ostream>(object));

  clang::EmitObjAction action;
  return compiler.ExecuteAction(action) && !object.empty();
}

}  // namespace
}  // namespace sinter::runtime

extern "C" __attribute__((visibility("default"))) void sinter_clang_compile_v1(
    const sinter::runtime::ClangRequest* request, sinter::runtime::ClangSink sink, void* context) {
  using namespace sinter::runtime;
  // A crash by signal leaves the state of LLVM (its locks, its heap) unknown: this process does not enter it again.
  static std::atomic<bool> broken = false;
  std::string text, fatal;
  if (broken) {
    text = "clang crashed before in this process";
    return sink(context, kClangCrashed, text.data(), text.size());
  }
  initialize_once();
  llvm::SmallVector<char, 0> object;
  bool ok = false, survived;
  {
    CrashHandlers handlers;
    llvm::CrashRecoveryContext recovery;
    survived = recovery.RunSafelyOnThread(
        [&] {
          fatal_reason = &fatal;
          ok = compile(*request, object, text);
        },
        kStackBytes);
    if (!survived) {
      text = "clang failed with code " + std::to_string(recovery.RetCode) + " on " + request->label + ": " + fatal;
      if (recovery.RetCode != kFatalExit) broken = true;
    }
  }
  if (survived && ok)
    sink(context, kClangOk, object.data(), object.size());
  else
    sink(context, survived ? kClangRejected : kClangCrashed, text.data(), text.size());
}

extern "C" __attribute__((visibility("default"))) const char* sinter_clang_release_v1() {
  static const std::string release = clang::getClangFullVersion();
  return release.c_str();
}
