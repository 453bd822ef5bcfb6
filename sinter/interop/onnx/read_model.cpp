#include "sinter/interop/onnx/model.h"
#include "sinter/interop/onnx/protobuf_api.h"

namespace sinter::interop::onnx {

namespace {

using protozero::pbf_reader;

constexpr int kMostNesting = 32;  // graphs in graphs, and functions' graphs
constexpr size_t kMostRank = 64;

std::string_view domain_of(std::string_view written) { return written == "ai.onnx" ? std::string_view() : written; }

TensorBytes tensor_bytes(std::string_view bytes) {
  TensorBytes out{.name = {}, .bytes = bytes};
  for (pbf_reader from(bytes.data(), bytes.size()); from.next();) {
    if (from.tag() == 8)
      out.name = view_of(from);
    else
      from.skip();
  }
  return out;
}

class ModelReader {
 public:
  Model read(pbf_reader from);

 private:
  Graph read_graph(pbf_reader from, int depth);
  Node read_node(pbf_reader from, int depth);
  Attribute read_attribute(pbf_reader from, int depth);
  Function read_function(pbf_reader from);
  static void read_opset(pbf_reader from, Opsets& out);
  static ValueInfo read_value_info(pbf_reader from);
  static void read_type(pbf_reader from, ValueInfo& out);
  static std::vector<Size> read_sizes(pbf_reader from);
};

void ModelReader::read_opset(pbf_reader from, Opsets& out) {
  std::string_view domain;
  int64_t version = 0;
  while (from.next()) {
    if (from.tag() == 1)
      domain = domain_of(view_of(from));
    else if (from.tag() == 2)
      version = from.get_int64();
    else
      from.skip();
  }
  out[domain] = version;
}

std::vector<Size> ModelReader::read_sizes(pbf_reader from) {
  std::vector<Size> out;
  while (from.next()) {
    if (from.tag() != 1) {
      from.skip();
      continue;
    }
    Size size;
    for (pbf_reader dim = from.get_message(); dim.next();) {
      if (dim.tag() == 1)
        size.number = dim.get_int64();
      else if (dim.tag() == 2)
        size.name = view_of(dim);
      else
        dim.skip();
    }
    check(out.size() < kMostRank, "a tensor has too many dimensions");
    check(size.number.value_or(0) >= 0, "a size is {}", size.number.value_or(0));
    out.push_back(size);
  }
  return out;
}

void ModelReader::read_type(pbf_reader from, ValueInfo& out) {
  while (from.next()) {
    if (from.tag() != 1) {  // a sequence, a map, an optional
      from.skip();
      continue;
    }
    out.is_tensor = true;
    for (pbf_reader tensor = from.get_message(); tensor.next();) {
      if (tensor.tag() == 1)
        out.dtype = tensor.get_int64();
      else if (tensor.tag() == 2)
        out.sizes = read_sizes(tensor.get_message());
      else
        tensor.skip();
    }
  }
}

ValueInfo ModelReader::read_value_info(pbf_reader from) {
  ValueInfo out;
  while (from.next()) {
    if (from.tag() == 1)
      out.name = view_of(from);
    else if (from.tag() == 2)
      read_type(from.get_message(), out);
    else
      from.skip();
  }
  return out;
}

AttributeKind kind_of(int64_t type) {
  constexpr AttributeKind kKinds[] = {AttributeKind::kNone,   AttributeKind::kFloat,  AttributeKind::kInt,
                                      AttributeKind::kText,   AttributeKind::kTensor, AttributeKind::kGraph,
                                      AttributeKind::kFloats, AttributeKind::kInts,   AttributeKind::kTexts};
  return type >= 0 && type < std::ssize(kKinds) ? kKinds[type] : AttributeKind::kOther;
}

Attribute ModelReader::read_attribute(pbf_reader from, int depth) {
  Attribute out;
  while (from.next()) {
    switch (from.tag()) {
      case 1: out.name = view_of(from); break;
      case 2: out.real = from.get_float(); break;
      case 3: out.integer = from.get_int64(); break;
      case 4: out.text = view_of(from); break;
      case 5: out.text = view_of(from); break;
      case 6: out.graph = std::make_shared<const Graph>(read_graph(from.get_message(), depth + 1)); break;
      case 7: append(from, [&] { return from.get_packed_float(); }, [&] { return from.get_float(); }, out.reals); break;
      case 8: append(from, [&] { return from.get_packed_int64(); }, [&] { return from.get_int64(); }, out.integers); break;
      case 9: out.texts.push_back(view_of(from)); break;
      case 20: out.kind = kind_of(from.get_enum()); break;
      case 21: out.reference = view_of(from); break;
      default: from.skip();
    }
  }
  check(!out.name.empty(), "an attribute has no name");
  check(out.kind != AttributeKind::kGraph || out.graph, "the attribute '{}' has no graph", out.name);
  return out;
}

Node ModelReader::read_node(pbf_reader from, int depth) {
  Node out;
  while (from.next()) {
    switch (from.tag()) {
      case 1: out.inputs.push_back(view_of(from)); break;
      case 2: out.outputs.push_back(view_of(from)); break;
      case 3: out.name = view_of(from); break;
      case 4: out.op = view_of(from); break;
      case 5: out.attributes.push_back(read_attribute(from.get_message(), depth)); break;
      case 7: out.domain = domain_of(view_of(from)); break;
      case 8: out.overload = view_of(from); break;
      default: from.skip();
    }
  }
  check(!out.op.empty(), "a node has no operator");
  return out;
}

Graph ModelReader::read_graph(pbf_reader from, int depth) {
  check(depth <= kMostNesting, "graphs are nested too deeply");
  Graph out;
  while (from.next()) {
    switch (from.tag()) {
      case 1: out.nodes.push_back(read_node(from.get_message(), depth)); break;
      case 2: out.name = view_of(from); break;
      case 5: out.initializers.push_back(tensor_bytes(view_of(from))); break;
      case 11: out.inputs.push_back(read_value_info(from.get_message())); break;
      case 12: out.outputs.push_back(read_value_info(from.get_message())); break;
      case 15:
        out.has_sparse = true;
        from.skip();
        break;
      default: from.skip();
    }
  }
  return out;
}

Function ModelReader::read_function(pbf_reader from) {
  Function out;
  while (from.next()) {
    switch (from.tag()) {
      case 1: out.name = view_of(from); break;
      case 4: out.inputs.push_back(view_of(from)); break;
      case 5: out.outputs.push_back(view_of(from)); break;
      case 6: out.attributes.push_back(view_of(from)); break;
      case 7: out.nodes.push_back(read_node(from.get_message(), 1)); break;
      case 9: read_opset(from.get_message(), out.opsets); break;
      case 10: out.domain = domain_of(view_of(from)); break;
      case 11: out.defaults.push_back(read_attribute(from.get_message(), 1)); break;
      case 13: out.overload = view_of(from); break;
      default: from.skip();
    }
  }
  check(!out.name.empty(), "a function has no name");
  return out;
}

Model ModelReader::read(pbf_reader from) {
  Model out;
  bool has_graph = false;
  while (from.next()) {
    switch (from.tag()) {
      case 1: out.ir_version = from.get_int64(); break;
      case 2: out.producer = view_of(from); break;
      case 3: out.producer_version = view_of(from); break;
      case 7:
        check(!has_graph, "there are two graphs");
        out.graph = read_graph(from.get_message(), 0);
        has_graph = true;
        break;
      case 8: read_opset(from.get_message(), out.opsets); break;
      case 25: out.functions.push_back(read_function(from.get_message())); break;
      default: from.skip();
    }
  }
  check(has_graph, "it holds no graph");
  check(out.ir_version > 0, "it tells no version of the format");
  return out;
}

}  // namespace

Model read_model(std::string_view bytes, const std::string& name) {
  return guard_reading(name, [&] { return ModelReader().read(pbf_reader(bytes.data(), bytes.size())); });
}

}  // namespace sinter::interop::onnx
