#include "sinter/runtime/cpu/fft/core.h"

namespace sinter::runtime::fft_detail {

template <class T>
const FftCore<T>& fft_core([[maybe_unused]] CpuIsa isa) {
#if defined(__x86_64__)
  if (isa == CpuIsa::kAvx512 && avx512_core<T>()) return *avx512_core<T>();
  if (isa >= CpuIsa::kAvx2 && avx2_core<T>()) return *avx2_core<T>();
#endif
  return *scalar_core<T>();
}

template const FftCore<float>& fft_core(CpuIsa);
template const FftCore<double>& fft_core(CpuIsa);

}  // namespace sinter::runtime::fft_detail
