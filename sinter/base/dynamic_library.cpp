#include "sinter/base/dynamic_library.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/auxv.h>

#include <filesystem>
#include <utility>

#include "sinter/base/error.h"

namespace sinter {

namespace {

std::string loader_error() {
  const char* text = dlerror();
  return text ? text : "unknown error";
}

}  // namespace

std::optional<DynamicLibrary> DynamicLibrary::try_open(const std::string& path, bool lazy, std::string* reason) {
  void* handle = dlopen(path.c_str(), RTLD_LOCAL | (lazy ? RTLD_LAZY : RTLD_NOW));
  if (handle) return DynamicLibrary(handle, path);
  std::string text = loader_error();
  if (reason) *reason = std::move(text);
  return std::nullopt;
}

DynamicLibrary DynamicLibrary::open(const std::string& path, bool lazy) {
  std::string reason;
  auto library = try_open(path, lazy, &reason);
  check(library.has_value(), "cannot load the library '{}': {}", path, reason);
  return std::move(*library);
}

DynamicLibrary::DynamicLibrary(DynamicLibrary&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)), path_(std::move(other.path_)) {}

DynamicLibrary& DynamicLibrary::operator=(DynamicLibrary&& other) noexcept {
  std::swap(handle_, other.handle_);
  std::swap(path_, other.path_);
  return *this;
}

DynamicLibrary::~DynamicLibrary() {
  if (handle_) dlclose(handle_);
}

void* DynamicLibrary::symbol(const std::string& name) const {
  void* address = find_symbol(name);
  check(address != nullptr, "the library '{}' has no symbol '{}'", path_, name);
  return address;
}

void* DynamicLibrary::find_symbol(const std::string& name) const {
  return handle_ ? dlsym(handle_, name.c_str()) : nullptr;
}

std::string program_path() {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) return path.string();
  // A chroot may do without /proc: what the program was started as.
  const char* started = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
  return started ? std::filesystem::absolute(started, error).string() : "";
}

std::string plugin_path(const std::string& file) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  Dl_info info;
  link_map* map = nullptr;
  fs::path here;
  if (dladdr1(reinterpret_cast<const void*>(&plugin_path), &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP))
    here = *map->l_name ? std::string(map->l_name) : program_path();  // the program has no name
  here = here.parent_path();
  // A build tree has `lib`, whatever installations call it.
  fs::path beside = here / "sinter" / file;
  for (auto& path : {beside, here / ".." / SINTER_LIBDIR / "sinter" / file, here / "../lib/sinter" / file})
    if (fs::exists(path, ignored)) return path.string();
  return beside.string();
}

}  // namespace sinter
