#include "sinter/runtime/cuda/library_search.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "sinter/base/format.h"

namespace sinter::runtime {

namespace {

namespace fs = std::filesystem;

// The folders inside `parent` whose name begins so, the last in the alphabet first.
std::vector<fs::path> folders_in(const fs::path& parent, const std::string& prefix) {
  std::vector<fs::path> found;
  std::error_code ignored;
  for (fs::directory_iterator it(parent, ignored), end; !ignored && it != end; it.increment(ignored))
    if (it->path().filename().string().starts_with(prefix) && it->is_directory(ignored)) found.push_back(it->path());
  std::sort(found.rbegin(), found.rend());
  return found;
}

}  // namespace

std::vector<std::string> cuda_library_folders() {
  std::vector<fs::path> roots;
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* value = std::getenv(name); value && *value) roots.emplace_back(value);
  roots.emplace_back("/usr/local/cuda");
  for (auto& toolkit : folders_in("/usr/local", "cuda-")) roots.push_back(toolkit);
  std::vector<fs::path> folders;
  for (auto& root : roots)
    for (const char* part : {"lib64", "lib"}) folders.push_back(root / part);
  std::vector<fs::path> pythons;
  for (const char* prefix : {"/usr/local/lib", "/usr/lib"})
    for (auto& python : folders_in(prefix, "python3")) pythons.push_back(python);
  if (const char* environment = std::getenv("VIRTUAL_ENV"); environment && *environment)
    for (auto& python : folders_in(fs::path(environment) / "lib", "python3")) pythons.insert(pythons.begin(), python);
  for (auto& python : pythons)
    for (const char* packages : {"site-packages", "dist-packages"})
      for (auto& package : folders_in(python / packages / "nvidia", "")) folders.push_back(package / "lib");
  std::vector<std::string> existing;
  for (auto& folder : folders) {
    std::error_code ignored;
    if (fs::is_directory(folder, ignored) && std::find(existing.begin(), existing.end(), folder) == existing.end())
      existing.push_back(folder.string());
  }
  return existing;
}

std::optional<DynamicLibrary> open_cuda_library(const std::string& library, std::initializer_list<const char*> names,
                                                std::string& problem) {
  std::string reason;  // of a file that is there but cannot be used: that tells more than one that is not
  for (const char* name : names)
    if (auto opened = DynamicLibrary::try_open(name, true)) return opened;
  auto folders = cuda_library_folders();
  for (const char* name : names)
    for (auto& folder : folders) {
      std::string path = folder + "/" + name;
      std::error_code ignored;
      if (!fs::exists(path, ignored)) continue;
      std::string why;
      if (auto opened = DynamicLibrary::try_open(path, true, &why)) return opened;
      if (reason.empty()) reason = why;
    }
  std::string tried;
  for (const char* name : names) tried += (tried.empty() ? "" : ", ") + std::string(name);
  std::string places = "the system's library path";
  for (auto& folder : folders) places += ", " + folder;
  problem = reason.empty() ? format(
                                 "{} was not found: there is no {} in {}. Install it (it is part of the CUDA toolkit) "
                                 "or set CUDA_HOME or LD_LIBRARY_PATH to where it is",
                                 library, tried, places)
                           : format("{} cannot be loaded: {}", library, reason);
  return std::nullopt;
}

}  // namespace sinter::runtime
