#pragma once
// softmax(scale * Q.K^T + mask).V on the CPU; the scores never lie in memory as a whole: blocks of queries walk over
// blocks of keys and carry a running maximum and sum. Cores are compiled ahead of time per instruction set and chosen
// at run time.
//
// f32, bf16 and f16 compute in f32 and round once at the store. Results depend on the sizes and the instruction set,
// never on the number of threads. Denormals count as zero. Keys that causality hides
// from a whole block are not read, nor are those behind the last one that a bool mask shows to it.
#include <cstdint>

#include "sinter/runtime/cpu/gemm/gemm.h"

namespace sinter::runtime {

// Rows of one head of one batch; elements of a row lie side by side. Strides count elements and may be zero.
struct AttentionOperand {
  const void* data;
  int64_t batch_stride, head_stride, row_stride;
};

// kBool: false hides a key. Otherwise a number that is added to the score.
enum class AttentionMaskType : uint8_t { kNone, kBool, kFloat32, kBFloat16, kFloat16 };

struct AttentionMask {
  AttentionMaskType type = AttentionMaskType::kNone;
  const void* data = nullptr;
  int64_t batch_stride = 0, head_stride = 0, row_stride = 0, key_stride = 0;
};

// Weights that are drawn become zero, the others are multiplied by `factor`. Element (row, key) of the weights, row counted
// over batches, heads and queries, has word key % 4 of the Philox counter row * ceil(keys / 4) + key / 4, and stays where the
// word's upper 24 bits are at least `threshold`.
struct AttentionDropout {
  uint32_t threshold = 0;  // 0: no dropout
  float factor = 1;
  int64_t seed = 0, offset = 0;

  // Of a probability in (0, 1].
  void set_probability(double p);
  bool is_on() const { return threshold > 0; }
};

// Keys and values in pages of `size` rows that may lie anywhere: row `key` of a sequence is row key % size of page
// table[batch * table_stride + key / size], and the batch strides of key and value are the steps from page to page.
// Query i of a batch stands at starts[batch] + i and sees the keys up to itself, or the last `window` of them. Behind
// lengths[batch] there are no queries: their results are zeros.
struct AttentionPages {
  const int64_t* table = nullptr;  // null: no pages
  int64_t table_stride = 0, size = 0, window = 0;
  const int64_t *starts = nullptr, *lengths = nullptr;
};

struct AttentionProblem {
  int64_t batch, heads, queries, keys;
  int64_t size, value_size;  // of a row of query and key, of a row of value
  int64_t group = 1;         // query heads that share a head of key and value
  // Of query, key, value and result; not f64.
  GemmType type = GemmType::f32;
  AttentionOperand query, key, value;
  AttentionMask mask = {};
  bool causal = false;  // query i sees keys 0 to i
  AttentionPages pages = {};  // with these neither a mask nor dropout; `keys` is how many rows a sequence may have
  float scale = 1;
  AttentionDropout dropout = {};
  void* out = nullptr;  // row-major [batch, heads, queries, value_size]
  // Where the gradient will be wanted: the logarithm of each row's sum of exp(score), [batch, heads, queries]; infinity for a
  // row to which a mask leaves no key.
  float* log_sums = nullptr;
  CpuIsa isa = best_cpu_isa();
};

// Every size is at least 1. With pages a row's result depends on its own sequence alone, whatever else is in the batch.
// A row to which a mask leaves no key becomes zeros; without a mask a row whose scores are
// all minus infinity is NaN.
void attention(const AttentionProblem& problem);

}  // namespace sinter::runtime
