// The other direction of pt.cpp: values as a pickle program of version 2, tensors as entries of the archive.
#include <cstring>
#include <ostream>

#include "sinter/base/error.h"
#include "sinter/data/pt.h"
#include "sinter/data/pt_names.h"
#include "sinter/data/zip.h"
#include "sinter/io/file.h"

namespace sinter::data {

namespace {

class PtProgram {
 public:
  explicit PtProgram(const PtValue& value) {
    code("\x80\x02");
    put(value);
    code(".");
  }
  const std::string& text() const { return text_; }
  // In the order of their keys: 0, 1, …
  const TensorList& storages() const { return storages_; }

 private:
  void code(std::string_view bytes) { text_ += bytes; }
  template <class T>
  void number(T value) {
    text_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }

  void put(const PtValue& value) {
    std::visit([this](const auto& v) { put(v); }, value.value);
  }
  void put(std::monostate) { code("N"); }
  void put(bool value) { code(value ? "\x88" : "\x89"); }
  void put(int64_t value) {
    code("\x8a\x08");
    number(value);
  }
  void put(double value) {
    uint64_t bits;
    std::memcpy(&bits, &value, 8);
    code("G");
    number(__builtin_bswap64(bits));
  }
  void put(const std::string& value) { put_text(value); }
  void put_text(std::string_view value) {
    check(value.size() < 0xffffffff, "save_pt: a text of {} bytes is too long", value.size());
    code("X");
    number(uint32_t(value.size()));
    code(value);
  }
  void put(const PtValue::List& list) {
    code("](");
    for (auto& item : list) put(item);
    code("e");
  }
  void put(const PtValue::Dict& dict) {
    code("}(");
    for (auto& [key, item] : dict) {
      put(key);
      put(item);
    }
    code("u");
  }
  // "module.name" as the two lines of a global.
  void put_global(std::string_view name) {
    size_t dot = name.rfind('.');
    code("c");
    code(name.substr(0, dot));
    code("\n");
    code(name.substr(dot + 1));
    code("\n");
  }
  void put_sizes(const IntList& sizes) {
    code("(");
    for (int64_t size : sizes) put(size);
    code("t");
  }

  // _rebuild_tensor_v2(storage, offset, sizes, strides, requires_grad, hooks), the storage by its name.
  void put(const Tensor& tensor) {
    check(tensor.defined(), "save_pt: an undefined tensor has nothing to save");
    size_t key = storage_of(tensor);
    const Tensor& stored = storages_[key];
    put_global(kPtRebuildTensor);
    code("((");
    put_text("storage");
    for (auto& type : kPtStorageTypes)
      if (type.dtype == stored.dtype()) put_global(type.name);
    put_text(std::to_string(key));
    put_text("cpu");
    put(int64_t(stored.numel()));
    code("tQ");
    put(int64_t(0));
    put_sizes(stored.impl().sizes);
    put_sizes(stored.impl().strides);
    put(tensor.requires_grad() && tensor.is_leaf());
    put_global(kPtOrderedDict);
    code(")RtR");
  }

  size_t storage_of(const Tensor& tensor) {
    for (size_t i = 0; i < originals_.size(); ++i) {
      const TensorImpl &a = originals_[i].impl(), &b = tensor.impl();
      if (&a == &b || (a.buffer && a.buffer == b.buffer && a.offset == b.offset && a.sizes == b.sizes &&
                       a.strides == b.strides && a.dtype == b.dtype))
        return i;
    }
    originals_.push_back(tensor);
    storages_.push_back(tensor.detach().cpu().contiguous());
    return storages_.size() - 1;
  }

  std::string text_;
  TensorList originals_, storages_;
};

void write(ZipWriter archive, const PtValue& value) {
  PtProgram program(value);
  archive.add("archive/data.pkl", program.text(), false);
  archive.add("archive/byteorder", "little", false);
  for (size_t i = 0; i < program.storages().size(); ++i) {
    const Tensor& stored = program.storages()[i];
    const auto* bytes = static_cast<const char*>(stored.data_ptr());
    archive.add("archive/data/" + std::to_string(i), {bytes, size_t(int64_t(stored.nbytes()))}, false);
  }
  archive.add("archive/version", "3\n", false);
  archive.finish();
}

}  // namespace

void save_pt(const std::string& path, const PtValue& value) {
  PendingFile file("pt", path);
  write(ZipWriter(file, "save_pt"), value);
  file.commit();
}
void save_pt(std::ostream& out, const PtValue& value) {
  write(
      ZipWriter([&out](std::string_view bytes) { out.write(bytes.data(), std::streamsize(bytes.size())); }, "save_pt"),
      value);
  check(out.good(), "save_pt: the stream takes no more");
}

}  // namespace sinter::data
