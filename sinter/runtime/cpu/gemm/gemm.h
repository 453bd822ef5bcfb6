#pragma once
// Matrix multiplication on the CPU: cores compiled ahead of time per instruction set, chosen at run time.
//
// C = alpha * A.B (+ C). Operands are strided views in any order and sign, so transposes need no copy. f32, bf16 and
// f16 mix freely, compute in f32 and round once at the store; f64 goes with f64 alone. Two bf16 operands go through the
// machine's own bf16 instructions where it has them: exact products, summed in f32 in an order of their own. Results
// depend on the shapes, the layouts and the instruction set, never on the number of threads. Denormals count as zero. C
// overlaps no input.
#include <cstdint>
#include <memory>
#include <span>

#include "sinter/runtime/cpu/cpu_features.h"

namespace sinter::runtime {

enum class GemmType : uint8_t { f32, f64, bf16, f16 };

// The widest instruction set of this machine, limited by SINTER_CPU_ISA=scalar|neon|avx2|avx512. Read once.
CpuIsa best_cpu_isa();
// Whether this machine can run the cores of `isa`, whatever the environment says.
bool cpu_supports(CpuIsa isa);

// Strides count elements. `batch_stride` is read only when the batch is larger than one; zero shares the operand.
struct GemmOperand {
  const void* data;
  int64_t row_stride, col_stride;
  GemmType type = GemmType::f32;
  int64_t batch_stride = 0;
};

struct GemmOutput {
  void* data;
  int64_t row_stride, col_stride;
  GemmType type = GemmType::f32;
  int64_t batch_stride = 0;
};

// Runs once on every tile of the finished result while it is hot, before it is rounded to the output's type, and may
// change it in place. The tile is row-major, of float (double for f64), `tile_stride` elements between rows; `row` and
// `col` place it in C, rows numbered through the batch (batch index * m + row). Called from many threads at once.
struct Epilogue {
  void (*function)(void* context, void* tile, int64_t row, int64_t col, int64_t rows, int64_t cols,
                   int64_t tile_stride);
  void* context = nullptr;
};

struct GemmOptions {
  double alpha = 1;
  bool accumulate = false;
  int64_t batch = 1;
  const Epilogue* epilogue = nullptr;
  CpuIsa isa = best_cpu_isa();  // with a PackedB, the one it was packed for is used
};

// B[k, n] rearranged once for the cores of one instruction set, in its own element type; immutable, shared by copies.
class PackedB {
 public:
  // What `pack_b` has written into memory of the caller's, who keeps it.
  static PackedB at(const void* memory, int64_t k, int64_t n, GemmType type, CpuIsa isa = best_cpu_isa());

  int64_t k() const { return k_; }
  int64_t n() const { return n_; }
  GemmType type() const { return type_; }
  CpuIsa isa() const { return isa_; }
  const void* data() const { return data_.get(); }
  int64_t size_bytes() const { return size_bytes_; }

 private:
  friend PackedB pack_b(int64_t, int64_t, const GemmOperand&, CpuIsa);
  int64_t k_ = 0, n_ = 0, size_bytes_ = 0;
  GemmType type_ = GemmType::f32;
  CpuIsa isa_ = CpuIsa::kScalar;
  std::shared_ptr<const void> data_;
};

PackedB pack_b(int64_t k, int64_t n, const GemmOperand& b, CpuIsa isa = best_cpu_isa());
// The same into memory of the caller's, aligned to 64 bytes.
int64_t packed_b_bytes(int64_t k, int64_t n, GemmType type, CpuIsa isa = best_cpu_isa());
void pack_b(int64_t k, int64_t n, const GemmOperand& b, void* to, CpuIsa isa = best_cpu_isa());

void gemm(int64_t m, int64_t n, int64_t k, const GemmOperand& a, const GemmOperand& b, const GemmOutput& c,
          const GemmOptions& options = {});
void gemm(int64_t m, const GemmOperand& a, const PackedB& b, const GemmOutput& c, const GemmOptions& options = {});

struct PackedEncoded;

// One product of a joint call; C is not stored where c.data is null: then an epilogue alone reads its tiles. With
// `packed` or `encoded` (encoded.h), b is not read. Of the parts of a call all are encoded, or none.
struct GemmPart {
  int64_t n;
  GemmOperand b;
  const PackedB* packed = nullptr;
  GemmOutput c;
  const PackedEncoded* encoded = nullptr;
};

// Together: tiles[i] is part i's piece at (row, col), all of one geometry, called once a place; `part` is 0. Apart:
// tiles[0] is a piece of part `part`. Otherwise as Epilogue.
struct JointEpilogue {
  void (*function)(void* context, void* const* tiles, int64_t part, int64_t row, int64_t col, int64_t rows,
                   int64_t cols, int64_t tile_stride);
  void* context = nullptr;
};

struct JointOptions {
  bool together = false;  // all parts are of one n, at most kMaxTogether
  int64_t batch = 1;
  const JointEpilogue* epilogue = nullptr;
  CpuIsa isa = best_cpu_isa();  // a part with a PackedB uses the one it was packed for
};
inline constexpr int64_t kMaxTogether = 8;

// Several products of one A in one parallel loop, which reads A once. Each has the bits that gemm would give it alone.
void gemm_joint(int64_t m, int64_t k, const GemmOperand& a, std::span<const GemmPart> parts,
                const JointOptions& options = {});

}  // namespace sinter::runtime
