#pragma once
// An ONNX model as its file tells it. Texts and tensors are views of the file, which is kept mapped by whoever reads it; what the
// operators mean is not known here.
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sinter::interop::onnx {

// A TensorProto, read when it is wanted (tensors.h).
struct TensorBytes {
  std::string_view name, bytes;
};

struct Graph;

enum class AttributeKind : uint8_t { kNone, kFloat, kInt, kText, kTensor, kGraph, kFloats, kInts, kTexts, kOther };

struct Attribute {
  std::string_view name, reference;  // inside functions: the attribute of the function that it stands for
  AttributeKind kind = AttributeKind::kNone;
  float real = 0;
  int64_t integer = 0;
  std::string_view text = {};  // kTensor: a TensorProto
  std::vector<float> reals = {};
  std::vector<int64_t> integers = {};
  std::vector<std::string_view> texts = {};
  std::shared_ptr<const Graph> graph = {};
};

struct Node {
  std::string_view name, op, domain, overload;
  std::vector<std::string_view> inputs, outputs;  // an empty name: left out
  std::vector<Attribute> attributes;
};

// A size in the type of an input: a number, a name that stands for one, or nothing known.
struct Size {
  std::optional<int64_t> number;
  std::string_view name;
};

struct ValueInfo {
  std::string_view name;
  bool is_tensor = false;
  int64_t dtype = 0;
  std::optional<std::vector<Size>> sizes = {};
};

struct Graph {
  std::string_view name;
  std::vector<Node> nodes;
  std::vector<TensorBytes> initializers;
  std::vector<ValueInfo> inputs, outputs;
  bool has_sparse = false;
};

// The versions of the sets of operators by domain; "ai.onnx" is "".
using Opsets = std::map<std::string_view, int64_t>;

struct Function {
  std::string_view name, domain, overload;
  std::vector<std::string_view> inputs, outputs, attributes;
  std::vector<Attribute> defaults;
  std::vector<Node> nodes;
  Opsets opsets;
};

struct Model {
  int64_t ir_version = 0;
  std::string_view producer, producer_version;
  Graph graph;
  std::vector<Function> functions;
  Opsets opsets;
};

// `name` stands for the file in errors. An Error when the bytes are no ONNX model; memory is in proportion to them.
Model read_model(std::string_view bytes, const std::string& name);

}  // namespace sinter::interop::onnx
