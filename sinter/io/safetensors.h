#pragma once
// The safetensors format: 8 bytes of header length, a JSON header, the tensors' bytes. Files come from anywhere, so
// every number in the header is checked before it is used; what is wrong throws an Error that names the file.
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sinter/base/api.h"
#include "sinter/base/error.h"
#include "sinter/tensor/tensor.h"

namespace sinter SINTER_API {

// Values by key in the order of insertion, as LibTorch's: a vector of its items, each a std::pair with names for its halves.
//
//   for (auto& item : net->named_parameters()) std::cout << item.key() << item.value();
//   for (auto& [name, tensor] : net->named_parameters()) …
//   net->named_parameters()["fc.weight"]
template <class Key, class Value>
struct OrderedDictItem : std::pair<Key, Value> {
  using std::pair<Key, Value>::pair;
  OrderedDictItem(std::pair<Key, Value> item) : std::pair<Key, Value>(std::move(item)) {}

  const Key& key() const { return this->first; }
  Value& value() { return this->second; }
  const Value& value() const { return this->second; }
  Value& operator*() { return this->second; }
  const Value& operator*() const { return this->second; }
  Value* operator->() { return &this->second; }
  const Value* operator->() const { return &this->second; }
};

}  // namespace sinter

// An item is a pair also where types are asked: by compiled functions, whose arguments and results dictionaries may be.
template <class Key, class Value>
struct std::tuple_size<sinter::OrderedDictItem<Key, Value>> : std::tuple_size<std::pair<Key, Value>> {};
template <size_t I, class Key, class Value>
struct std::tuple_element<I, sinter::OrderedDictItem<Key, Value>> : std::tuple_element<I, std::pair<Key, Value>> {};

namespace sinter SINTER_API {

template <class Key, class Value>
class OrderedDict : public std::vector<OrderedDictItem<Key, Value>> {
 public:
  using Item = OrderedDictItem<Key, Value>;
  using Base = std::vector<Item>;
  using Base::Base;
  using Base::insert;
  using Base::operator[];
  OrderedDict() = default;
  OrderedDict(std::initializer_list<Item> items) : Base(items) {}

  // The value of a key; null when there is none.
  const Value* find(const Key& key) const {
    for (auto& item : *this)
      if (item.first == key) return &item.second;
    return nullptr;
  }
  Value* find(const Key& key) { return const_cast<Value*>(std::as_const(*this).find(key)); }
  bool contains(const Key& key) const { return find(key) != nullptr; }
  // An Error when there is none.
  const Value& operator[](const Key& key) const {
    const Value* value = find(key);
    check(value, "OrderedDict: no key '{}'", key);
    return *value;
  }
  Value& operator[](const Key& key) { return const_cast<Value&>(std::as_const(*this)[key]); }

  // At the end; an Error when the key is there.
  Value& insert(const Key& key, Value value) {
    check(!contains(key), "OrderedDict: the key '{}' is there already", key);
    this->emplace_back(key, std::move(value));
    return this->back().second;
  }
  void update(const OrderedDict& other) {
    for (auto& [key, value] : other) insert(key, value);
  }

  // Nothing happens when there is no such key.
  void erase(const Key& key) {
    std::erase_if(static_cast<Base&>(*this), [&](const Item& item) { return item.first == key; });
  }
  using Base::erase;

  const Base& items() const { return *this; }
  std::vector<std::pair<Key, Value>> pairs() const { return {this->begin(), this->end()}; }
  std::vector<Key> keys() const {
    std::vector<Key> keys;
    for (auto& item : *this) keys.push_back(item.first);
    return keys;
  }
  std::vector<Value> values() const {
    std::vector<Value> values;
    for (auto& item : *this) values.push_back(item.second);
    return values;
  }
  bool is_empty() const { return this->empty(); }
};

// Names and tensors in a fixed order.
using NamedTensors = OrderedDict<std::string, Tensor>;

struct SafeTensorInfo {
  std::string dtype_text;      // as in the file: "BF16", "F8_E4M3"
  std::optional<DType> dtype;  // none when sinter has no such type
  Shape shape;
  uint64_t begin = 0, end = 0;  // bytes, counted from the first byte after the header
};

// A file mapped into memory. Reading it costs no more than the header until the values are used. Copies share the
// mapping. The file must not be truncated while it is in use; replacing it by a rename is fine.
class SafeTensorsFile {
 public:
  explicit SafeTensorsFile(const std::string& path);
  // One that lies inside another file, from a multiple of 4096 on.
  SafeTensorsFile(const std::string& path, uint64_t offset, uint64_t size);

  // In the order of the header.
  const std::vector<std::string>& names() const;
  const std::map<std::string, std::string>& metadata() const;
  bool contains(std::string_view name) const;
  const SafeTensorInfo& info(std::string_view name) const;
  // A view of the mapping, which lives as long as the view; copied only where the file does not align it. Writing to it
  // changes neither the file nor other readers of it, but is seen by other tensors of this name from this object.
  Tensor tensor(std::string_view name) const;
  // The same of a tensor whose elements are bytes of a type that sinter does not have: u8.
  Tensor codes(std::string_view name) const;

 private:
  struct Contents;
  std::shared_ptr<const Contents> contents_;
};

NamedTensors load_safetensors(const std::string& path);

// Writes a file that appears whole or not at all. The header keeps the order given; the bytes are laid out by falling
// element size, so that every tensor is aligned in the file.
void save_safetensors(const std::string& path, const NamedTensors& tensors,
                      const std::map<std::string, std::string>& metadata = {});

}  // namespace sinter
