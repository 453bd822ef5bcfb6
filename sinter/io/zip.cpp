#include "sinter/io/zip.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "sinter/base/error.h"

namespace sinter {

using namespace zip;

// --- checksums -------------------------------------------------------------------------------------------------------

namespace {

constexpr size_t kAtOnce = 8;  // bytes that a step takes
using ChecksumTables = std::array<std::array<uint32_t, 256>, kAtOnce>;

// Table k: what a byte does to the checksum when k more follow it.
constexpr ChecksumTables make_checksum_tables() {
  constexpr uint32_t kPolynomial = 0xedb88320;
  ChecksumTables out{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ (value & 1 ? kPolynomial : 0);
    out[0][byte] = value;
  }
  for (size_t k = 1; k < kAtOnce; ++k)
    for (size_t byte = 0; byte < 256; ++byte) out[k][byte] = out[k - 1][byte] >> 8 ^ out[0][out[k - 1][byte] & 0xff];
  return out;
}
constexpr ChecksumTables kTables = make_checksum_tables();

}  // namespace

uint32_t zip_checksum(std::string_view bytes) {
  uint32_t sum = ~uint32_t(0);
  for (; bytes.size() >= kAtOnce; bytes.remove_prefix(kAtOnce)) {
    uint64_t next;
    std::memcpy(&next, bytes.data(), sizeof next);
    next ^= sum;
    sum = 0;
    for (size_t i = 0; i < kAtOnce; ++i) sum ^= kTables[kAtOnce - 1 - i][next >> (8 * i) & 0xff];
  }
  for (unsigned char byte : bytes) sum = sum >> 8 ^ kTables[0][(sum ^ byte) & 0xff];
  return ~sum;
}

// --- reading ---------------------------------------------------------------------------------------------------------

void ZipReader::damaged(const char* what) const {
  throw_error(format("{}: '{}' is damaged: {}", format_, name_, what));
}

std::string_view ZipReader::piece(uint64_t at, uint64_t size) const {
  if (at > bytes_.size() || size > bytes_.size() - at) damaged("it is cut short");
  return bytes_.substr(at, size);
}

template <class T>
T ZipReader::number(uint64_t at) const {
  T value;
  std::memcpy(&value, piece(at, sizeof value).data(), sizeof value);
  return value;
}

// The last record, which only a comment may follow.
uint64_t ZipReader::find_end() const {
  if (bytes_.size() >= kEndSize) {
    const uint64_t last = bytes_.size() - kEndSize, first = last > 0xffff ? last - 0xffff : 0;
    for (uint64_t at = last + 1; at-- > first;)
      if (number<uint32_t>(at) == kEnd && number<uint16_t>(at + 20) == bytes_.size() - at - kEndSize) return at;
  }
  throw_error(sinter::format("{}: '{}' is not a ZIP archive", format_, name_));
}

ZipReader::ZipReader(std::string_view bytes, std::string name, const char* format)
    : bytes_(bytes), name_(std::move(name)), format_(format) {
  const uint64_t end = find_end();
  uint64_t count = number<uint16_t>(end + 10), size = number<uint32_t>(end + 12), at = number<uint32_t>(end + 16);
  if (end >= kLocatorSize && number<uint32_t>(end - kLocatorSize) == kLargeEndLocator) {
    const uint64_t large = number<uint64_t>(end - kLocatorSize + 8);
    piece(large, kLargeEndSize);
    if (number<uint32_t>(large) != kLargeEnd) damaged("its end is not where it says");
    count = number<uint64_t>(large + 32);
    size = number<uint64_t>(large + 40);
    at = number<uint64_t>(large + 48);
  }
  piece(at, size);
  if (count > size / kDirectoryEntrySize) damaged("its directory is too small for its entries");
  for (uint64_t i = 0; i < count; ++i) entries_.push_back(read_entry(at));
}

// The sizes that do not fit 32 bits, in this order.
void ZipReader::read_large_sizes(ZipEntry& entry, std::string_view extra) const {
  uint64_t* missing[] = {&entry.size, &entry.stored_size, &entry.header};
  while (extra.size() >= 4) {
    uint16_t kind, size;
    std::memcpy(&kind, extra.data(), 2);
    std::memcpy(&size, extra.data() + 2, 2);
    std::string_view field = extra.substr(4, size);
    if (kind == kLargeSizes)
      for (uint64_t* number : missing) {
        if (*number != kElsewhere) continue;
        if (field.size() < 8) damaged("a large size is missing");
        std::memcpy(number, field.data(), 8);
        field.remove_prefix(8);
      }
    extra.remove_prefix(std::min<size_t>(extra.size(), 4 + size_t(size)));
  }
}

ZipEntry ZipReader::read_entry(uint64_t& at) const {
  piece(at, kDirectoryEntrySize);
  if (number<uint32_t>(at) != kDirectoryEntry) damaged("its directory holds something else");
  const uint16_t flags = number<uint16_t>(at + 8), method = number<uint16_t>(at + 10);
  const uint64_t name_size = number<uint16_t>(at + 28), extra_size = number<uint16_t>(at + 30);
  ZipEntry entry{.name = std::string(piece(at + kDirectoryEntrySize, name_size)),
                 .deflated = method == kDeflated,
                 .checksum = number<uint32_t>(at + 16),
                 .stored_size = number<uint32_t>(at + 20),
                 .size = number<uint32_t>(at + 24),
                 .header = number<uint32_t>(at + 42)};
  check(!(flags & kEncrypted), "{}: '{}' in '{}' is encrypted", format_, entry.name, name_);
  check(method == kStored || method == kDeflated, "{}: '{}' in '{}' is compressed by the unknown method {}", format_,
        entry.name, name_, method);
  read_large_sizes(entry, piece(at + kDirectoryEntrySize + name_size, extra_size));
  at += kDirectoryEntrySize + name_size + extra_size + number<uint16_t>(at + 32);
  return entry;
}

std::string_view ZipReader::stored(const ZipEntry& entry) const {
  piece(entry.header, kLocalHeaderSize);
  if (number<uint32_t>(entry.header) != kLocalHeader) damaged("an entry is not where the directory says");
  const uint64_t skipped = kLocalHeaderSize + number<uint16_t>(entry.header + 26) + number<uint16_t>(entry.header + 28);
  return piece(entry.header + skipped, entry.stored_size);
}

std::string_view ZipReader::contents(const ZipEntry& entry) const {
  if (entry.deflated) damaged("an entry that has to lie there as it is is compressed");
  if (entry.size != entry.stored_size) damaged("an entry that is not compressed has two sizes");
  return stored(entry);
}

void ZipReader::verify(const ZipEntry& entry, std::string_view contents) const {
  if (zip_checksum(contents) != entry.checksum) damaged("an entry differs from its checksum");
}

}  // namespace sinter
