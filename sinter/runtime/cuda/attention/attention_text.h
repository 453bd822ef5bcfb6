#pragma once
// What the texts of all attention kernels have in common: names of types, rounded sizes, the parts they share.
#include <cstdint>
#include <initializer_list>
#include <string>

#include "sinter/runtime/cpu/attention/attention.h"
#include "sinter/tensor/dtype.h"

namespace sinter::runtime {

// Every row of the operand begins at a multiple of 16 bytes.
bool has_whole_vectors(const AttentionOperand& operand, int64_t item, bool indirect);
// The smallest of the ascending sizes that holds so many.
int rounded_size(int64_t size, std::initializer_list<int> sizes);

const char* attention_type(DType dtype);    // in the texts
const char* attention_suffix(DType dtype);  // in names: "bf16"
// Of a kernel's name: "_mask_bool_causal".
std::string attention_suffix(int mask, bool causal);

// Adds texts to a program, in their namespace; those that it has already under that name are passed over.
void add_attention_text(std::string& program, const char* name, std::initializer_list<const char*> texts);
// What a kernel for Hopper asks of the tensor cores: scores of 64 queries with 128 keys, and values of these added by weights.
void add_hopper_products(std::string& program, DType dtype, int size);
// What every kernel needs.
void add_attention_support(std::string& program);

}  // namespace sinter::runtime
