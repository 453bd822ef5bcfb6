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

void add_attention_support(std::string& program) {
  add_attention_text(program, "SUPPORT", {embedded::cuda_attention_dropout_params, embedded::cuda_attention_params,
                                          embedded::cuda_attention_support, embedded::cuda_attention_dropout});
}

}  // namespace sinter::runtime
