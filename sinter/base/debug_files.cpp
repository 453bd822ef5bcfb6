#include "sinter/base/debug_files.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace sinter {

namespace {

const char* debug_directory() {
  static const char* directory = std::getenv("SINTER_DEBUG");
  return directory && *directory ? directory : nullptr;
}

}  // namespace

bool is_debugged() { return debug_directory() != nullptr; }

std::string write_debug_file(const std::string& label, std::string_view stage, const std::string& text,
                             std::string_view extension) {
  const char* directory = debug_directory();
  if (!directory) return {};
  std::string name = label + "." + std::string(stage) + "." + std::string(extension);
  for (char& c : name)
    if (c == '/' || c == ' ' || c == ':') c = '_';
  std::error_code ignored;
  std::filesystem::create_directories(directory, ignored);
  std::filesystem::path path = std::filesystem::path(directory) / name;
  std::ofstream(path) << text;
  return path.string();
}

}  // namespace sinter
