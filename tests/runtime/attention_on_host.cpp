#include "tests/runtime/attention_on_host.h"

#include <sys/mman.h>
#include <ucontext.h>

#include <cstring>

#include "sinter/base/error.h"
#include "sinter/base/format.h"
#include "sinter/tensor/dtype.h"

namespace sinter::runtime {

namespace {

// Before the texts. Host is that of the class Block below.
constexpr const char* kDialect = R"(
#define SINTER_ATTENTION_EMULATED
#define __device__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __grid_constant__
struct Index {
  unsigned x, y, z;
};
struct Host {
  Index thread, block, blocks;
  unsigned threads;
  void (*wait)(bool whole_block);
  unsigned short (*encode_bf16)(float);
  unsigned short (*encode_f16)(float);
  float (*decode_f16)(unsigned short);
  void (*fail)(const char* why);
  bool late_copies;
};
extern "C" {
Host* sinter_host;
void* memcpy(void*, const void*, unsigned long);
void* memset(void*, int, unsigned long);
float exp2f(float);
float log2f(float);
float logf(float);
float fmaxf(float, float);
}
#define threadIdx sinter_host->thread
#define blockIdx sinter_host->block
#define gridDim sinter_host->blocks
inline void __syncthreads() { sinter_host->wait(true); }
inline void __syncwarp() { sinter_host->wait(false); }
inline void __threadfence() {}
inline unsigned atomicInc(unsigned* at, unsigned last) {
  const unsigned was = *at;
  *at = was >= last ? 0 : was + 1;
  return was;
}
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
inline int min(int a, int b) { return a < b ? a : b; }
inline int max(int a, int b) { return a > b ? a : b; }
inline int __clz(unsigned x) { return x ? __builtin_clz(x) : 32; }
inline float __uint_as_float(unsigned x) { return __builtin_bit_cast(float, x); }

namespace host {
inline bool votes[1024];
// What each lane shows the others of its warp, in turns of two: nobody is two turns ahead of another.
inline unsigned shown[2][32][32][6], turns[1024];
using Lanes = const unsigned (&)[32][6];
template <int N>
Lanes exchange(const unsigned (&words)[N]) {
  const unsigned t = threadIdx.x, turn = turns[t]++ % 2;
  for (int i = 0; i < N; ++i) shown[turn][t / 32][t % 32][i] = words[i];
  sinter_host->wait(false);
  return shown[turn][t / 32];
}
struct Copy {
  void* to;
  const void* from;
  unsigned bytes, group;
  bool valid;
  void arrive() const {
    if (valid)
      memcpy(to, from, bytes);
    else
      memset(to, 0, bytes);
  }
};
inline Copy copies[1024][64];
inline unsigned pending[1024], groups[1024];
inline void copy(void* to, const void* from, unsigned bytes, bool valid) {
  const unsigned t = threadIdx.x;
  const Copy made{to, from, bytes, groups[t], valid};
  if (reinterpret_cast<unsigned long>(to) % bytes) return sinter_host->fail("a copy to no multiple of its size");
  if (valid && reinterpret_cast<unsigned long>(from) % bytes) return sinter_host->fail("a copy from no multiple of its size");
  if (!sinter_host->late_copies) return made.arrive();
  if (pending[t] == 64) return sinter_host->fail("more copies under way than expected");
  copies[t][pending[t]++] = made;
}
inline void wait_for_copies(unsigned but) {
  const unsigned t = threadIdx.x;
  unsigned left = 0;
  for (unsigned i = 0; i < pending[t]; ++i) {
    if (copies[t][i].group + but < groups[t])
      copies[t][i].arrive();
    else
      copies[t][left++] = copies[t][i];
  }
  pending[t] = left;
}
inline const void* address(const unsigned (&words)[6]) {
  const void* p;
  memcpy(&p, words, sizeof p);
  return p;
}
inline Lanes addresses(const void* row) {
  unsigned words[2];
  memcpy(words, &row, sizeof row);
  if (reinterpret_cast<unsigned long>(row) % 16) sinter_host->fail("a row of a matrix at no multiple of 16");
  return exchange(words);
}
inline unsigned half_of(unsigned word, int which) { return which ? word >> 16 : word & 0xffff; }
}  // namespace host

inline bool __syncthreads_or(bool vote) {
  host::votes[threadIdx.x] = vote;
  __syncthreads();
  bool any = false;
  for (unsigned t = 0; t < sinter_host->threads; ++t) any |= host::votes[t];
  __syncthreads();
  return any;
}

template <class T>
T __shfl_xor_sync(unsigned, T x, int distance) {
  const unsigned words[1] = {__builtin_bit_cast(unsigned, x)};
  return __builtin_bit_cast(T, host::exchange(words)[threadIdx.x % 32 ^ unsigned(distance)][0]);
}

template <class T>
T __shfl_sync(unsigned, T x, int lane) {
  const unsigned words[1] = {__builtin_bit_cast(unsigned, x)};
  return __builtin_bit_cast(T, host::exchange(words)[lane][0]);
}

namespace sinter_attention {
struct Bf16;
struct Half;
alignas(16) inline unsigned char attention_shared[232448];
inline void launch_dependents() {}
inline void wait_for_previous() {}
inline void prefetch(const void*) {}
template <class T>
T load_shared_by_all(const T* p) { return *p; }
inline void copy16(void* to, const void* from, bool valid) { host::copy(to, from, 16, valid); }
inline void copy4(void* to, const void* from, bool valid) { host::copy(to, from, 4, valid); }
inline void commit_copies() { ++host::groups[threadIdx.x]; }
template <int N>
void wait_for_copies() { host::wait_for_copies(N); }
// Lane i gets of each matrix the elements 2 (i % 4) and the next of row i / 4.
inline void load_matrices(unsigned (&r)[4], const void* row) {
  const auto& lanes = host::addresses(row);
  const int lane = threadIdx.x % 32;
  for (int m = 0; m < 4; ++m)
    r[m] = static_cast<const unsigned*>(host::address(lanes[m * 8 + lane / 4]))[lane % 4];
}
// The same of the transposed matrix.
inline void load_matrices_transposed(unsigned (&r)[4], const void* row) {
  const auto& lanes = host::addresses(row);
  const int lane = threadIdx.x % 32;
  for (int m = 0; m < 4; ++m) {
    r[m] = 0;
    for (int e = 0; e < 2; ++e) {
      const void* from = host::address(lanes[m * 8 + lane % 4 * 2 + e]);
      r[m] |= unsigned(static_cast<const unsigned short*>(from)[lane / 4]) << 16 * e;
    }
  }
}
float widen(Half x);
unsigned pack(Bf16, float low, float high);
unsigned pack(Half, float low, float high);
inline float power_of_two(float x) { return exp2f(x); }
// A is 16×16, B 16×8 and C 16×8, by rows; a word holds two elements of a row of A, of a column of B. Rows, or columns of B,
// belong to four lanes each.
template <class T>
void multiply(T, float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  const unsigned words[6] = {a[0], a[1], a[2], a[3], b0, b1};
  const auto& lanes = host::exchange(words);
  const int lane = threadIdx.x % 32;
  for (int i = 0; i < 4; ++i) {
    const int row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
    for (int k = 0; k < 16; ++k) {
      const unsigned x = lanes[row % 8 * 4 + k % 8 / 2][row / 8 + k / 8 * 2], y = lanes[column * 4 + k % 8 / 2][4 + k / 8];
      c[i] += widen(T{(unsigned short)host::half_of(x, k % 2)}) * widen(T{(unsigned short)host::half_of(y, k % 2)});
    }
  }
}
}  // namespace sinter_attention
)";

// After them, when the types are known.
constexpr const char* kEnd = R"(
namespace sinter_attention {
float widen(Half x) { return sinter_host->decode_f16(x.bits); }
unsigned pack(Bf16, float low, float high) {
  return sinter_host->encode_bf16(low) | unsigned(sinter_host->encode_bf16(high)) << 16;
}
unsigned pack(Half, float low, float high) {
  return sinter_host->encode_f16(low) | unsigned(sinter_host->encode_f16(high)) << 16;
}
}  // namespace sinter_attention
extern "C" void host_reset() {
  memset(sinter_attention::attention_shared, 0xff, sizeof sinter_attention::attention_shared);
  memset(host::turns, 0, sizeof host::turns);
  memset(host::pending, 0, sizeof host::pending);
  memset(host::groups, 0, sizeof host::groups);
}
// Whether shared memory was written from that byte on.
extern "C" bool host_wrote(unsigned from) {
  for (unsigned i = from; i < sizeof sinter_attention::attention_shared; ++i)
    if (sinter_attention::attention_shared[i] != 0xff) return true;
  return false;
}
)";

struct Index {
  unsigned x = 0, y = 0, z = 0;
};
struct Host {
  Index thread, block, blocks;
  unsigned threads = 0;
  void (*wait)(bool whole_block);
  uint16_t (*encode_bf16)(float);
  uint16_t (*encode_f16)(float);
  float (*decode_f16)(uint16_t);
  void (*fail)(const char* why);
  bool late_copies;
};

constexpr unsigned kMostThreads = 256;
constexpr size_t kStackBytes = 256 << 10;

// A block at work. A thread runs until it waits for its block or its warp, and is passed over until all have come.
class Block {
 public:
  Block(Host& host, unsigned threads, void (*kernel)(const void*), const void* params)
      : host_(host), threads_(threads), kernel_(kernel), params_(params), fibers_(threads), warps_(threads / 32) {
    check(threads <= kMostThreads && threads % 32 == 0, "a block of {} threads", threads);
    host.wait = [](bool whole_block) { current_->wait(whole_block); };
    host.fail = [](const char* why) { current_->problem_ = why; };
  }

  std::string run() {
    current_ = this;
    for (unsigned t = 0; t < threads_; ++t) start(t);
    for (bool moved = true; moved && running_ > 0 && problem_.empty();) {
      moved = false;
      for (unsigned i = 0; i < threads_; ++i) {
        const unsigned t = host_.late_copies ? i : threads_ - 1 - i;
        Fiber& fiber = fibers_[t];
        if (fiber.done || (fiber.meeting && fiber.meeting->rounds == fiber.since)) continue;
        moved = true;
        turn_ = t;
        host_.thread.x = t;
        swapcontext(&scheduler_, &fiber.context);
      }
    }
    if (problem_.empty() && running_ > 0) problem_ = format("{} of {} threads wait for ever", running_, threads_);
    return problem_;
  }

 private:
  struct Meeting {
    unsigned arrived = 0;
    uint64_t rounds = 0;
  };
  struct Fiber {
    ucontext_t context;
    const Meeting* meeting = nullptr;  // that it waits for the end of
    uint64_t since = 0;
    bool done = false;
  };

  static char* stack(unsigned t) {
    static char* memory = [] {
      void* mapped = mmap(nullptr, kMostThreads * kStackBytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      check(mapped != MAP_FAILED, "no memory for the stacks of a block");
      return static_cast<char*>(mapped);
    }();
    return memory + t * kStackBytes;
  }
  void start(unsigned t) {
    Fiber& fiber = fibers_[t];
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = stack(t);
    fiber.context.uc_stack.ss_size = kStackBytes;
    fiber.context.uc_link = &scheduler_;
    makecontext(
        &fiber.context, [] { current_->enter(); }, 0);
    ++running_;
  }
  void enter() {
    Fiber& own = fibers_[turn_];
    kernel_(params_);
    own.done = true;
    --running_;
  }
  void wait(bool whole_block) {
    Fiber& own = fibers_[turn_];
    Meeting& meeting = whole_block ? whole_ : warps_[turn_ / 32];
    own.meeting = &meeting;
    own.since = meeting.rounds;
    if (++meeting.arrived == (whole_block ? threads_ : 32)) {
      meeting.arrived = 0;
      ++meeting.rounds;
    }
    swapcontext(&own.context, &scheduler_);
    own.meeting = nullptr;
  }

  static inline Block* current_ = nullptr;
  Host& host_;
  const unsigned threads_;
  void (*const kernel_)(const void*);
  const void* const params_;
  unsigned turn_ = 0, running_ = 0;
  ucontext_t scheduler_;
  std::vector<Fiber> fibers_;
  Meeting whole_;
  std::vector<Meeting> warps_;
  std::string problem_;
};

}  // namespace

AttentionOnHost::AttentionOnHost(std::span<const CudaSource> sources) {
  std::string text;
  for (auto& source : sources) {
    text += source.text;
    const bool backward = source.name.find("backward") != std::string::npos;
    text += format("extern \"C\" void host_{}(const void* p) { {}(*(const sinter_attention::{}*)p); }\n", source.name,
                   source.name, backward ? "BackwardParams" : "Params");
  }
  code_ = compile_cpu(text + kEnd, "attention on the host", kDialect);
  for (auto& source : sources) entries_.push_back(code_->function<void (*)(const void*)>("host_" + source.name));
}

std::string AttentionOnHost::run(size_t kernel, const CudaGrid& grid, std::span<const std::byte> params,
                                 Order order) const {
  Host host{};
  host.blocks = {grid.blocks[0], grid.blocks[1], grid.blocks[2]};
  host.encode_bf16 = [](float x) { return float_to_bfloat16(x); };
  host.encode_f16 = [](float x) { return float_to_float16(x); };
  host.decode_f16 = [](uint16_t x) { return float16_to_float(x); };
  host.late_copies = order == Order::kLateCopies;
  *static_cast<Host**>(code_->symbol("sinter_host")) = &host;
  const auto reset = code_->function<void (*)()>("host_reset");
  const auto wrote = code_->function<bool (*)(unsigned)>("host_wrote");
  host.threads = grid.threads[0];
  for (unsigned z = 0; z < grid.blocks[2]; ++z)
    for (unsigned y = 0; y < grid.blocks[1]; ++y)
      for (unsigned x = 0; x < grid.blocks[0]; ++x) {
        host.block = {x, y, z};
        reset();
        std::string problem = Block(host, grid.threads[0], entries_[kernel], params.data()).run();
        if (problem.empty() && wrote(grid.shared_bytes)) problem = "more shared memory is used than the launch gives";
        if (!problem.empty()) return format("block {}, {}, {}: {}", x, y, z, problem);
      }
  return {};
}

}  // namespace sinter::runtime
