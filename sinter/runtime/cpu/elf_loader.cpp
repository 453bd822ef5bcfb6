#include "sinter/runtime/cpu/elf_loader.h"

#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <vector>

#include "sinter/base/error.h"

namespace sinter::runtime {

namespace {

// Sections are laid out by how their pages are protected once relocated.
enum Group { kCode, kConstants, kData, kGroups };

constexpr int kProtection[kGroups] = {PROT_READ | PROT_EXEC, PROT_READ, PROT_READ | PROT_WRITE};
constexpr uint64_t kMaxImageBytes = uint64_t(1) << 30;  // keeps every pc-relative distance inside 32 bits
constexpr uint64_t kMaxAlign = 4096;

#if defined(__aarch64__)
constexpr int kMachine = EM_AARCH64;
constexpr size_t kStubBytes = 16;
#else
constexpr int kMachine = EM_X86_64;
constexpr size_t kStubBytes = 8;
#endif

uint64_t round_up(uint64_t value, uint64_t align) { return (value + align - 1) / align * align; }

}  // namespace

bool elf_loader_supported() {
#if defined(__x86_64__) || defined(__aarch64__)
  return true;
#else
  return false;
#endif
}

// The state of one load. Steps: read the tables, lay sections out, resolve symbols, relocate, protect.
class ElfLoader {
 public:
  ElfLoader(std::string_view object, const ElfImage::Resolver& resolve) : object_(object), resolve_(resolve) {}

  ElfImage run() {
    check(elf_loader_supported(), "object code: this machine has no loader for it");
    read_tables();
    lay_out();
    copy_sections();
    resolve_symbols();
    for (size_t i = 0; i < sections_.size(); ++i) relocate(i);
    protect();
    return std::move(image_);
  }

 private:
  // A table of `count` T's at `offset`, copied out because the file need not be aligned.
  template <class T>
  std::vector<T> table(uint64_t offset, uint64_t bytes, const char* what) const {
    check(offset <= object_.size() && bytes <= object_.size() - offset && bytes % sizeof(T) == 0,
          "object code: the {} lie outside the file", what);
    std::vector<T> out(bytes / sizeof(T));
    if (bytes) std::memcpy(out.data(), object_.data() + offset, bytes);
    return out;
  }

  const char* text(const std::vector<char>& strings, uint64_t offset) const {
    check(offset < strings.size() && strings.back() == 0, "object code: a name lies outside its table");
    return strings.data() + offset;
  }

  void read_tables() {
    auto header = table<Elf64_Ehdr>(0, sizeof(Elf64_Ehdr), "ELF header bytes")[0];
    check(std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == ELFCLASS64 &&
              header.e_ident[EI_DATA] == ELFDATA2LSB && header.e_type == ET_REL && header.e_machine == kMachine &&
              header.e_shentsize == sizeof(Elf64_Shdr),
          "object code: not a relocatable ELF file of this machine");
    sections_ = table<Elf64_Shdr>(header.e_shoff, uint64_t(header.e_shnum) * sizeof(Elf64_Shdr), "section headers");
    for (auto& section : sections_) {
      check(section.sh_type != SHT_INIT_ARRAY && section.sh_type != SHT_FINI_ARRAY && !(section.sh_flags & SHF_TLS),
            "object code: static constructors and thread-local data are not supported");
      if (section.sh_type != SHT_SYMTAB) continue;
      check(symbols_.empty() && section.sh_link < sections_.size(), "object code: malformed symbol table");
      auto& strings = sections_[section.sh_link];
      symbols_ = table<Elf64_Sym>(section.sh_offset, section.sh_size, "symbols");
      names_ = table<char>(strings.sh_offset, strings.sh_size, "symbol names");
    }
  }

  bool is_loaded(const Elf64_Shdr& section) const {
    // Unwind tables are of no use: kernels do not throw.
    return (section.sh_flags & SHF_ALLOC) && section.sh_type != SHT_X86_64_UNWIND && section.sh_type != SHT_NOTE &&
           section.sh_size > 0;
  }

  // The relocations of section `index`, checked to name real symbols.
  std::vector<Elf64_Rela> relocations(size_t index) const {
    auto& section = sections_[index];
    check(section.sh_type != SHT_REL, "object code: relocations without addends are not supported");
    if (section.sh_type != SHT_RELA || section.sh_info >= sections_.size() || !is_loaded(sections_[section.sh_info]))
      return {};
    auto entries = table<Elf64_Rela>(section.sh_offset, section.sh_size, "relocations");
    for (auto& entry : entries)
      check(ELF64_R_SYM(entry.r_info) < symbols_.size(), "object code: a relocation names no symbol");
    return entries;
  }

  void lay_out() {
    uint64_t page = uint64_t(sysconf(_SC_PAGESIZE));
    offsets_.assign(sections_.size(), 0);
    // Every relocated symbol may need a slot for its address, and a stub when it is called.
    size_t slots = 0;
    for (size_t i = 0; i < sections_.size(); ++i) slots += relocations(i).size();
    slots = std::min(slots, symbols_.size());
    uint64_t end = 0;
    for (int group = 0; group < kGroups; ++group) {
      group_begin_[group] = end;
      for (size_t i = 0; i < sections_.size(); ++i) {
        auto& section = sections_[i];
        if (!is_loaded(section) || group_of(section) != group) continue;
        uint64_t align = std::max<uint64_t>(section.sh_addralign, 1);
        check(align <= kMaxAlign && (align & (align - 1)) == 0 && section.sh_size < kMaxImageBytes,
              "object code: a section of {} bytes aligned to {} cannot be loaded", section.sh_size, align);
        offsets_[i] = end = round_up(end, align);
        end += section.sh_size;
        check(end < kMaxImageBytes, "object code: too large");
      }
      if (group == kCode) stubs_ = end = round_up(end, 16), end += slots * kStubBytes;
      if (group == kConstants) slots_ = end = round_up(end, 16), end += slots * sizeof(uint64_t);
      end = round_up(end, page);
      group_end_[group] = end;
    }
    check(end > 0, "object code: holds no code");
    void* memory = mmap(nullptr, end, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw OutOfMemoryError(format("object code: cannot map {} bytes", end));
    image_.memory_ = {memory, ElfImage::Unmap{end}};
    base_ = static_cast<char*>(memory);
  }

  static Group group_of(const Elf64_Shdr& section) {
    if (section.sh_flags & SHF_EXECINSTR) return kCode;
    return section.sh_flags & SHF_WRITE ? kData : kConstants;
  }

  void copy_sections() {
    for (size_t i = 0; i < sections_.size(); ++i) {
      auto& section = sections_[i];
      if (!is_loaded(section) || section.sh_type == SHT_NOBITS) continue;
      check(section.sh_offset <= object_.size() && section.sh_size <= object_.size() - section.sh_offset,
            "object code: a section lies outside the file");
      std::memcpy(base_ + offsets_[i], object_.data() + section.sh_offset, section.sh_size);
    }
  }

  void resolve_symbols() {
    addresses_.assign(symbols_.size(), 0);
    for (size_t i = 1; i < symbols_.size(); ++i) {
      auto& symbol = symbols_[i];
      int type = ELF64_ST_TYPE(symbol.st_info), binding = ELF64_ST_BIND(symbol.st_info);
      check(type != STT_GNU_IFUNC && type != STT_TLS, "object code: ifuncs and thread-local data are not supported");
      if (symbol.st_shndx == SHN_UNDEF) {
        const char* name = text(names_, symbol.st_name);
        void* address = resolve_(name);
        check(address || binding == STB_WEAK, "object code: undefined symbol '{}'", name);
        addresses_[i] = uint64_t(address);
      } else if (symbol.st_shndx == SHN_ABS) {
        addresses_[i] = symbol.st_value;
      } else {
        check(symbol.st_shndx < sections_.size(), "object code: a symbol names no section");
        auto& section = sections_[symbol.st_shndx];
        if (!is_loaded(section)) continue;
        check(symbol.st_value <= section.sh_size, "object code: a symbol lies outside its section");
        addresses_[i] = uint64_t(base_) + offsets_[symbol.st_shndx] + symbol.st_value;
        if (binding != STB_LOCAL && type != STT_SECTION)
          image_.symbols_[text(names_, symbol.st_name)] = reinterpret_cast<void*>(addresses_[i]);
      }
    }
  }

  bool is_external(uint32_t symbol) const { return symbols_[symbol].st_shndx == SHN_UNDEF; }

  // The address of a word that holds the symbol's address.
  uint64_t slot_of(uint32_t symbol) {
    auto [found, fresh] = slot_index_.try_emplace(symbol, slot_index_.size());
    uint64_t address = uint64_t(base_) + slots_ + found->second * sizeof(uint64_t);
    if (fresh) std::memcpy(reinterpret_cast<void*>(address), &addresses_[symbol], sizeof(uint64_t));
    return address;
  }

  // The address of a jump to the symbol: libraries lie beyond the reach of a call.
#if defined(__aarch64__)
  uint64_t stub_of(uint32_t symbol) {
    uint64_t slot = slot_of(symbol);
    uint64_t address = uint64_t(base_) + stubs_ + slot_index_.at(symbol) * kStubBytes;
    const uint32_t code[kStubBytes / 4] = {
        with_page(0x90000010, (slot >> 12) - (address >> 12)),   // adrp x16, slot
        0xf9400210 | uint32_t((slot & 0xfff) >> 3) << 10,        // ldr x16, [x16, :lo12:slot]
        0xd61f0200, 0xd4200000};                                 // br x16; brk
    std::memcpy(reinterpret_cast<void*>(address), code, sizeof code);
    return address;
  }

  // An adrp that reaches `pages` further.
  static uint32_t with_page(uint32_t instruction, uint64_t pages) {
    return (instruction & 0x9f00001f) | uint32_t(pages & 3) << 29 | uint32_t(pages >> 2 & 0x7ffff) << 5;
  }

  // The instruction with the part of `address` inside its page as its offset, in units of 2^scale bytes.
  static uint32_t with_offset(uint32_t instruction, uint64_t address, int scale) {
    check((address & ((1u << scale) - 1)) == 0, "object code: an address is not aligned as its instruction needs it");
    return (instruction & 0xffc003ff) | uint32_t((address & 0xfff) >> scale) << 10;
  }

  static uint64_t width_of(uint32_t type) { return type == R_AARCH64_ABS64 || type == R_AARCH64_PREL64 ? 8 : 4; }

  // What takes the place of `content` at `place`.
  uint64_t relocated(uint32_t type, uint32_t symbol, int64_t addend, uint64_t place, uint64_t content) {
    uint64_t target = addresses_[symbol] + uint64_t(addend);
    const uint32_t instruction = uint32_t(content);
    const auto distance = [&](uint64_t to, uint64_t from, int bits) {
      const int64_t by = int64_t(to - from);
      check(by >= -(int64_t(1) << (bits - 1)) && by < int64_t(1) << (bits - 1),
            "object code: relocation type {} is out of reach", type);
      return uint64_t(by);
    };
    switch (type) {
      case R_AARCH64_ABS64:
        return target;
      case R_AARCH64_PREL64:
        return target - place;
      case R_AARCH64_PREL32:
        return distance(target, place, 32);
      case R_AARCH64_CALL26:
      case R_AARCH64_JUMP26:
        if (is_external(symbol)) target = stub_of(symbol);
        return (instruction & 0xfc000000) | (distance(target, place, 28) >> 2 & 0x3ffffff);
      case R_AARCH64_ADR_GOT_PAGE:
        target = slot_of(symbol);
        [[fallthrough]];
      case R_AARCH64_ADR_PREL_PG_HI21:
        return with_page(instruction, distance(target >> 12, place >> 12, 21));
      case R_AARCH64_LD64_GOT_LO12_NC:
        return with_offset(instruction, slot_of(symbol), 3);
      case R_AARCH64_ADD_ABS_LO12_NC:
      case R_AARCH64_LDST8_ABS_LO12_NC:
        return with_offset(instruction, target, 0);
      case R_AARCH64_LDST16_ABS_LO12_NC:
        return with_offset(instruction, target, 1);
      case R_AARCH64_LDST32_ABS_LO12_NC:
        return with_offset(instruction, target, 2);
      case R_AARCH64_LDST64_ABS_LO12_NC:
        return with_offset(instruction, target, 3);
      case R_AARCH64_LDST128_ABS_LO12_NC:
        return with_offset(instruction, target, 4);
      default:
        throw_error(format("object code: relocation type {} is not supported", type));
    }
  }
#else
  uint64_t stub_of(uint32_t symbol) {
    uint64_t slot = slot_of(symbol);
    uint64_t address = uint64_t(base_) + stubs_ + slot_index_.at(symbol) * kStubBytes;
    unsigned char code[kStubBytes] = {0xff, 0x25, 0, 0, 0, 0, 0xcc, 0xcc};  // jmp *slot(%rip)
    int32_t distance = int32_t(slot - (address + 6));
    std::memcpy(code + 2, &distance, sizeof distance);
    std::memcpy(reinterpret_cast<void*>(address), code, sizeof code);
    return address;
  }

  static uint64_t width_of(uint32_t type) { return type == R_X86_64_64 || type == R_X86_64_PC64 ? 8 : 4; }

  // What takes the place of the bytes at `place`.
  uint64_t relocated(uint32_t type, uint32_t symbol, int64_t addend, uint64_t place, uint64_t) {
    uint64_t value = 0;
    switch (type) {
      case R_X86_64_64:
        value = addresses_[symbol] + addend;
        break;
      case R_X86_64_PC32:
      case R_X86_64_PC64:
        value = addresses_[symbol] + addend - place;
        break;
      case R_X86_64_PLT32:
        value = (is_external(symbol) ? stub_of(symbol) : addresses_[symbol]) + addend - place;
        break;
      case R_X86_64_GOTPCREL:
      case R_X86_64_GOTPCRELX:
      case R_X86_64_REX_GOTPCRELX:
        value = slot_of(symbol) + addend - place;
        break;
      default:
        throw_error(format("object code: relocation type {} is not supported", type));
    }
    check(width_of(type) == 8 || int64_t(value) == int32_t(value), "object code: relocation type {} is out of reach",
          type);
    return value;
  }
#endif

  void relocate(size_t index) {
    auto entries = relocations(index);
    if (entries.empty()) return;
    auto& target = sections_[sections_[index].sh_info];
    uint64_t begin = uint64_t(base_) + offsets_[sections_[index].sh_info];
    for (auto& entry : entries) {
      uint32_t symbol = ELF64_R_SYM(entry.r_info), type = ELF64_R_TYPE(entry.r_info);
      if (type == 0) continue;  // "none" on either machine
      const uint64_t width = width_of(type);
      check(target.sh_size >= width && entry.r_offset <= target.sh_size - width,
            "object code: a relocation lies outside its section");
      uint64_t place = begin + entry.r_offset, value = 0;
      std::memcpy(&value, reinterpret_cast<void*>(place), width);
      value = relocated(type, symbol, entry.r_addend, place, value);
      std::memcpy(reinterpret_cast<void*>(place), &value, width);
    }
  }

  void protect() {
    // Some machines fetch instructions past the data cache.
    __builtin___clear_cache(base_ + group_begin_[kCode], base_ + group_end_[kCode]);
    for (int group = 0; group < kGroups; ++group) {
      size_t size = group_end_[group] - group_begin_[group];
      check(!size || mprotect(base_ + group_begin_[group], size, kProtection[group]) == 0,
            "object code: the system does not let memory become executable");
    }
  }

  std::string_view object_;
  const ElfImage::Resolver& resolve_;
  ElfImage image_;
  char* base_ = nullptr;
  std::vector<Elf64_Shdr> sections_;
  std::vector<Elf64_Sym> symbols_;
  std::vector<char> names_;
  std::vector<uint64_t> offsets_;    // of each section, from base_
  std::vector<uint64_t> addresses_;  // of each symbol
  uint64_t group_begin_[kGroups] = {}, group_end_[kGroups] = {};
  uint64_t stubs_ = 0, slots_ = 0;  // where they begin, from base_
  std::map<uint32_t, size_t> slot_index_;
};

ElfImage ElfImage::load(std::string_view object, const Resolver& resolve) { return ElfLoader(object, resolve).run(); }

void* ElfImage::process_symbol(const char* name) { return dlsym(RTLD_DEFAULT, name); }

void* ElfImage::find_symbol(const std::string& name) const {
  auto found = symbols_.find(name);
  return found == symbols_.end() ? nullptr : found->second;
}

void ElfImage::Unmap::operator()(void* memory) const { munmap(memory, size); }

}  // namespace sinter::runtime
