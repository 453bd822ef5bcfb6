// What generated kernels call things of their own hides nothing of a prelude: such names end with an underscore, and no name of
// a prelude does.
#include <gtest/gtest.h>

#include <cctype>
#include <set>

#include "sinter/autograd/autograd.h"
#include "sinter/codegen/cpu/emit.h"
#include "sinter/codegen/cuda/gemv.h"
#include "sinter/codegen/cuda/prelude.h"
#include "sinter/codegen/cuda/tile.h"
#include "sinter/codegen/gpu/emit.h"
#include "sinter/engine/cpu/engine.h"
#include "sinter/engine/cuda/nest_step.h"
#include "sinter/engine/eager/eager.h"
#include "sinter/engine/executable/ready_graph.h"
#include "sinter/loops/schedule.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/runtime/cuda/module.h"
#include "tests/codegen/nests.h"

namespace sinter {
namespace {

struct Token {
  std::string text, before;  // an identifier, and the token in front of it; "type*" where that belongs to a type
  char next = 0;             // the character right behind it, a space included
};

// The identifiers of a text without comments, strings and lines of the preprocessor.
std::vector<Token> identifiers(const std::string& text, bool with_macros) {
  std::vector<Token> out;
  std::string before;
  bool starts_line = true;
  for (size_t at = 0; at < text.size();) {
    char c = text[at];
    if (c == '\n') starts_line = true;
    if (std::isspace((unsigned char)c)) {
      ++at;
    } else if (text.compare(at, 2, "//") == 0 || (c == '#' && starts_line && !with_macros)) {
      at = std::min(text.find('\n', at), text.size());
    } else if (c == '"') {
      for (++at; text[at] != '"'; ++at) at += text[at] == '\\';
      ++at;
      before = "\"";
    } else if (std::isalpha((unsigned char)c) || c == '_') {
      size_t end = at;
      while (end < text.size() && (std::isalnum((unsigned char)text[end]) || text[end] == '_')) ++end;
      out.push_back({text.substr(at, end - at), before, end < text.size() ? text[end] : '\0'});
      before = out.back().text;
      at = end;
      starts_line = false;
    } else if (std::isdigit((unsigned char)c)) {
      while (at < text.size() && (std::isalnum((unsigned char)text[at]) || text[at] == '.')) ++at;
      before = "0";
      starts_line = false;
    } else {
      bool behind_type =
          at > 0 && (std::isalnum((unsigned char)text[at - 1]) || text[at - 1] == '_' || text[at - 1] == '>');
      bool is_scope = text.compare(at, 2, "::") == 0;
      before = is_scope ? "::" : (c == '*' || c == '&') && behind_type ? "type*" : std::string(1, c);
      at += is_scope ? 2 : 1;
      starts_line = false;
    }
  }
  return out;
}

bool is_own(const std::string& name) { return name.ends_with("_") && !name.ends_with("__"); }

// The names of a prelude.
struct Prelude {
  std::set<std::string> all, functions;
  std::set<std::string> asked;  // members that its templates ask a kernel's shape for

  explicit Prelude(const std::string& text) {
    auto tokens = identifiers(text, true);
    std::set<std::string> types;
    bool defines = false;
    for (size_t i = 0; i < tokens.size(); ++i) {
      auto& token = tokens[i];
      if (token.before == "using" || token.before == "struct") types.insert(token.text);
      defines = defines || token.text == "typedef";
      bool ends = token.next == ';' || (i + 1 < tokens.size() &&
                                        (tokens[i + 1].text == "__attribute__" || tokens[i + 1].text == "K_VEC"));
      if (defines && ends) types.insert(token.text);
      defines = defines && !ends;
    }
    for (size_t i = 0; i < tokens.size(); ++i) {
      auto& token = tokens[i];
      all.insert(token.text);
      if (token.next == '(') functions.insert(token.text);
      // K_LIFT1(exp) declares exp.
      if (token.next == '(' && token.text.starts_with("K_") && i + 1 < tokens.size())
        functions.insert(tokens[i + 1].text);
      if (token.before == "::" && i > 0 && (tokens[i - 1].text == "S" || tokens[i - 1].text == "G"))
        asked.insert(token.text);
    }
    for (auto& type : types) functions.erase(type);
  }
};

const std::set<std::string> kWords = {
    "alignas",  "auto",     "bool",     "break",    "char",      "class",   "const",         "constexpr",
    "continue", "double",   "else",     "enum",     "explicit",  "extern",  "false",         "float",
    "for",      "if",       "int",      "long",     "namespace", "return",  "sizeof",        "static",
    "struct",   "template", "true",     "typedef",  "unsigned",  "using",   "void",          "volatile",
    "while",    "asm",      "blockIdx", "blockDim", "threadIdx", "gridDim", "always_inline", "k"};
const std::set<std::string> kNoTypes = {"const",     "return",  "else",   "struct",    "class",    "static",
                                        "constexpr", "typedef", "using",  "namespace", "explicit", "template",
                                        "enum",      "extern",  "sizeof", "asm",       "alignas"};

// The first name in a kernel's text that is not where it belongs; empty when there is none. `kernel` is what the names of its
// functions and structs begin with.
std::string misplaced(const std::string& text, const Prelude& prelude, const std::string& kernel) {
  for (auto& token : identifiers(text, false)) {
    auto& name = token.text;
    if (is_own(name) || kWords.contains(name) || name.starts_with("__") || name.starts_with(kernel)) continue;
    if (token.before == "." || token.before == "::" || prelude.asked.contains(name)) continue;
    if (prelude.functions.contains(name)) {
      if (token.next != '(' && token.next != '<' && token.next != ':') return name + ": it hides a function";
      continue;
    }
    if (!prelude.all.contains(name)) return name + ": it is neither the prelude's nor marked as the kernel's own";
    bool behind_word = !token.before.empty() && std::isalpha((unsigned char)token.before[0]);
    if (behind_word && !kNoTypes.contains(token.before)) return name + ": it hides what the prelude calls so";
  }
  return {};
}

TEST(Names, NoPreludeHasAKernelsOwn) {
  for (auto& text : {codegen::cpu_prelude(4), codegen::cpu_prelude(8), codegen::cpu_prelude(16),
                     codegen::cuda_prelude(), codegen::gemv_prelude()})
    for (auto& token : identifiers(text, true)) EXPECT_FALSE(is_own(token.text) && token.next != '#') << token.text;
}

TEST(Names, ThePreludesFunctionsAreFound) {
  Prelude cuda(codegen::cuda_prelude()), cpu(codegen::cpu_prelude(16));
  for (auto* name : {"square", "tanh", "erf", "maximum", "load", "store1", "checked_index", "rand_normal_f32", "join"})
    EXPECT_TRUE(cuda.functions.contains(name)) << name;
  for (auto* name : {"square", "tanh", "erf", "maximum", "load", "store1", "checked_index", "transpose", "first_lanes"})
    EXPECT_TRUE(cpu.functions.contains(name)) << name;
}

TEST(Names, WhatHidesIsSeen) {
  Prelude prelude(codegen::cuda_prelude());
  EXPECT_EQ(misplaced("const float t0_ = square(in0_);", prelude, "k_"), "");
  for (auto* text :
       {"for (i64 square = b_.index; square < 3; ++square) {}", "const float erf = 1;", "void k_f(float tanh) {}"})
    EXPECT_NE(misplaced(text, prelude, "k_").find("hides a function"), std::string::npos) << text;
  EXPECT_NE(misplaced("const i64 i32 = 1;", prelude, "k_").find("hides what the prelude calls so"), std::string::npos);
  EXPECT_NE(misplaced("const i64 i17 = 1;", prelude, "k_").find("i17: it is neither"), std::string::npos);
}

// Nests of every op, in one dtype that it takes.
std::vector<LoopNest> nests_of_all_ops() {
  std::vector<LoopNest> out;
  for (auto* op : all_ops()) {
    if (!is_loops(*op)) continue;
    bool found = false;
    for (DType dtype : {kFloat32, kInt64, kBool})
      for (auto& sample : testing::samples_of(*op, dtype)) {
        if (found || !sample.accepted()) continue;
        auto nest = nest_of(sample);
        if (!nest) continue;
        out.push_back(std::move(*nest));
        found = true;
      }
  }
  // Strides that lanes and squares transpose.
  out.push_back(transposed_nest(kFloat32));
  return out;
}

std::vector<LoopNest> fused_nests() {
  std::vector<LoopNest> out;
  for (DType dtype : {kFloat32, kBFloat16}) {
    out.push_back(softmax_nest(dtype));
    out.push_back(rotary_nest(dtype));
  }
  out.push_back(padded_sum_nest());
  out.push_back(epilogue_nest());
  return out;
}

TEST(Names, KernelsOfTheCpu) {
  Prelude prelude(codegen::cpu_prelude(16));
  for (auto& nest : nests_of_all_ops()) {
    auto kernel = codegen::emit_cpu(nest, schedule(nest), "k_test");
    EXPECT_EQ(misplaced(kernel.text, prelude, "k_test"), "") << kernel.text;
  }
  for (auto& nest : fused_nests()) {
    auto kernel = codegen::emit_cpu(nest, schedule(nest), "k_test");
    EXPECT_EQ(misplaced(kernel.text, prelude, "k_test"), "") << kernel.text;
  }
}

TEST(Names, KernelsOfTheGpu) {
  Prelude prelude(codegen::cuda_prelude());
  auto expect_right = [&](const codegen::GpuKernelText& kernel) {
    EXPECT_EQ(misplaced(kernel.text, prelude, "k_test"), "") << kernel.text;
  };
  for (auto& nest : nests_of_all_ops())
    for (bool lanes : {true, false}) expect_right(cuda_text(nest, "k_test", {.lanes = lanes}));
  for (auto& nest : fused_nests()) {
    if (nest.tiles) {
      for (KernelPart part : {KernelPart::kElement, KernelPart::kRun, KernelPart::kKernel})
        expect_right(cuda_text(nest, "k_test", {.part = part, .memory = kBFloat16}));
      continue;
    }
    for (int vectors : {0, 4}) expect_right(cuda_text(nest, "k_test", {.held_vectors = vectors}));
    expect_right(cuda_text(nest, "k_test", {.part = KernelPart::kRows}));
    expect_right(codegen::emit_gpu_siblings({cuda_text(nest, "k_test_a"), cuda_text(nest, "k_test_b")}, "k_test"));
  }
}

TEST(Names, ProductsOfTheGpu) {
  Prelude skinny(codegen::cuda_prelude() + codegen::gemv_prelude());
  for (bool k_contiguous : {true, false})
    for (bool together : {true, false}) {
      codegen::GemvSpec spec{.name = "k_test",
                             .a = kBFloat16,
                             .b = kBFloat16,
                             .c = kBFloat16,
                             .m = 1,
                             .k = 2048,
                             .slots = 16,
                             .together = together,
                             .a_slot = 0,
                             .a_stride = {.value = 2048}};
      for (int p = 0; p < 2; ++p)
        spec.parts.push_back({.n = 512,
                              .b_slot = 1 + p,
                              .k_contiguous = k_contiguous,
                              .b_stride = {.value = 2048},
                              .c_slot = 4 + p,
                              .c_stride = {.value = 512}});
      spec.prologue = "k_test_p";
      spec.parts[0].epilogue = "k_test_e";
      spec.tuning = codegen::gemv_candidates(spec, {})[0];
      std::string text = codegen::emit_gemv(spec).text;
      EXPECT_EQ(misplaced(text, skinny, "k_test"), "") << text;
    }
  // A tile brings its own part of the prelude, of which there are several that ask for the same.
  std::string preludes = codegen::cuda_prelude();
  std::vector<std::string> texts;
  for (int major : {8, 9})
    for (bool image : {false, true})
      for (size_t parts : {1u, 2u}) {
        codegen::TileSpec spec{
            .name = "k_test", .dtype = kBFloat16, .c = kBFloat16, .slots = 16, .m_slot = 10, .a_slot = 0};
        spec.k = 576;
        spec.a_stride = 64;
        for (size_t p = 0; p < parts; ++p)
          spec.parts.push_back({.n = 64 + 64 * int64_t(p), .b_slot = 1, .b_stride = 576, .c_slot = 4, .c_stride = 64});
        spec.parts[0].epilogue = "k_test_e";
        if (image)
          spec.image = codegen::TileImage{.channels = 64,
                                          .height = 8,
                                          .width = 8,
                                          .result_height = 8,
                                          .result_width = 8,
                                          .filter_height = 3,
                                          .filter_width = 3,
                                          .stride = {1, 1},
                                          .padding = {1, 1},
                                          .dilation = {1, 1}};
        auto ways =
            codegen::tile_candidates(spec, 256, {.major = major, .multiprocessors = 132, .shared_bytes = 227 << 10});
        ASSERT_FALSE(ways.empty());
        spec.tuning = ways[0];
        std::string text = codegen::emit_tile(spec).text;
        size_t from = text.find("namespace k {\nstruct k_test");
        ASSERT_NE(from, std::string::npos);
        preludes += text.substr(0, from);
        texts.push_back(text.substr(from));
      }
  Prelude tiles(preludes), prelude(codegen::cuda_prelude());
  for (auto& text : texts) EXPECT_EQ(misplaced(text, tiles, "k_test"), "") << text;
  std::string channels = codegen::emit_tile_channels(
      {.dtype = kBFloat16, .n = 64, .c_slot = 2, .bias_slot = 3, .residual_slot = 4, .relu = true}, "k_test");
  EXPECT_EQ(misplaced(channels, prelude, "k_test"), "") << channels;
}

// The texts of all kernels of the gradient of a function of [31, 18], each operand with the strides that it has in memory.
std::string kernels_of_gradient(const std::function<Tensor(const Tensor&)>& f) {
  auto gradient = [&](const TensorList& x) {
    TensorList g = autograd::grad({f(x[0])}, {x[0]}, {x[1]}, {}, false, true);
    return TensorList{g[0]};
  };
  Tensor x = zeros({31, 18}), tangent = zeros({18, 31});
  auto traced = [&](const TensorList& inputs) {
    inputs[0].requires_grad_(true);
    return gradient(inputs);
  };
  Graph graph =
      run_passes(trace(traced, std::vector<Type>{{kFloat32, {31, 18}, Device()}, {kFloat32, {18, 31}, Device()}}),
                 planning_pipeline(cpu_engine().target()));
  std::vector<TensorList> values(graph.nodes().size());
  values[0] = {x};
  values[1] = {tangent};
  std::string texts;
  for (auto& node : graph.nodes()) {
    auto& made = values[size_t(node.id)];
    if (node.op->kind == OpKind::kInput || node.op->kind == OpKind::kScalar) continue;
    std::vector<TensorArg> arguments;
    for (auto& v : node.inputs)
      arguments.push_back(v.node->op->kind == OpKind::kScalar ? TensorArg(v.node->attrs.as<ScalarAttrs>().value)
                                                              : TensorArg(values[size_t(v.node->id)][size_t(v.index)]));
    if (node.op == &fused_op()) {
      std::vector<const TensorImpl*> inputs, outputs;
      for (auto& arg : arguments) inputs.push_back(arg.is_scalar() ? nullptr : &arg.tensor().impl());
      for (auto& type : node.types) made.push_back(zeros(type.shape, type.dtype));
      for (auto& t : made) outputs.push_back(&t.impl());
      texts += emit_cuda_nest(node.attrs.as<FusedAttrs>(), inputs, outputs).kernel.text;
    } else {
      made = eager::execute(*node.op, arguments, node.attrs);
    }
  }
  return texts;
}

// Kernels whose loads are transposed walk squares, and their functions need `square`.
TEST(Names, GradientsThroughTransposesCompile) {
  const std::vector<std::pair<const char*, std::function<Tensor(const Tensor&)>>> functions = {
      {"tanh", [](const Tensor& x) { return tanh(x); }},
      {"erf", [](const Tensor& x) { return erf(x); }},
      {"gelu", [](const Tensor& x) { return gelu(x); }},
      {"mish", [](const Tensor& x) { return mish(x); }},
      {"where", [](const Tensor& x) { return where(x > 0, x, tanh(x)); }}};
  Prelude prelude(codegen::cuda_prelude());
  bool transposed = false;
  for (auto& [name, f] : functions) {
    std::string text = kernels_of_gradient([&f](const Tensor& x) { return f(x.transpose(0, 1)) * x.t() - f(x).t(); });
    EXPECT_EQ(misplaced(text, prelude, "k_"), "") << text;
    transposed = transposed || text.find("square_ ") != std::string::npos;
    if (!runtime::nvrtc_problem().empty()) continue;
    std::vector<const char*> architectures{"sm_90"};
    if (std::string_view(name) == "tanh") architectures = {"sm_80", "sm_86", "sm_89", "sm_90"};
    for (const char* architecture : architectures)
      EXPECT_NO_THROW(runtime::compile_cuda(codegen::cuda_prelude() + text, name, architecture)) << name;
  }
  EXPECT_TRUE(transposed) << "no kernel of these walks squares any more";
}

}  // namespace
}  // namespace sinter
