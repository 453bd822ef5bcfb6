#pragma once
// oneDNN as another way to multiply and to convolve: a plugin (libsinter_onednn.so) that is loaded when it is first asked
// for. It runs on the threads of our own pool, one primitive a piece of the work, and OpenMP starts no threads of its own.
//
// Results may differ in the last bits from those of our cores, and between numbers of threads, since the pieces follow
// the threads. Denormals count as zero.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sinter/runtime/cpu/gemm/gemm.h"
#include "sinter/runtime/cpu/onednn_plugin/interface.h"

namespace sinter::runtime {

// The version of the loaded library, "2.6.3"; empty when there is none, and then `problem` says why.
const std::string& onednn_version(std::string* problem = nullptr);

// Primitives of one shape for the pieces of a given number of threads. Immutable; run by any number of threads at once.
class OnednnProduct {
 public:
  // As `gemm` takes them; addresses are not looked at. Null where oneDNN has no fast code for these types and layouts, or
  // is not there.
  static std::shared_ptr<const OnednnProduct> make(int64_t m, int64_t n, int64_t k, const GemmOperand& a,
                                                   const GemmOperand& b, const GemmOutput& c,
                                                   const GemmOptions& options, int threads);
  // The same geometry, with addresses. An epilogue runs on a piece once that is finished, before it is rounded.
  void run(const GemmOperand& a, const GemmOperand& b, const GemmOutput& c, const Epilogue* epilogue = nullptr) const;

 private:
  struct Piece {
    int64_t batch, batches, row, rows, col, cols;
    std::shared_ptr<const void> primitive;
  };
  void run(const Piece& piece, const GemmOperand& a, const GemmOperand& b, const GemmOutput& c,
           const Epilogue* epilogue) const;

  int64_t m_ = 0;
  bool widened_ = false;  // pieces are computed in f32 memory of the thread, for an epilogue of a narrow result
  std::vector<Piece> pieces_;
};

// The same for a convolution of row-major operands; see the interface for what the shape says.
class OnednnConvolutionKernel {
 public:
  static std::shared_ptr<const OnednnConvolutionKernel> make(const OnednnConvolution& shape, int threads);
  void run(const void* x, const void* weight, void* out) const;

 private:
  struct Piece {
    int64_t x, weight, out;  // bytes from the start
    std::shared_ptr<const void> primitive;
  };
  std::vector<Piece> pieces_;
};

}  // namespace sinter::runtime
