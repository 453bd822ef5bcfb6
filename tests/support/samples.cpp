#include "tests/support/samples.h"

#include <algorithm>

#include "sinter/base/error.h"
#include "sinter/base/hash.h"
#include "sinter/graph/tolerance.h"
#include "sinter/ops/sample.h"
#include "sinter/tensor/tracer.h"

namespace sinter::testing {

namespace {

// A number in [0, 1) that depends only on its position.
double unit(uint64_t seed, uint64_t at) { return double(hash_mix(hash_mix(seed, 12345), at) >> 11) * 0x1p-53; }

double round_to(DType dtype, double v) {
  switch (dtype) {
    case DType::kFloat32: return double(float(v));
    case DType::kBFloat16: return double(bfloat16_to_float(float_to_bfloat16(float(v))));
    case DType::kFloat16: return double(float16_to_float(float_to_float16(float(v))));
    default: return v;
  }
}

void fill(Array& a, const Domain& domain, int64_t below, uint64_t seed) {
  for (int64_t at = 0; at < a.numel(); ++at) {
    double u = unit(seed, uint64_t(at));
    if (below > 0)
      a.set(at, int64_t(u * double(below)));
    else if (a.dtype == kBool)
      a.set(at, int64_t(u < 0.5));
    else if (a.floating())
      a.set(at, round_to(a.dtype, domain.low + u * (domain.high - domain.low)));
    else
      // Small integers around zero (or above it), zero among them.
      a.set(at, int64_t(std::floor(a.dtype == kUInt8 ? u * 12 : u * 13 - 6)));
  }
}

// Shapes that make broadcasting, vector bodies, tails, one element, no element and 0-d meet in a pointwise op.
std::vector<std::string> pointwise_texts(const Op& op) {
  static const char* const kFirst[] = {"x[37]", "x[3, 1, 20]", "x[]", "x[4, 0]", "x[5, 17]"};
  static const char* const kOthers[] = {"x[37]", "x[4, 1]", "x[3]", "x[1, 0]", "x[17]"};
  std::vector<std::string> texts;
  Typing typing = op.pointwise->typing;
  if (typing == Typing::kRandom) return {"i64[37]<1000, 3, 5"};
  for (size_t s = 0; s < std::size(kFirst); ++s) {
    std::string text;
    for (int i = 0; i < op.pointwise->arity; ++i) {
      std::string part = i % 2 == 0 ? kFirst[s] : kOthers[s];
      if (typing == Typing::kSelect && i == 0) part = "bool" + part.substr(1);
      if (i >= op.pointwise->tensors) part = std::to_string(0.5 * i);
      text += (i ? ", " : "") + part;
    }
    // The dtype conversion names its target.
    if (typing == Typing::kAttr) {
      static const char* const kTargets[] = {"f32", "i64", "bf16", "u8", "bool"};
      text += std::string(" | dtype=") + kTargets[s];
    }
    texts.push_back(text);
  }
  // A plain number in place of the last operand.
  if (op.pointwise->arity > 1) {
    std::string text = typing == Typing::kSelect ? "bool[37]" : "x[37]";
    for (int i = 1; i < op.pointwise->arity; ++i)
      text += i + 1 == op.pointwise->arity ? ", 2" : i >= op.pointwise->tensors ? ", -1" : ", x[37]";
    texts.push_back(text);
  }
  return texts;
}

}  // namespace

Sample sample_from(const Op& op, std::string_view text, DType dtype) {
  SampleText parsed = parse_sample(text);
  Sample sample{&op, std::string(text), {}, op.parse(parsed.attributes), parsed.attributes};
  uint64_t seed = hash_text(text);
  for (auto& operand : parsed.operands) {
    SampleOperand out{operand.scalar, operand.number, {}};
    if (!operand.scalar) {
      out.values = Array(operand.dtype.value_or(dtype), operand.sizes);
      fill(out.values, op.domain_of_inputs, operand.below, seed);
    }
    sample.operands.push_back(std::move(out));
    ++seed;
  }
  return sample;
}

std::vector<Type> Sample::types() const {
  std::vector<Type> out;
  for (auto& o : operands)
    out.push_back(o.scalar ? Type{o.number.dtype(), {}, {}, true}
                           : Type{o.values.dtype, Shape(std::span<const int64_t>(o.values.sizes)), {}, false});
  return out;
}

bool Sample::accepted() const {
  auto operand_types = types();
  try {
    op->infer(OpCall{*op, operand_types, attrs});
    return true;
  } catch (const Error&) {
    return false;
  }
}


std::vector<std::string> sample_texts(const Op& op) {
  if (op.kind == OpKind::kPointwise) return pointwise_texts(op);
  return {op.samples.begin(), op.samples.end()};
}

std::vector<Sample> samples_of(const Op& op, DType dtype) {
  std::vector<Sample> out;
  for (auto& text : sample_texts(op)) out.push_back(sample_from(op, text, dtype));
  return out;
}

const char* name_of(MemoryLayout layout) {
  switch (layout) {
    case MemoryLayout::kContiguous: return "contiguous";
    case MemoryLayout::kTransposed: return "transposed";
    case MemoryLayout::kSliced: return "sliced";
    case MemoryLayout::kBroadcast: break;
  }
  return "broadcast";
}

Tensor lay_out(Array& values, MemoryLayout layout) {
  if (layout == MemoryLayout::kContiguous || values.numel() == 0 || values.sizes.empty()) return to_tensor(values);
  size_t rank = values.sizes.size();
  IntList memory = values.sizes, strides = values.sizes;
  int64_t offset = 0;
  if (layout == MemoryLayout::kBroadcast) {
    size_t widest = 0;
    for (size_t d = 1; d < rank; ++d)
      if (values.sizes[d] > values.sizes[widest]) widest = d;
    IntList strides_in = contiguous_strides(values.sizes);
    for (int64_t at = 0; at < values.numel(); ++at) {
      int64_t first = at - at / strides_in[widest] % values.sizes[widest] * strides_in[widest];
      values.floating() ? values.set(at, values.f[size_t(first)]) : values.set(at, values.i[size_t(first)]);
    }
    memory[widest] = 1;
    strides = contiguous_strides(memory);
    strides[widest] = 0;
  } else if (layout == MemoryLayout::kTransposed) {
    int64_t stride = 1;
    for (size_t d = 0; d < rank; ++d) {
      strides[d] = stride;
      stride *= values.sizes[d];
    }
  } else {
    // Every second element along the last dimension of a larger tensor, not from its start.
    memory[rank - 1] = memory[rank - 1] * 2 + 3;
    strides = contiguous_strides(memory);
    strides[rank - 1] = 2;
    offset = 3;
  }
  int64_t count = 1;
  for (int64_t m : memory) count *= m;
  Array storage(values.dtype, IntList{count});
  fill(storage, Domain{-9, 9}, 0, 99);  // what lies between must not be read
  IntList at_strides = contiguous_strides(values.sizes);
  for (int64_t at = 0; at < values.numel(); ++at) {
    int64_t to = offset;
    for (size_t d = 0; d < rank; ++d) to += at / at_strides[d] % values.sizes[d] * strides[d];
    values.floating() ? storage.set(to, values.f[size_t(at)]) : storage.set(to, values.i[size_t(at)]);
  }
  return make_view(to_tensor(storage), values.sizes, strides, offset);
}

std::vector<Array> referee(const Sample& sample) {
  Graph graph;
  std::vector<Value> operands;
  std::vector<Array> inputs;
  auto types = sample.types();
  for (size_t i = 0; i < sample.operands.size(); ++i) {
    auto& o = sample.operands[i];
    if (o.scalar) {
      operands.push_back(graph.add_scalar(o.number));
    } else {
      operands.push_back(graph.add_input(types[i]));
      inputs.push_back(o.values);
    }
  }
  const Node& node = graph.add(*sample.op, operands, sample.attrs);
  std::vector<Value> results;
  for (size_t i = 0; i < node.types.size(); ++i) results.push_back(node.result(int(i)));
  graph.set_outputs(results);
  return interpret(graph, inputs);
}

Tensor moved(const Tensor& tensor, Device device) {
  auto impl = make_intrusive<TensorImpl>(tensor.impl());
  impl->device = device;
  impl->buffer = allocate_buffer(tensor.impl().buffer->bytes(), device);
  copy_bytes(impl->buffer->data(), device, tensor.impl().buffer->data(), tensor.device(), impl->buffer->bytes());
  return Tensor(std::move(impl));
}

TensorList run_eagerly(Sample& sample, MemoryLayout layout, Device device) {
  std::vector<TensorArg> args;
  for (auto& o : sample.operands) {
    if (o.scalar)
      args.emplace_back(o.number);
    else
      args.emplace_back(device.is_cpu() ? lay_out(o.values, layout) : moved(lay_out(o.values, layout), device));
  }
  return Dispatcher::instance().run(*sample.op, args, sample.attrs);
}

std::string difference(const Tensor& got, const Array& want, const Tolerance& tolerance) {
  if (got.dtype() != want.dtype) return format("dtype {} instead of {}", got.dtype(), want.dtype);
  if (got.impl().sizes != want.sizes) return format("shape {} instead of {}", got.impl().sizes, want.sizes);
  Array values = to_array(got);
  for (int64_t at = 0; at < want.numel(); ++at) {
    if (!want.floating()) {
      if (values.i[size_t(at)] != want.i[size_t(at)])
        return format("element {}: {} instead of {}", at, values.i[size_t(at)], want.i[size_t(at)]);
      continue;
    }
    double g = values.f[size_t(at)], w = want.f[size_t(at)], allowed = allowed_error(want.dtype, tolerance, w);
    if (!agrees(want.dtype, g, w, allowed)) return format("element {}: {} instead of {} (allowed error {})", at, g, w, allowed);
  }
  return "";
}

}  // namespace sinter::testing
