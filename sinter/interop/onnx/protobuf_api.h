#pragma once
// ONNX's messages, read with protozero. For .cpp files of this folder.
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "sinter/base/error.h"

namespace sinter::interop::onnx {

// A field that is of another kind than the format says.
struct WrongField : std::runtime_error {
  WrongField() : std::runtime_error("a field is of the wrong kind") {}
};

}  // namespace sinter::interop::onnx

// The library only asserts what files may do wrong.
#define protozero_assert(holds) ((holds) ? void() : throw ::sinter::interop::onnx::WrongField())
#include <protozero/pbf_reader.hpp>

namespace sinter::interop::onnx {

inline std::string_view view_of(protozero::pbf_reader& from) {
  auto view = from.get_view();
  return {view.data(), view.size()};
}

// Repeated numbers come packed, or one by one.
template <class Packed, class Single, class Out>
void append(const protozero::pbf_reader& from, Packed packed, Single single, std::vector<Out>& out) {
  if (from.wire_type() == protozero::pbf_wire_type::length_delimited)
    for (auto each : packed()) out.push_back(Out(each));
  else
    out.push_back(Out(single()));
}

// Runs a reader: what the library or a check finds wrong becomes an Error that names the file.
template <class Read>
auto guard_reading(const std::string& name, Read read) {
  auto damaged = [&](const char* what) {
    throw_error(format("load_onnx: {} is damaged, or no ONNX model: {}", name, what));
  };
  try {
    return read();
  } catch (const protozero::exception& wrong) {
    damaged(wrong.what());
  } catch (const WrongField& wrong) {
    damaged(wrong.what());
  } catch (const OutOfMemoryError&) {
    throw;
  } catch (const Error& error) {
    if (error.message().starts_with("load_onnx")) throw;
    throw_error(format("load_onnx: {}: {}", name, error.message()));
  }
  SINTER_INTERNAL_ASSERT(false);
  __builtin_unreachable();
}

}  // namespace sinter::interop::onnx
