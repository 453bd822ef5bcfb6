#pragma once
// A shared library opened at run time and closed when its owner goes.
#include <optional>
#include <string>

namespace sinter {

class DynamicLibrary {
 public:
  // Opens a library by path, or by bare name through the system's search path. Its symbols stay private to it; those it
  // needs are bound at once unless `lazy`. Throws Error naming the library and the loader's reason.
  static DynamicLibrary open(const std::string& path, bool lazy = false);
  // The same, but nothing (and the reason, when asked for) instead of an Error.
  static std::optional<DynamicLibrary> try_open(const std::string& path, bool lazy = false,
                                                std::string* reason = nullptr);

  DynamicLibrary(DynamicLibrary&& other) noexcept;
  DynamicLibrary& operator=(DynamicLibrary&& other) noexcept;
  ~DynamicLibrary();

  const std::string& path() const { return path_; }

  // The address of a symbol; throws Error when the library lacks it.
  void* symbol(const std::string& name) const;
  // The same, but null when the library lacks it.
  void* find_symbol(const std::string& name) const;
  template <class Function>
  Function function(const std::string& name) const {
    return reinterpret_cast<Function>(symbol(name));
  }

 private:
  DynamicLibrary(void* handle, std::string path) : handle_(handle), path_(std::move(path)) {}

  void* handle_ = nullptr;
  std::string path_;
};

// The path of the running program.
std::string program_path();

// The path of a plugin: <dir>/sinter/ beside the library that holds this code, else, where a program holds it, that of the
// installation the program belongs to.
std::string plugin_path(const std::string& file);

}  // namespace sinter
