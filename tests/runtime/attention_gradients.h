#pragma once
// A problem of attention with numbers, on the host, and its gradients in double precision.
#include <cstdint>
#include <ostream>
#include <vector>

#include "sinter/runtime/cuda/attention/attention_backward.h"

namespace sinter::runtime {

struct GradientCase {
  int64_t batch, heads, key_heads, queries, keys, size, value_size;
  bool causal = false;
  AttentionMaskType mask = AttentionMaskType::kNone;
  enum Layout {
    kHeadsInside,
    kHeadsOutside,
    kOddRows
  } layout = kHeadsInside;  // [B, T, H, D], [B, H, T, D], D + 1 apart
  bool mask_by_head = false, mask_by_query = true;
  std::vector<int64_t> blind = {};  // queries to which the mask leaves no key
  double scale = 0;                 // 0: one over the root of the size
  double dropout = 0;
};
std::ostream& operator<<(std::ostream& out, const GradientCase& c);

// [batch, heads, rows, size] in the memory of a layout: as the kernels read it, and what it holds. Gaps and margins hold NaN.
struct HostRows {
  int64_t heads, rows, size;
  DType dtype;
  AttentionOperand operand;     // without data
  std::vector<uint8_t> memory;  // with a margin on both sides
  std::vector<double> values;   // [batch, heads, rows, size]

  HostRows(const GradientCase& c, DType type, int64_t heads_of, int64_t rows_of, int64_t size_of);
  static constexpr size_t kMargin = 256;
  uint8_t* data() { return memory.data() + kMargin; }
  void write(int64_t at, double value);  // rounds; `at` of values
  void read();                           // memory → values
  bool gaps_are_untouched() const;       // all that is no element

 private:
  int64_t place(int64_t at) const;  // in elements
};

// A gradient, and how large its terms are: the square root of the sum of their squares, to which errors are compared.
struct Expected {
  std::vector<double> values, magnitude;
};

struct GradientProblem {
  GradientCase c;
  DType dtype;
  float scale;
  AttentionDropout dropout;
  HostRows query, key, value, out, grad_out;
  std::vector<uint8_t> mask;       // as it lies in memory
  std::vector<double> lse, means;  // [batch, heads, queries]
  Expected grad_query, grad_key, grad_value;

  GradientProblem(const GradientCase& c, DType dtype);

  // Without memory.
  CudaAttentionBackward shape() const;
  HostRows empty_grad_query() const { return {c, dtype, c.heads, c.queries, c.size}; }
  HostRows empty_grad_key() const { return {c, dtype, c.key_heads, c.keys, c.size}; }
  HostRows empty_grad_value() const { return {c, dtype, c.key_heads, c.keys, c.value_size}; }

 private:
  void fill();
  void compute();
  AttentionMask mask_shape() const;
  double kept(int64_t row, int64_t key) const;  // what dropout multiplies a weight by
  double mask_term(int64_t batch, int64_t head, int64_t query, int64_t key) const;  // minus infinity: hidden
};

// The error over all elements (NaN where one is) against the magnitude of all (root mean square), and that of the worst
// against its own beside that.
struct Distance {
  double all, worst;
};
Distance distance(const std::vector<double>& got, const std::vector<double>& want,
                  const std::vector<double>& magnitude);

}  // namespace sinter::runtime
