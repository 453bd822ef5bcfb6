#include "sinter/base/build_id.h"

#include <elf.h>
#include <link.h>

#include <cstdint>
#include <cstring>

namespace sinter {

namespace {

// The build id among the notes of one segment; empty when it is not there.
std::string id_in_notes(const char* notes, size_t size) {
  constexpr size_t kAlign = 4;
  auto padded = [](size_t n) { return (n + kAlign - 1) / kAlign * kAlign; };
  while (size >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes, sizeof note);
    size_t name = padded(note.n_namesz), all = sizeof note + name + padded(note.n_descsz);
    if (all > size) return {};
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(notes + sizeof note, "GNU", 4) == 0) {
      constexpr char kDigits[] = "0123456789abcdef";
      std::string id;
      for (size_t i = 0; i < note.n_descsz; ++i) {
        auto byte = static_cast<unsigned char>(notes[sizeof note + name + i]);
        id += kDigits[byte >> 4];
        id += kDigits[byte & 15];
      }
      return id;
    }
    notes += all;
    size -= all;
  }
  return {};
}

// Of the loaded file that this very function lies in: a program's own where Sinter is linked into it.
std::string find_build_id() {
  std::string found;
  auto visit = [](dl_phdr_info* info, size_t, void* out) {
    auto here = reinterpret_cast<uintptr_t>(&find_build_id);
    bool ours = false;
    std::string id;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
      auto& segment = info->dlpi_phdr[i];
      uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
      if (segment.p_type == PT_LOAD) ours = ours || (here >= begin && here < begin + segment.p_memsz);
      if (segment.p_type == PT_NOTE && id.empty()) id = id_in_notes(reinterpret_cast<const char*>(begin), segment.p_memsz);
    }
    if (ours) *static_cast<std::string*>(out) = id;
    return int(ours);
  };
  dl_iterate_phdr(visit, &found);
  return found;
}

}  // namespace

const std::string& build_id() {
  static const std::string id = find_build_id();
  return id;
}

}  // namespace sinter
