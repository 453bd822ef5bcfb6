#include "tests/support/gpu_on_host.h"

#include <sys/mman.h>
#include <ucontext.h>

#include <cstring>

#include "sinter/base/error.h"
#include "sinter/base/format.h"
#include "sinter/runtime/cpu/toolchain.h"
#include "sinter/tensor/dtype.h"

namespace sinter::testing {

namespace {

// The third dialect, beside those of codegen/cuda and codegen/hip. HostBlock is that of the class Block below.
constexpr const char* kDialect = R"(
#define __device__
#define __global__
#define __shared__ static
#define __forceinline__ inline
#define __launch_bounds__(threads)
#define __grid_constant__
struct HostIndex {
  unsigned x, y;
};
struct HostBlock {
  HostIndex thread, block, threads, blocks;
  void (*wait)();
  unsigned long (*exchange)(unsigned long word, unsigned lane);
  unsigned short (*encode_bf16)(float);
  unsigned short (*encode_f16)(float);
  float (*decode_f16)(unsigned short);
};
extern "C" {
HostBlock* sinter_host_block;
}
#define threadIdx sinter_host_block->thread
#define blockIdx sinter_host_block->block
#define blockDim sinter_host_block->threads
#define gridDim sinter_host_block->blocks
inline void __syncthreads() { sinter_host_block->wait(); }
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long)a * b >> 32); }
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
template <class T>
inline T atomicCAS(T* cell, T wanted, T next) {
  const T seen = *cell;
  if (seen == wanted) *cell = next;
  return seen;
}
template <class T>
inline T atomicAdd(T* cell, T more) {
  const T seen = *cell;
  *cell = seen + more;
  return seen;
}
extern "C" {
#define K_HOST_MATH1(name)  \
  double name(double);      \
  float name##f(float);
#define K_HOST_MATH2(name)       \
  double name(double, double);   \
  float name##f(float, float);
K_HOST_MATH1(exp) K_HOST_MATH1(exp2) K_HOST_MATH1(expm1) K_HOST_MATH1(log) K_HOST_MATH1(log2) K_HOST_MATH1(log10)
K_HOST_MATH1(log1p) K_HOST_MATH1(tanh) K_HOST_MATH1(sinh) K_HOST_MATH1(cosh) K_HOST_MATH1(erf) K_HOST_MATH1(erfc)
K_HOST_MATH1(sin) K_HOST_MATH1(cos) K_HOST_MATH1(tan) K_HOST_MATH1(asin) K_HOST_MATH1(acos) K_HOST_MATH1(atan)
K_HOST_MATH1(asinh) K_HOST_MATH1(acosh) K_HOST_MATH1(atanh) K_HOST_MATH1(sqrt) K_HOST_MATH1(floor) K_HOST_MATH1(ceil)
K_HOST_MATH1(trunc) K_HOST_MATH1(rint) K_HOST_MATH1(fabs) K_HOST_MATH2(atan2) K_HOST_MATH2(hypot) K_HOST_MATH2(copysign)
K_HOST_MATH2(pow) K_HOST_MATH2(fmod)
}
inline float cospif(float x) { return (float)cos(3.14159265358979323846 * x); }

namespace k {
inline unsigned bits(float x) { return __builtin_bit_cast(unsigned, x); }
inline unsigned long bits(double x) { return __builtin_bit_cast(unsigned long, x); }
inline float from_bits(unsigned x) { return __builtin_bit_cast(float, x); }
inline double from_bits(unsigned long x) { return __builtin_bit_cast(double, x); }
inline unsigned short encode_bf16(float x) { return sinter_host_block->encode_bf16(x); }
inline unsigned short encode_f16(float x) { return sinter_host_block->encode_f16(x); }
inline float decode_f16(unsigned r) { return sinter_host_block->decode_f16((unsigned short)r); }

inline unsigned host_lane() { return (threadIdx.y * blockDim.x + threadIdx.x) % K_WARP; }
template <class T>
inline T of_lane(T x, unsigned lane) {
  unsigned long word = 0;
  __builtin_memcpy(&word, &x, sizeof x);
  word = sinter_host_block->exchange(word, lane);
  __builtin_memcpy(&x, &word, sizeof x);
  return x;
}
template <class T>
inline T of_lane_xor(T x, unsigned distance) {
  return of_lane(x, host_lane() ^ distance);
}
template <class T>
inline T of_lane_before(T x, unsigned distance) {
  return of_lane(x, host_lane() < distance ? host_lane() : host_lane() - distance);
}
template <class T>
inline T of_last_lane(T x, unsigned width) {
  return of_lane(x, host_lane() / width * width + width - 1);
}
inline void wait_for_previous() {}
}  // namespace k
)";

struct Index {
  unsigned x = 0, y = 0;
};
struct HostBlock {
  Index thread, block, threads, blocks;
  void (*wait)();
  uint64_t (*exchange)(uint64_t word, unsigned lane);
  uint16_t (*encode_bf16)(float);
  uint16_t (*encode_f16)(float);
  float (*decode_f16)(uint16_t);
};

constexpr size_t kMostThreads = 1024, kStackBytes = 64 << 10;

// One stack a thread, used by one block after the other.
char* stacks() {
  static char* memory = [] {
    void* mapped = mmap(nullptr, kMostThreads * kStackBytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    check(mapped != MAP_FAILED, "no memory for the stacks of a block");
    return static_cast<char*>(mapped);
  }();
  return memory;
}

// A block at work. Threads take turns; one that waits is passed over until what it waits for has happened.
class Block {
 public:
  Block(unsigned lanes, HostBlock& host, void (*kernel)(const void*), const void* arguments)
      : lanes_(lanes), host_(host), kernel_(kernel), arguments_(arguments), threads_(host.threads.x * host.threads.y) {
    check(threads_ <= kMostThreads, "a block of {} threads", threads_);
    warps_.resize((threads_ + lanes - 1) / lanes);
    fibers_.resize(threads_);
    host.wait = [] { current_->wait_for_block(); };
    host.exchange = [](uint64_t word, unsigned lane) { return current_->exchange(word, lane); };
  }

  std::string run() {
    current_ = this;
    for (unsigned t = 0; t < threads_; ++t) start(t);
    for (bool moved = true; moved && running_ > 0 && problem_.empty();) {
      moved = false;
      for (unsigned t = 0; t < threads_ && problem_.empty(); ++t) {
        Fiber& fiber = fibers_[t];
        if (fiber.done || !may_go_on(t)) continue;
        moved = true;
        turn_ = t;
        host_.thread = {t % host_.threads.x, t / host_.threads.x};
        swapcontext(&scheduler_, &fiber.context);
      }
    }
    if (problem_.empty() && running_ > 0)
      problem_ = format("{} of {} threads wait for others that never come", running_, threads_);
    return problem_;
  }

 private:
  enum class Waits { kNothing, kBlock, kWarp };
  struct Fiber {
    ucontext_t context;
    Waits waits = Waits::kNothing;
    uint64_t since = 0;  // the round that it waits for the end of
    bool done = false;
  };
  // Who has come to the barrier, and how often all have. What a lane shows in one round is there until the end of the next.
  struct Meeting {
    unsigned arrived = 0;
    uint64_t rounds = 0;
  };
  struct Warp : Meeting {
    uint64_t shown[2][64] = {};
  };

  void start(unsigned t) {
    Fiber& fiber = fibers_[t];
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = stacks() + t * kStackBytes;
    fiber.context.uc_stack.ss_size = kStackBytes;
    fiber.context.uc_link = &scheduler_;
    makecontext(
        &fiber.context, [] { current_->enter(); }, 0);
    ++running_;
  }
  void enter() {
    Fiber& own = fibers_[turn_];
    kernel_(arguments_);
    own.done = true;
    --running_;
  }
  bool may_go_on(unsigned t) const {
    const Fiber& fiber = fibers_[t];
    if (fiber.waits == Waits::kNothing) return true;
    return (fiber.waits == Waits::kBlock ? whole_.rounds : warps_[t / lanes_].rounds) > fiber.since;
  }
  void pause(Waits what, Meeting& meeting, unsigned all) {
    Fiber& own = fibers_[turn_];
    own.waits = what;
    own.since = meeting.rounds;
    if (++meeting.arrived == all) {
      meeting.arrived = 0;
      ++meeting.rounds;
    }
    swapcontext(&own.context, &scheduler_);
    own.waits = Waits::kNothing;
  }
  void wait_for_block() { pause(Waits::kBlock, whole_, threads_); }
  uint64_t exchange(uint64_t word, unsigned lane) {
    const unsigned t = turn_;
    Warp& warp = warps_[t / lanes_];
    if (threads_ % lanes_ != 0)
      problem_ = format("threads of a block of {} exchange values, {} lanes at a time", threads_, lanes_);
    if (lane >= lanes_) problem_ = format("a thread asks for lane {} of {}", lane, lanes_);
    const uint64_t round = warp.rounds;
    warp.shown[round % 2][t % lanes_] = word;
    pause(Waits::kWarp, warp, lanes_);
    return warp.shown[round % 2][lane % lanes_];
  }

  static inline Block* current_ = nullptr;
  const unsigned lanes_;
  HostBlock& host_;
  void (*const kernel_)(const void*);
  const void* const arguments_;
  const unsigned threads_;
  unsigned turn_ = 0, running_ = 0;
  ucontext_t scheduler_;
  std::vector<Fiber> fibers_;
  Meeting whole_;
  std::vector<Warp> warps_;
  std::string problem_;
};

}  // namespace

std::string KernelsOnHost::host_prelude(const Target& target) { return codegen::gpu_prelude(target, kDialect); }

KernelsOnHost::KernelsOnHost(const std::vector<codegen::GpuKernelText>& kernels, const Target& target,
                             const std::string& prelude)
    : target_(target) {
  std::string text;
  for (auto& kernel : kernels)
    text += kernel.text + format("extern \"C\" void host_{}(const void* a) { k::{}(*(const k::Args<{}>*)a); }\n",
                                 kernel.name, kernel.name, kernel.slots);
  auto code = runtime::compile_cpu(text, "GPU kernels on the host", prelude.empty() ? host_prelude(target) : prelude);
  for (auto& kernel : kernels)
    entries_.emplace_back(kernel.name, code->function<void (*)(const void*)>("host_" + kernel.name));
  host_ = static_cast<void**>(code->symbol("sinter_host_block"));
  code_ = code;
}

std::string KernelsOnHost::run(const codegen::GpuKernelText& kernel, const codegen::GpuGeometry& geometry,
                               int64_t range, const std::vector<int64_t>& slots) const {
  void (*entry)(const void*) = nullptr;
  for (auto& [name, function] : entries_)
    if (name == kernel.name) entry = function;
  check(entry && slots.size() == size_t(kernel.slots), "{} has {} slots", kernel.name, kernel.slots);
  // Args of gpu_kernel.embed: indirect, block, range, slots.
  std::vector<int64_t> arguments(8, 0);
  arguments.push_back(range);
  arguments.insert(arguments.end(), slots.begin(), slots.end());
  HostBlock host{};
  host.threads = {geometry.threads[0], geometry.threads[1]};
  host.blocks = {geometry.blocks, 1};
  host.encode_bf16 = [](float x) { return float_to_bfloat16(x); };
  host.encode_f16 = [](float x) { return float_to_float16(x); };
  host.decode_f16 = [](uint16_t r) { return float16_to_float(r); };
  *host_ = &host;
  for (unsigned b = 0; b < geometry.blocks; ++b) {
    host.block = {b, 0};
    if (auto problem = Block(unsigned(target_.lane_width), host, entry, arguments.data()).run(); !problem.empty())
      return problem;
  }
  return {};
}

}  // namespace sinter::testing
