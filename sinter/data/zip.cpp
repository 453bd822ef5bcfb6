#include "sinter/data/zip.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>

#include "sinter/base/error.h"

namespace sinter::data {

namespace {

constexpr uint32_t kLocalHeader = 0x04034b50, kDirectoryEntry = 0x02014b50, kEnd = 0x06054b50, kLargeEnd = 0x06064b50,
                   kLargeEndLocator = 0x07064b50;
constexpr uint64_t kLocalHeaderSize = 30, kDirectoryEntrySize = 46, kEndSize = 22, kLargeEndSize = 56,
                   kLocatorSize = 20;
constexpr uint32_t kElsewhere = 0xffffffff;  // of a size: the extra field of ZIP64 has it
constexpr uint16_t kEncrypted = 1, kUtf8 = 1 << 11, kStored = 0, kDeflated = 8, kVersion = 20, kLargeSizes = 1;
constexpr uint16_t kDate = 1 << 5 | 1;  // 1980-01-01: archives of equal contents are equal
// Deflate makes nothing more than this much smaller, so that a small file cannot ask for much memory.
constexpr uint64_t kBestRatio = 1032;

uint32_t crc_of(std::string_view bytes) {
  return uint32_t(crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

std::string deflate_all(std::string_view bytes) {
  z_stream stream{};
  check(deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK,
        "save_npz: zlib does not start");
  std::string out(deflateBound(&stream, uLong(bytes.size())), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = uInt(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = uInt(out.size());
  const int result = deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  check(result == Z_STREAM_END, "save_npz: zlib gives {}", result);
  return out;
}

// Whether the input gives exactly what `out` has room for.
bool inflate_all(std::string_view bytes, std::string& out) {
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return false;
  constexpr size_t kMost = size_t(1) << 30;  // zlib counts in 32 bits
  size_t read = 0, made = 0;
  int result = Z_OK;
  while (result == Z_OK) {
    const size_t in = std::min(bytes.size() - read, kMost), room = std::min(out.size() - made, kMost);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data() + read));
    stream.avail_in = uInt(in);
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + made);
    stream.avail_out = uInt(room);
    result = inflate(&stream, Z_NO_FLUSH);
    read += in - stream.avail_in;
    made += room - stream.avail_out;
  }
  inflateEnd(&stream);
  return result == Z_STREAM_END && read == bytes.size() && made == out.size();
}

template <class T>
void append(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);  // little-endian, as all machines of Sinter
}

}  // namespace

// --- reading ---------------------------------------------------------------------------------------------------------

void ZipReader::damaged(const char* what) const { throw_error(format("{}: '{}' is damaged: {}", format_, name_, what)); }

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

std::string ZipReader::read(const ZipEntry& entry) const {
  piece(entry.header, kLocalHeaderSize);
  if (number<uint32_t>(entry.header) != kLocalHeader) damaged("an entry is not where the directory says");
  const uint64_t skipped = kLocalHeaderSize + number<uint16_t>(entry.header + 26) + number<uint16_t>(entry.header + 28);
  std::string_view stored = piece(entry.header + skipped, entry.stored_size);
  std::string out;
  if (entry.deflated) {
    if (entry.size / kBestRatio > stored.size()) damaged("an entry claims to be larger than it can be");
    out.resize(entry.size);
    if (!inflate_all(stored, out)) damaged("an entry does not decompress");
  } else {
    if (entry.size != stored.size()) damaged("an entry that is not compressed has two sizes");
    out = stored;
  }
  if (crc_of(out) != entry.checksum) damaged("an entry differs from its checksum");
  return out;
}

// --- writing ---------------------------------------------------------------------------------------------------------

void ZipWriter::write(std::string_view bytes) {
  file_.write(bytes);
  written_ += bytes.size();
}

namespace {

// What the header of an entry and its line of the directory have in common.
std::string common_fields(const ZipEntry& entry) {
  std::string out;
  append(out, kVersion);
  append(out, kUtf8);
  append(out, entry.deflated ? kDeflated : kStored);
  append(out, uint16_t(0));  // the time
  append(out, kDate);
  append(out, entry.checksum);
  append(out, uint32_t(entry.stored_size));
  append(out, uint32_t(entry.size));
  append(out, uint16_t(entry.name.size()));
  append(out, uint16_t(0));  // no extra field
  return out;
}

}  // namespace

void ZipWriter::add(const std::string& name, std::string_view contents, bool deflated) {
  std::string packed;
  check(name.size() < 0xffff, "save_npz: a name of {} bytes is too long", name.size());
  check(contents.size() < kElsewhere / 2, "save_npz: '{}' has {} bytes; use save_safetensors for 2 GiB and more", name,
        contents.size());
  if (deflated) packed = deflate_all(contents);
  std::string_view stored = deflated ? packed : contents;
  check(written_ + stored.size() < kElsewhere - 0xffff && entries_.size() < 0xfffe,
        "save_npz: the archive grows beyond 4 GiB or 65533 arrays; use save_safetensors");
  entries_.push_back({name, deflated, crc_of(contents), stored.size(), contents.size(), written_});
  std::string header;
  append(header, kLocalHeader);
  write(header + common_fields(entries_.back()) + name);
  write(stored);
}

void ZipWriter::finish() {
  const uint64_t begin = written_;
  for (auto& entry : entries_) {
    std::string line;
    append(line, kDirectoryEntry);
    append(line, kVersion);  // made by
    line += common_fields(entry);
    line.append(10, '\0');  // no comment, disk 0, no attributes
    append(line, uint32_t(entry.header));
    write(line + entry.name);
  }
  check(written_ < kElsewhere, "save_npz: the archive grows beyond 4 GiB; use save_safetensors");
  std::string end;
  append(end, kEnd);
  append(end, uint32_t(0));  // disks
  append(end, uint16_t(entries_.size()));
  append(end, uint16_t(entries_.size()));
  append(end, uint32_t(written_ - begin));
  append(end, uint32_t(begin));
  append(end, uint16_t(0));  // no comment
  write(end);
}

}  // namespace sinter::data
