#pragma once
// A loader for relocatable ELF objects as clang writes them: object bytes → executable memory, without a linker and
// without LLVM, in a fraction of a millisecond.
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

namespace sinter::runtime {

// Whether this loader knows the machine it runs on (x86-64, AArch64). Elsewhere `ElfImage::load` always throws.
bool elf_loader_supported();

// One loaded object. Code is executable and not writable, constants are read-only; all is unmapped on destruction.
class ElfImage {
 public:
  // Gives the address of a symbol the object needs but does not define, or null.
  using Resolver = std::function<void*(const char* name)>;

  // Loads an ET_REL object of this machine of position-independent code. Throws Error on a malformed object, an undefined
  // symbol, or a construct generated kernels never have (thread-local data, static constructors, ifuncs, absolute
  // 32-bit relocations). Any bytes are safe to load: every offset is checked before use.
  static ElfImage load(std::string_view object, const Resolver& resolve = process_symbol);

  // The default resolver: what the process and its libraries export.
  static void* process_symbol(const char* name);

  // A global function or variable of the object; null when there is none of that name.
  void* find_symbol(const std::string& name) const;

 private:
  friend class ElfLoader;
  struct Unmap {
    size_t size;
    void operator()(void* memory) const;
  };

  std::unique_ptr<void, Unmap> memory_{nullptr, Unmap{0}};
  std::unordered_map<std::string, void*> symbols_;
};

}  // namespace sinter::runtime
