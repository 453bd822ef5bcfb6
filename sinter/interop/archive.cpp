#include "sinter/interop/archive.h"

#include <algorithm>

#include "sinter/base/error.h"
#include "sinter/interop/json_api.h"
#include "sinter/interop/tensor_info_api.h"
#include "sinter/io/file.h"
#include "sinter/io/zip.h"

namespace sinter::interop {

using nlohmann::json;

namespace {

constexpr const char* kFormat = "load_exported";

struct Payload {
  std::string entry;
  bool use_pickle = false;
  bool requires_grad = false;
  TensorInfo info = {};
  std::vector<Expression> strides = {};
  Expression offset = {};
};

int64_t number_of(const JsonFile& file, const Expression& size) {
  file.require(size.is_number() && size.number >= 0, "a size of a stored tensor is no number");
  return size.number;
}

}  // namespace

struct Archive::Contents {
  explicit Contents(const std::string& path)
      : path(path), mapping(std::make_shared<MappedFile>(kFormat, path)), zip(mapping->bytes(), path, kFormat) {
    for (auto& entry : zip.entries()) entries.emplace(entry.name, &entry);
    check(!entries.empty(), "load_exported: '{}' is empty", path);
    find_root();
    read_index("data/weights/");
    read_index("data/constants/");
  }

  void find_root() {
    constexpr std::string_view kFormatEntry = "archive_format";
    for (auto& entry : zip.entries())
      if (entry.name.ends_with("/archive_format")) root = entry.name.substr(0, entry.name.size() - kFormatEntry.size());
    check(!entries.contains("serialized_exported_program.json"),
          "load_exported: '{}' is of the format before PyTorch 2.8, which holds pickles; export it again", path);
    check(!root.empty() && text("archive_format") == "pt2", "load_exported: '{}' is no file of torch.export.save",
          path);
    if (entries.contains(root + "byteorder"))
      check(text("byteorder") == "little", "load_exported: '{}' was written by a big-endian machine", path);
  }

  const ZipEntry& entry(const std::string& name) const {
    auto found = entries.find(root + name);
    check(found != entries.end(), "load_exported: '{}' has no entry '{}'", path, name);
    return *found->second;
  }

  std::string_view text(const std::string& name) const {
    const ZipEntry& found = entry(name);
    std::string_view out = zip.contents(found);
    zip.verify(found, out);
    return out;
  }

  // The one file of this kind in a folder.
  std::string find(std::string_view folder, std::string_view end) const {
    std::string out;
    for (auto& [name, entry] : entries) {
      if (!name.starts_with(root + std::string(folder)) || !name.ends_with(end)) continue;
      check(out.empty(), "load_exported: '{}' holds several models; save them one by one", path);
      out = name.substr(root.size());
    }
    return out;
  }

  void read_index(const std::string& folder) {
    const std::string name = find(folder, "_config.json");
    if (name.empty()) return;
    const JsonFile file(format("'{}' in '{}'", name, path));
    const json index = file.parse(text(name), JsonFile::Content::kIndex);
    file.require(index.is_object(), "it is no object");
    for (auto& [key, value] : file.object(index, "config").items()) {
      Payload payload{.entry = folder + file.text(value, "path_name")};
      payload.use_pickle = file.truth(value.value("use_pickle", json(false)));
      if (!payload.use_pickle) {
        const json& meta = file.object(value, "tensor_meta");
        payload.info = read_tensor_info(file, meta);
        for (auto& stride : file.array(meta, "strides")) payload.strides.push_back(read_size(file, stride));
        payload.offset = read_size(file, file.object(meta, "storage_offset"));
        payload.requires_grad = file.truth(meta.value("requires_grad", json(false)));
      }
      file.require(payloads.emplace(key, std::move(payload)).second, "a tensor is there twice");
    }
  }

  Tensor read(const std::string& name, const Payload& payload) const {
    check(!payload.use_pickle,
          "load_exported: '{}' in '{}' is a tensor of a class of its own, stored as a pickle; export the program after "
          "run_decompositions()",
          name, path);
    check(payload.info.dtype.has_value(), "load_exported: '{}' in '{}' has the dtype {}, which Sinter has not", name,
          path, payload.info.dtype_text);
    const DType dtype = *payload.info.dtype;
    const JsonFile file(format("'{}' in '{}'", name, path));
    std::string_view bytes = zip.contents(entry(payload.entry));
    file.require(payload.strides.size() == payload.info.sizes.size(), "it has not a stride for each size");
    IntList sizes, strides;
    int64_t last = number_of(file, payload.offset);
    const int64_t first = last;
    bool fits = true, empty = false;
    for (size_t d = 0; d < payload.strides.size(); ++d) {
      sizes.push_back(number_of(file, payload.info.sizes[d]));
      strides.push_back(number_of(file, payload.strides[d]));
      int64_t reach = 0;
      empty = empty || sizes.back() == 0;
      fits = fits && !__builtin_mul_overflow(std::max<int64_t>(sizes.back() - 1, 0), strides.back(), &reach) &&
             !__builtin_add_overflow(last, reach, &last);
    }
    const auto count = int64_t(bytes.size()) / item_size(dtype);
    file.require(fits && (empty || last < count), "it reaches outside its memory");
    // Strides of zero make many elements of few bytes: what all of them take when copied has to fit as well.
    checked_numel(kFormat, sizes);
    if (dtype == kBool)
      file.require(std::all_of(bytes.begin(), bytes.end(), [](char c) { return c == 0 || c == 1; }),
                   "a truth value is neither true nor false");
    // One tensor under several names is one here, too: its gradients add up.
    Tensor& view = views[format("{} {} {} {} {}", payload.entry, dtype, sizes, strides, first)];
    if (!view.defined())
      view = make_view(memory(payload.entry, bytes, dtype, count), sizes, strides, empty ? 0 : first);
    return view;
  }

  // An entry as a vector: what shares an entry shares its memory, as it did in PyTorch.
  Tensor memory(const std::string& entry, std::string_view bytes, DType dtype, int64_t count) const {
    Tensor& out = memories[{entry, dtype}];
    if (out.defined()) return out;
    char* data = const_cast<char*>(bytes.data());  // the mapping is writable, and private
    out = uintptr_t(data) % uint64_t(item_size(dtype)) != 0
              ? from_bytes(data, {count}, dtype)
              : from_blob(data, {count}, TensorOptions(dtype), [kept = mapping] {});
    return out;
  }

  std::string path, root;
  std::shared_ptr<MappedFile> mapping;
  ZipReader zip;
  std::map<std::string, const ZipEntry*> entries;
  std::map<std::string, Payload> payloads;
  mutable std::map<std::pair<std::string, DType>, Tensor> memories;
  mutable std::map<std::string, Tensor> views;
};

Archive::Archive(const std::string& path) : contents_(std::make_unique<const Contents>(path)) {}
Archive::~Archive() = default;

ExportedProgram Archive::program() const {
  const std::string name = contents_->find("models/", ".json");
  check(!name.empty(), "load_exported: '{}' holds no model", contents_->path);
  return read_program(contents_->text(name), format("'{}' in '{}'", name, contents_->path));
}

Archive::Stored Archive::tensor(const std::string& name) const {
  auto found = contents_->payloads.find(name);
  check(found != contents_->payloads.end(), "load_exported: '{}' has no tensor '{}'", contents_->path, name);
  return {contents_->read(name, found->second), found->second.requires_grad};
}

}  // namespace sinter::interop
