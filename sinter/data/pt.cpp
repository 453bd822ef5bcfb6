#include "sinter/data/pt.h"

#include <cstring>
#include <deque>
#include <istream>
#include <iterator>

#include "sinter/base/error.h"
#include "sinter/data/pt_names.h"
#include "sinter/data/zip.h"
#include "sinter/io/file.h"

namespace sinter::data {

namespace {

constexpr int kMostNesting = 64;
constexpr size_t kMostRank = 64, kMostValues = size_t(1) << 24;

// What the program makes while it is read. Containers are shared, as the program shares them.
struct Made {
  enum class Kind : uint8_t { kNone, kBool, kInt, kFloat, kText, kTensor, kList, kTuple, kDict, kGlobal, kStorage };
  Kind kind = Kind::kNone;
  int64_t integer = 0;
  double real = 0;
  std::string text;
  Tensor tensor;
  std::vector<Made*> items;  // of a dictionary: keys and values in turn
};
using Kind = Made::Kind;

const PtStorageType* storage_type(std::string_view name) {
  for (auto& type : kPtStorageTypes)
    if (type.name == name) return &type;
  return nullptr;
}

class PtReader {
 public:
  // Of bytes that outlive it; errors call them `path`.
  PtReader(const std::string& path, std::string_view bytes) : path_(path), archive_(bytes, path, "pt") {
    for (auto& entry : archive_.entries()) {
      constexpr std::string_view kProgram = "/data.pkl";
      if (entry.name.ends_with(kProgram)) {
        check(program_entry_ == nullptr, "load_pt: '{}' holds two programs", path);
        root_ = entry.name.substr(0, entry.name.size() - kProgram.size() + 1);
        program_entry_ = &entry;
      }
      entries_[entry.name] = &entry;
    }
    check(program_entry_ != nullptr, "load_pt: '{}' holds no data.pkl; is it a file of torch.save?", path);
    if (auto order = entries_.find(root_ + "byteorder"); order != entries_.end())
      check(unpacked(archive_, *order->second) == "little", "load_pt: '{}' was written by a big-endian machine", path);
    program_ = unpacked(archive_, *program_entry_);
  }

  PtValue read() {
    while (step()) {
    }
    size_t values = 0;
    return finished(*top(), 0, values);
  }

 private:
  [[noreturn]] void damaged(const char* what) const {
    throw_error(format("load_pt: '{}' is damaged: {}", path_, what));
  }
  void require(bool holds, const char* what) const {
    if (!holds) damaged(what);
  }

  // --- the program's bytes
  std::string_view bytes(size_t count) {
    require(count <= program_.size() - at_, "its program is cut short");
    at_ += count;
    return std::string_view(program_).substr(at_ - count, count);
  }
  template <class T>
  T number() {
    T value;
    std::memcpy(&value, bytes(sizeof value).data(), sizeof value);
    return value;
  }
  std::string line() {
    size_t end = program_.find('\n', at_);
    require(end != std::string::npos, "its program is cut short");
    std::string out = program_.substr(at_, end - at_);
    at_ = end + 1;
    return out;
  }

  // --- its stack
  Made* make(Kind kind) {
    require(made_.size() < kMostValues, "it has too many values");
    made_.emplace_back();
    made_.back().kind = kind;
    return &made_.back();
  }
  Made* push(Made* value) {
    stack_.push_back(value);
    return value;
  }
  Made* push(Kind kind) { return push(make(kind)); }
  Made* top() const {
    require(!stack_.empty() && (marks_.empty() || stack_.size() > marks_.back()),
            "its program takes what is not there");
    return stack_.back();
  }
  Made* pop() {
    Made* value = top();
    stack_.pop_back();
    return value;
  }
  std::vector<Made*> pop_to_mark() {
    require(!marks_.empty() && marks_.back() <= stack_.size(), "its program takes what is not there");
    std::vector<Made*> out(stack_.begin() + int64_t(marks_.back()), stack_.end());
    stack_.resize(marks_.back());
    marks_.pop_back();
    return out;
  }
  void push_tuple(size_t count) {
    Made* tuple = make(Kind::kTuple);
    tuple->items.resize(count);
    for (size_t i = count; i-- > 0;) tuple->items[i] = pop();
    push(tuple);
  }
  void push_integer(int64_t value) { push(Kind::kInt)->integer = value; }
  void push_text(size_t size) { push(Kind::kText)->text = bytes(size); }
  void remember(uint32_t slot) { memo_[slot] = top(); }
  void recall(uint32_t slot) {
    auto found = memo_.find(slot);
    require(found != memo_.end(), "its program recalls what it never made");
    push(found->second);
  }
  void extend(Kind kind, const std::vector<Made*>& more) {
    Made* container = top();
    require(container->kind == kind, "its program fills what is no container");
    require(kind != Kind::kDict || more.size() % 2 == 0, "a dictionary has a key without a value");
    container->items.insert(container->items.end(), more.begin(), more.end());
  }

  bool step();
  bool step_value(uint8_t code);
  void push_global(const std::string& name);
  void push_long();
  void call();
  void find_storage();
  Tensor rebuild(const std::vector<Made*>& arguments) const;
  PtValue finished(const Made& value, int depth, size_t& values) const;

  std::string path_;
  ZipReader archive_;
  std::map<std::string, const ZipEntry*> entries_;
  const ZipEntry* program_entry_ = nullptr;
  std::string root_, program_;
  size_t at_ = 0;
  std::deque<Made> made_;
  std::vector<Made*> stack_;
  std::vector<size_t> marks_;
  std::map<uint32_t, Made*> memo_;
  std::map<std::string, Tensor> storages_;
};

// Globals are names; only calling one, or asking for a storage of its type, does something.
void PtReader::push_global(const std::string& name) {
  check(name == kPtOrderedDict || name == kPtRebuildTensor || name == kPtRebuildParameter || storage_type(name),
        "load_pt: '{}' asks for {}, which is neither plain data nor a tensor. Save a state dict with torch.save", path_,
        name);
  push(Kind::kGlobal)->text = name;
}

void PtReader::push_long() {
  auto size = number<uint8_t>();
  require(size <= 8, "an integer does not fit 64 bits");
  std::string_view digits = bytes(size);
  uint64_t value = size > 0 && digits.back() < 0 ? ~uint64_t(0) : 0;
  std::memcpy(&value, digits.data(), size);
  push_integer(int64_t(value));
}

// Arguments on top, what is called below.
void PtReader::call() {
  Made *arguments = pop(), *callee = pop();
  require(arguments->kind == Kind::kTuple && callee->kind == Kind::kGlobal, "its program calls what is no function");
  if (callee->text == kPtOrderedDict) {
    require(arguments->items.empty(), "an OrderedDict has arguments");
    push(Kind::kDict);
  } else if (callee->text == kPtRebuildTensor) {
    Tensor tensor = rebuild(arguments->items);
    push(Kind::kTensor)->tensor = tensor;
  } else {
    require(
        callee->text == kPtRebuildParameter && !arguments->items.empty() && arguments->items[0]->kind == Kind::kTensor,
        "its program calls a storage");
    push(Kind::kTensor)->tensor = arguments->items[0]->tensor;
  }
}

// ("storage", type, key, location, count) becomes the memory of that key, as a vector.
void PtReader::find_storage() {
  Made* id = pop();
  auto& items = id->items;
  require(id->kind == Kind::kTuple && items.size() == 5 && items[0]->kind == Kind::kText &&
              items[0]->text == "storage" && items[1]->kind == Kind::kGlobal && items[2]->kind == Kind::kText &&
              items[4]->kind == Kind::kInt,
          "a storage is described wrongly");
  const PtStorageType* type = storage_type(items[1]->text);
  require(type && items[4]->integer >= 0, "a storage is described wrongly");
  auto [found, fresh] = storages_.try_emplace(items[2]->text);
  if (fresh) {
    auto entry = entries_.find(root_ + "data/" + items[2]->text);
    require(entry != entries_.end(), "the memory of a tensor is missing");
    std::string contents = unpacked(archive_, *entry->second);
    require(uint64_t(items[4]->integer) <= contents.size() &&
                uint64_t(items[4]->integer) * uint64_t(item_size(type->dtype)) == contents.size(),
            "the memory of a tensor has another size than it says");
    if (type->dtype == kBool)
      for (char c : contents) require(c == 0 || c == 1, "a truth value is neither true nor false");
    found->second = from_bytes(contents.data(), {Dim(items[4]->integer)}, type->dtype);
  }
  require(found->second.dtype() == type->dtype, "the memory of a tensor has two types");
  push(Kind::kStorage)->tensor = found->second;
}

// (storage, offset, sizes, strides, …): a view of the storage, none of whose elements may lie outside.
Tensor PtReader::rebuild(const std::vector<Made*>& arguments) const {
  require(arguments.size() >= 4 && arguments[0]->kind == Kind::kStorage && arguments[1]->kind == Kind::kInt &&
              arguments[2]->kind == Kind::kTuple && arguments[3]->kind == Kind::kTuple,
          "a tensor is described wrongly");
  auto &sizes = arguments[2]->items, &strides = arguments[3]->items;
  require(sizes.size() == strides.size() && sizes.size() <= kMostRank, "a tensor is described wrongly");
  IntList extents, steps;
  int64_t last = arguments[1]->integer, count = 1;
  bool fits = last >= 0, empty = false;
  for (size_t d = 0; d < sizes.size(); ++d) {
    require(sizes[d]->kind == Kind::kInt && strides[d]->kind == Kind::kInt, "a tensor is described wrongly");
    const int64_t size = sizes[d]->integer, stride = strides[d]->integer;
    int64_t reach = 0;
    fits = fits && size >= 0 && stride >= 0;
    empty = empty || size == 0;
    fits = fits && !__builtin_mul_overflow(count, std::max<int64_t>(size, 1), &count) &&
           !__builtin_mul_overflow(std::max<int64_t>(size - 1, 0), stride, &reach) &&
           !__builtin_add_overflow(last, reach, &last);
    extents.push_back(size);
    steps.push_back(stride);
  }
  const Tensor& memory = arguments[0]->tensor;
  require(fits && (empty || last < memory.numel()), "a tensor reaches outside its memory");
  return make_view(memory, extents, steps, empty ? 0 : arguments[1]->integer);
}

// Values, by the letters of the pickle format. Whether the code was one of them.
bool PtReader::step_value(uint8_t code) {
  switch (code) {
    case 'N':
      push(Kind::kNone);
      return true;
    case 0x88:
      push(Kind::kBool)->integer = 1;
      return true;
    case 0x89:
      push(Kind::kBool);
      return true;
    case 'J':
      push_integer(number<int32_t>());
      return true;
    case 'K':
      push_integer(number<uint8_t>());
      return true;
    case 'M':
      push_integer(number<uint16_t>());
      return true;
    case 0x8a:
      push_long();
      return true;
    case 'G': {
      uint64_t bits = __builtin_bswap64(number<uint64_t>());
      std::memcpy(&push(Kind::kFloat)->real, &bits, 8);
      return true;
    }
    case 'X':
      push_text(number<uint32_t>());
      return true;
    case 0x8c:
      push_text(number<uint8_t>());
      return true;
    case '}':
      push(Kind::kDict);
      return true;
    case ']':
      push(Kind::kList);
      return true;
    case ')':
      push(Kind::kTuple);
      return true;
    case 0x85:
      push_tuple(1);
      return true;
    case 0x86:
      push_tuple(2);
      return true;
    case 0x87:
      push_tuple(3);
      return true;
    default:
      return false;
  }
}

// Whether there is more to do.
bool PtReader::step() {
  const auto code = number<uint8_t>();
  if (step_value(code)) return true;
  switch (code) {
    case 0x80:
      require(number<uint8_t>() <= 5, "its program is of an unknown version");
      break;
    case 0x95:
      number<uint64_t>();
      break;  // a frame, which only tells how much to read at once
    case '(':
      marks_.push_back(stack_.size());
      break;
    case 't': {
      auto items = pop_to_mark();
      push(Kind::kTuple)->items = std::move(items);
      break;
    }
    case 'q':
      remember(number<uint8_t>());
      break;
    case 'r':
      remember(number<uint32_t>());
      break;
    case 0x94:
      remember(uint32_t(memo_.size()));
      break;
    case 'h':
      recall(number<uint8_t>());
      break;
    case 'j':
      recall(number<uint32_t>());
      break;
    case 'a': {
      Made* item = pop();
      extend(Kind::kList, {item});
      break;
    }
    case 'e':
      extend(Kind::kList, pop_to_mark());
      break;
    case 's': {
      Made *value = pop(), *key = pop();
      extend(Kind::kDict, {key, value});
      break;
    }
    case 'u':
      extend(Kind::kDict, pop_to_mark());
      break;
    case 'c': {
      std::string module = line();
      push_global(module + "." + line());
      break;
    }
    case 0x93: {
      Made *name = pop(), *module = pop();
      require(name->kind == Kind::kText && module->kind == Kind::kText, "a name is no text");
      push_global(module->text + "." + name->text);
      break;
    }
    case 'R':
      call();
      break;
    // A state dict carries the versions of its modules as an attribute, which is left out.
    case 'b':
      pop();
      require(top()->kind == Kind::kDict, "its program gives attributes to a value");
      break;
    case 'Q':
      find_storage();
      break;
    case '.':
      return false;
    default:
      throw_error(
          format("load_pt: the program of '{}' has the step {}, which plain data does not need", path_, int(code)));
  }
  return true;
}

// A tree: what is shared is there several times, and what holds itself is refused.
PtValue PtReader::finished(const Made& value, int depth, size_t& values) const {
  require(depth < kMostNesting, "its values are nested too deeply");
  require(++values < kMostValues, "it has too many values");
  PtValue out;
  switch (value.kind) {
    case Kind::kNone:
      break;
    case Kind::kBool:
      out.value = value.integer != 0;
      break;
    case Kind::kInt:
      out.value = value.integer;
      break;
    case Kind::kFloat:
      out.value = value.real;
      break;
    case Kind::kText:
      out.value = value.text;
      break;
    case Kind::kTensor:
      out.value = value.tensor;
      break;
    case Kind::kList:
    case Kind::kTuple: {
      PtValue::List list;
      for (auto* item : value.items) list.push_back(finished(*item, depth + 1, values));
      out.value = std::move(list);
      break;
    }
    case Kind::kDict: {
      PtValue::Dict dict;
      for (size_t i = 0; i < value.items.size(); i += 2)
        dict.emplace_back(finished(*value.items[i], depth + 1, values),
                          finished(*value.items[i + 1], depth + 1, values));
      out.value = std::move(dict);
      break;
    }
    default:
      damaged("it holds a name or memory in place of a value");
  }
  return out;
}

const PtValue* find(const PtValue& dict, std::string_view key) {
  if (!dict.is<PtValue::Dict>()) return nullptr;
  for (auto& [name, value] : dict.as<PtValue::Dict>())
    if (name.is<std::string>() && name.as<std::string>() == key) return &value;
  return nullptr;
}

void collect(const PtValue& value, const std::string& name, NamedTensors& out) {
  if (value.is<Tensor>()) out.emplace_back(name, value.as<Tensor>());
  if (!value.is<PtValue::Dict>()) return;
  for (auto& [key, item] : value.as<PtValue::Dict>())
    if (key.is<std::string>())
      collect(item, name.empty() ? key.as<std::string>() : name + "." + key.as<std::string>(), out);
}

}  // namespace

const PtValue& PtValue::at(std::string_view key) const {
  const PtValue* found = find(*this, key);
  check(found != nullptr, "load_pt: there is no entry '{}'", key);
  return *found;
}
bool PtValue::contains(std::string_view key) const { return find(*this, key) != nullptr; }

PtValue load_pt(const std::string& path) {
  MappedFile file("pt", path);
  return PtReader(path, file.bytes()).read();
}
PtValue load_pt(std::istream& in) {
  const std::string bytes(std::istreambuf_iterator<char>(in), {});
  return PtReader("the stream", bytes).read();
}

NamedTensors pt_tensors(const PtValue& value) {
  NamedTensors out;
  collect(value, "", out);
  return out;
}
NamedTensors load_pt_tensors(const std::string& path) { return pt_tensors(load_pt(path)); }

}  // namespace sinter::data
