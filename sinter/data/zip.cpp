#include "sinter/data/zip.h"

#include <zlib.h>

#include <algorithm>

#include "sinter/base/error.h"

namespace sinter::data {

using namespace zip;

namespace {

constexpr uint16_t kDate = 1 << 5 | 1;  // 1980-01-01: archives of equal contents are equal
// Deflate makes nothing more than this much smaller, so that a small file cannot ask for much memory.
constexpr uint64_t kBestRatio = 1032;

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

std::string unpacked(const ZipReader& archive, const ZipEntry& entry) {
  std::string out;
  if (entry.deflated) {
    std::string_view packed = archive.stored(entry);
    if (entry.size / kBestRatio > packed.size()) archive.damaged("an entry claims to be larger than it can be");
    out.resize(entry.size);
    if (!inflate_all(packed, out)) archive.damaged("an entry does not decompress");
  } else {
    out = archive.contents(entry);
  }
  archive.verify(entry, out);
  return out;
}

// --- writing ---------------------------------------------------------------------------------------------------------

void ZipWriter::write(std::string_view bytes) {
  sink_(bytes);
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
  check(name.size() < 0xffff, "{}: a name of {} bytes is too long", writer_, name.size());
  check(contents.size() < kElsewhere / 2, "{}: '{}' has {} bytes; use save_safetensors for 2 GiB and more", writer_,
        name, contents.size());
  if (deflated) packed = deflate_all(contents);
  std::string_view stored = deflated ? packed : contents;
  check(written_ + stored.size() < kElsewhere - 0xffff && entries_.size() < 0xfffe,
        "{}: the archive grows beyond 4 GiB or 65533 arrays; use save_safetensors", writer_);
  entries_.push_back({name, deflated, zip_checksum(contents), stored.size(), contents.size(), written_});
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
  check(written_ < kElsewhere, "{}: the archive grows beyond 4 GiB; use save_safetensors", writer_);
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
