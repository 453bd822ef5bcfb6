#include "sinter/runtime/cuda/attention/attention_text.h"

#include "sinter/base/error.h"
#include "sinter/base/format.h"
#include "sinter_embedded.h"

namespace sinter::runtime {

bool has_whole_vectors(const AttentionOperand& operand, int64_t item, bool indirect) {
  const auto whole = [&](int64_t elements) { return elements * item % 16 == 0; };
  return whole(operand.batch_stride) && whole(operand.head_stride) && whole(operand.row_stride) &&
         (indirect || reinterpret_cast<uintptr_t>(operand.data) % 16 == 0);
}

int rounded_size(int64_t size, std::initializer_list<int> sizes) {
  for (int s : sizes)
    if (size <= s) return s;
  SINTER_INTERNAL_ASSERT(false, "attention: no kernel for rows of {}", size);
  return 0;
}

const char* attention_type(DType dtype) {
  return dtype == kFloat32 ? "float" : dtype == kBFloat16 ? "sinter_attention::Bf16" : "sinter_attention::Half";
}

const char* attention_suffix(DType dtype) { return dtype == kFloat32 ? "f32" : dtype == kBFloat16 ? "bf16" : "f16"; }

std::string attention_suffix(int mask, bool causal) {
  static const char* const masks[] = {"", "_mask_bool", "_mask_f32", "_mask_bf16", "_mask_f16"};
  return format("{}{}", masks[mask], causal ? "_causal" : "");
}

void add_attention_text(std::string& program, const char* name, std::initializer_list<const char*> texts) {
  program +=
      format("#ifndef SINTER_ATTENTION_{}\n#define SINTER_ATTENTION_{}\nnamespace sinter_attention {\n", name, name);
  for (const char* text : texts) program += text;
  program += "}\n#endif\n";
}

void add_hopper_products(std::string& program, DType dtype, int size) {
  const char* type = attention_suffix(dtype);
  // Both operands lie in blocks of 128 rows of 64 elements; addresses count 16 bytes.
  constexpr int kBlock = 128 * 128 / 16;
  // Sums are the first operands of a statement, then come others.
  const auto list = [](int first, int count) {
    std::string out;
    for (int i = 0; i < count; ++i) out += format("{}%{}", i ? ", " : "", first + i);
    return out;
  };
  const auto constraints = [](const char* kind, const char* name, int count) {
    std::string out;
    for (int i = 0; i < count; ++i) out += format("{}\"{}\"({}[{}])", i ? ", " : "", kind, name, i);
    return out;
  };
  const std::string begin = "    asm volatile(\"{\\n.reg .pred p, q;\\n.reg .b64 l, r;\\nsetp.ne.b32 p, 0, 0;\\nsetp.eq.b32 q, 0, 0;\\n\"\n";
  std::string text = format("template <>\nstruct HopperProducts<{}, {}> {\n", std::string(attention_type(dtype)).substr(18), size);
  text += "  static __device__ __forceinline__ void scores(float (&s)[64], unsigned long query, unsigned long key) {\n" + begin;
  for (int k = 0; k < size / 16; ++k) {
    const int at = k / 4 * kBlock + k % 4 * 2;
    text += format("      \"add.s64 l, %64, {};\\nadd.s64 r, %65, {};\\n\"\n", at, at);
    text += format("      \"wgmma.mma_async.sync.aligned.m64n128k16.f32.{}.{} {{}}, l, r, {}, 1, 1, 0, 0;\\n\"\n", type, type,
                   list(0, 64), k ? "q" : "p");
  }
  text += format("      \"}\" : {} : \"l\"(query), \"l\"(key));\n  }\n", constraints("+f", "s", 64));
  const int sums = size / 2;
  text += format("  static __device__ __forceinline__ void add_values(float (&o)[{}], const unsigned (&w)[32], unsigned long value) {\n", sums);
  text += begin;
  for (int k = 0; k < 8; ++k) {
    text += format("      \"add.s64 r, %{}, {};\\n\"\n", sums + 32, k * 128);
    text += format("      \"wgmma.mma_async.sync.aligned.m64n{}k16.f32.{}.{} {{}}, {{}}, r, q, 1, 1, 1;\\n\"\n", size, type, type,
                   list(0, sums), list(sums + 4 * k, 4));
  }
  text += format("      \"}\" : {} : {}, \"l\"(value));\n  }\n};\n", constraints("+f", "o", sums), constraints("r", "w", 32));
  add_attention_text(program, "HOPPER_PRODUCTS", {"template <class T, int Size>\nstruct HopperProducts;\n"});
  text = "#ifdef __CUDA_ARCH_FEAT_SM90_ALL\n" + text + "#endif\n";
  add_attention_text(program, format("HOPPER_PRODUCTS_{}_{}", type, size).c_str(), {text.c_str()});
}

void add_attention_support(std::string& program) {
  add_attention_text(program, "SUPPORT", {embedded::cuda_attention_dropout_params, embedded::cuda_attention_params,
                                          embedded::cuda_attention_support, embedded::cuda_attention_dropout});
}

}  // namespace sinter::runtime
