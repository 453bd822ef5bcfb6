#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "sinter/base/error.h"
#include "sinter/base/thread_pool.h"
#include "sinter/runtime/cpu/gemm/gemm.h"
#include "tests/runtime/available_isas.h"

namespace sinter::runtime {
namespace {

struct Threads {
  explicit Threads(int count) : before(num_threads()) { set_num_threads(count); }
  ~Threads() { set_num_threads(before); }
  int before;
};

int64_t size_of(GemmType type) { return type == GemmType::f64 ? 8 : type == GemmType::f32 ? 4 : 2; }

// Finite values of any of the types.
std::vector<char> random_values(int64_t count, GemmType type, std::mt19937& rng) {
  std::vector<char> bytes(size_t(count * size_of(type)));
  for (int64_t i = 0; i < count; ++i) {
    const double wide = (int(rng() % 20001) - 10000) / 4099.0;
    const float value = float(wide);
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    uint16_t narrow = uint16_t(bits >> 16);
    if (type == GemmType::f16) narrow = uint16_t((bits >> 16 & 0x8000) | 0x3000 | (bits >> 8 & 0xfff));
    const void* from = type == GemmType::f64   ? static_cast<const void*>(&wide)
                       : type == GemmType::f32 ? static_cast<const void*>(&value)
                                               : static_cast<const void*>(&narrow);
    std::memcpy(bytes.data() + i * size_of(type), from, size_t(size_of(type)));
  }
  return bytes;
}

struct PartCase {
  int64_t n;
  GemmType b = GemmType::f32, c = GemmType::f32;
  bool transposed = false, packed = false, stored = true;
};

struct Case {
  int64_t m, k, batch = 1;
  GemmType a = GemmType::f32;
  std::vector<PartCase> parts = {};
  bool shared_b = true, spread_c = false;
  CpuIsa isa = best_cpu_isa();
};

struct Data {
  std::vector<char> a;
  std::vector<std::vector<char>> b, c;
  std::vector<PackedB> packed;
  std::vector<GemmPart> parts;
  GemmOperand operand;

  Data(const Case& t, unsigned seed) {
    std::mt19937 rng(seed);
    a = random_values(t.batch * t.m * t.k, t.a, rng);
    operand = {a.data(), t.k, 1, t.a, t.m * t.k};
    packed.reserve(t.parts.size());
    for (const PartCase& p : t.parts) {
      const int64_t copies = t.shared_b || p.packed ? 1 : t.batch;
      b.push_back(random_values(copies * t.k * p.n, p.b, rng));
      // Spread: rows further apart than they are long, so that the batch does not fold into one product.
      const int64_t stride = t.spread_c ? p.n + 5 : p.n;
      c.push_back(std::vector<char>(size_t(t.batch * (t.m + t.spread_c) * stride * size_of(p.c))));
      const GemmOperand view{b.back().data(), p.transposed ? 1 : p.n, p.transposed ? t.k : 1, p.b,
                             copies == 1 ? 0 : t.k * p.n};
      packed.push_back(p.packed ? pack_b(t.k, p.n, view, t.isa) : PackedB());
      parts.push_back({p.n,
                       view,
                       p.packed ? &packed.back() : nullptr,
                       {p.stored ? c.back().data() : nullptr, stride, 1, p.c, (t.m + t.spread_c) * stride}});
    }
  }
};

// What a joint call must equal: one call after another.
void run_alone(const Case& t, Data& data, const Epilogue* epilogues) {
  for (size_t i = 0; i < t.parts.size(); ++i) {
    if (!t.parts[i].stored) continue;
    const GemmOptions options{.batch = t.batch, .epilogue = epilogues ? epilogues + i : nullptr, .isa = t.isa};
    const GemmPart& part = data.parts[i];
    if (part.packed)
      gemm(t.m, data.operand, *part.packed, part.c, options);
    else
      gemm(t.m, part.n, t.k, data.operand, part.b, part.c, options);
  }
}

// The value's place and part, told apart by each.
template <class T>
void mark(void* context, void* tile, int64_t row, int64_t col, int64_t rows, int64_t cols, int64_t stride) {
  const T scale = T(*static_cast<int*>(context));
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < cols; ++j)
      static_cast<T*>(tile)[i * stride + j] += scale * T(row + i) + T(0.125) * T(col + j);
}
template <class T>
void mark_joint(void*, void* const* tiles, int64_t part, int64_t row, int64_t col, int64_t rows, int64_t cols,
                int64_t stride) {
  int number = int(part) + 1;
  mark<T>(&number, tiles[0], row, col, rows, cols, stride);
}

void check_apart(const Case& t, unsigned seed) {
  for (bool with_epilogue : {false, true}) {
    Data alone(t, seed);
    const bool wide = t.a == GemmType::f64;
    std::vector<int> numbers(t.parts.size());
    std::vector<Epilogue> epilogues;
    for (size_t i = 0; i < numbers.size(); ++i) {
      numbers[i] = int(i) + 1;
      epilogues.push_back({wide ? mark<double> : mark<float>, &numbers[i]});
    }
    run_alone(t, alone, with_epilogue ? epilogues.data() : nullptr);
    for (int threads : {1, 2}) {
      const Threads limit(threads);
      Data joint(t, seed);
      const JointEpilogue epilogue{wide ? mark_joint<double> : mark_joint<float>};
      gemm_joint(t.m, t.k, joint.operand, joint.parts,
                 {.batch = t.batch, .epilogue = with_epilogue ? &epilogue : nullptr, .isa = t.isa});
      for (size_t i = 0; i < t.parts.size(); ++i)
        ASSERT_EQ(alone.c[i], joint.c[i]) << format("part {} of m={} k={} batch={} seed={} threads={} epilogue={}", i,
                                                    t.m, t.k, t.batch, seed, threads, with_epilogue);
    }
  }
}

void gate(void*, void* const* tiles, int64_t part, int64_t row, int64_t col, int64_t rows, int64_t cols,
          int64_t stride) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < cols; ++j) {
      float& x = static_cast<float*>(tiles[0])[i * stride + j];
      const float y = static_cast<float*>(tiles[1])[i * stride + j];
      x = x * y + float(row + i) - 0.5f * float(col + j) + float(part);
    }
  }
}

// Two products, the second of them never stored.
void check_together(const Case& t, unsigned seed) {
  Case plain = t;
  for (PartCase& p : plain.parts) p.c = GemmType::f32, p.stored = true;
  Data alone(plain, seed);
  run_alone(plain, alone, nullptr);
  const PartCase& p = t.parts[0];
  for (int threads : {1, 2}) {
    const Threads limit(threads);
    Data joint(t, seed);
    const JointEpilogue epilogue{gate};
    gemm_joint(t.m, t.k, joint.operand, joint.parts,
               {.together = true, .batch = t.batch, .epilogue = &epilogue, .isa = t.isa});
    for (int64_t s = 0; s < t.batch; ++s) {
      for (int64_t i = 0; i < t.m; ++i) {
        for (int64_t j = 0; j < p.n; ++j) {
          const GemmOutput& c = joint.parts[0].c;
          const int64_t at = s * c.batch_stride + i * c.row_stride + j;
          const float x = reinterpret_cast<const float*>(alone.c[0].data())[at];
          const float y = reinterpret_cast<const float*>(alone.c[1].data())[at];
          float expected = x * y + float(s * t.m + i) - 0.5f * float(j), got;
          if (p.c == GemmType::f32) {
            std::memcpy(&got, joint.c[0].data() + at * 4, 4);
            ASSERT_EQ(expected, got) << format("m={} n={} k={} at {} {} {} threads={}", t.m, p.n, t.k, s, i, j,
                                               threads);
          } else {
            uint32_t bits = 0;
            std::memcpy(reinterpret_cast<char*>(&bits) + 2, joint.c[0].data() + at * 2, 2);
            std::memcpy(&got, &bits, 4);
            ASSERT_NEAR(expected, got, std::fabs(expected) * 0x1p-8f);
          }
        }
      }
    }
  }
}

class GemmJoint : public testing::TestWithParam<CpuIsa> {};

TEST_P(GemmJoint, ApartHasTheBitsOfEachAlone) {
  std::mt19937 rng(3);
  const auto pick = [&](auto count) { return int64_t(rng() % unsigned(count)); };
  const int64_t rows[] = {1, 2, 5, 8, 9, 30, 70, 180};
  for (unsigned round = 0; round < 50; ++round) {
    Case t{rows[pick(8)], 1 + pick(3) * 150 + pick(90)};
    t.isa = GetParam();
    const GemmType narrow[] = {GemmType::f32, GemmType::bf16, GemmType::f16};
    const bool wide = pick(6) == 0, mixed = pick(3) == 0;
    const GemmType type = wide ? GemmType::f64 : narrow[pick(3)];
    const bool transposed = pick(2), packed = pick(3) == 0;
    t.a = wide ? type : narrow[pick(3)];
    t.batch = pick(3) == 0 ? 1 + pick(4) : 1;
    t.shared_b = pick(2);
    t.spread_c = pick(3) == 0;
    for (int64_t i = 0, count = 1 + pick(4); i < count; ++i) {
      PartCase part{pick(12) == 0 ? pick(9) : 1 + pick(200), type, wide ? type : narrow[pick(3)], transposed, packed};
      if (mixed) {
        if (!wide) part.b = narrow[pick(3)];
        part.transposed = pick(2);
        part.packed = pick(2);
      }
      t.parts.push_back(part);
    }
    check_apart(t, round);
    if (HasFatalFailure()) return;
  }
}

TEST_P(GemmJoint, ApartPastEveryBlockSize) {
  for (int64_t m : {1, 6, 40, 200}) {
    for (bool transposed : {false, true}) {
      Case t{m, 1100};
      t.isa = GetParam();
      for (int64_t n : {530, 20, 70}) t.parts.push_back({n, GemmType::f32, GemmType::f32, transposed});
      check_apart(t, unsigned(m));
      if (HasFatalFailure()) return;
    }
  }
  // Larger than what is packed at a time.
  Case t{170, 9000};
  t.isa = GetParam();
  if (t.isa == CpuIsa::kScalar) return;
  for (int64_t n : {200, 150}) t.parts.push_back({n});
  check_apart(t, 9);
}

TEST_P(GemmJoint, TogetherSeesEveryPart) {
  std::mt19937 rng(4);
  const auto pick = [&](auto count) { return int64_t(rng() % unsigned(count)); };
  const int64_t rows[] = {1, 2, 5, 8, 9, 30, 70, 180};
  for (unsigned round = 0; round < 50; ++round) {
    Case t{rows[pick(8)], 1 + pick(3) * 150 + pick(90)};
    t.isa = GetParam();
    const GemmType narrow[] = {GemmType::f32, GemmType::bf16, GemmType::f16};
    t.a = narrow[pick(3)];
    t.batch = pick(3) == 0 ? 1 + pick(4) : 1;
    t.spread_c = pick(3) == 0;
    const int64_t n = pick(6) == 0 ? 1 + pick(9) : 1 + pick(150);
    PartCase part{n, narrow[pick(3)], pick(2) ? GemmType::f32 : GemmType::bf16, pick(2) == 0, pick(3) == 0};
    t.parts = {part, part};
    t.parts[1].stored = pick(3) == 0;
    t.parts[1].c = GemmType::f32;
    // Now and then the parts cannot go in step.
    if (pick(4) == 0) t.parts[1].packed = !t.parts[1].packed;
    if (pick(4) == 0) t.parts[1].transposed = !t.parts[1].transposed;
    check_together(t, round);
    if (HasFatalFailure()) return;
  }
}

TEST_P(GemmJoint, TogetherPastEveryBlockSize) {
  for (int64_t m : {1, 6, 40, 200}) {
    for (bool transposed : {false, true}) {
      Case t{m, 1100};
      t.isa = GetParam();
      t.parts = {{150, GemmType::f32, GemmType::f32, transposed}, {150, GemmType::f32, GemmType::f32, transposed}};
      t.parts[1].stored = false;
      check_together(t, unsigned(m));
      if (HasFatalFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, GemmJoint, testing::ValuesIn(available_isas()), [](const auto& info) {
  return std::string(cpu_isa_name(info.param));
});

TEST(GemmJointErrors, RefusesWhatItCannotDo) {
  std::vector<float> a(64), b(64), c(64);
  const GemmOperand view{a.data(), 8, 1};
  const GemmPart four{4, {b.data(), 4, 1}, nullptr, {c.data(), 4, 1}},
      two{2, {b.data(), 2, 1}, nullptr, {c.data(), 2, 1}};
  const GemmPart unread{4, {b.data(), 4, 1}, nullptr, {nullptr, 4, 1}};
  EXPECT_THROW(gemm_joint(8, 8, view, std::vector{four, two}, {.together = true}), Error);
  EXPECT_THROW(gemm_joint(8, 8, view, std::vector<GemmPart>(9, four), {.together = true}), Error);
  EXPECT_THROW(gemm_joint(8, 8, view, std::vector{four, unread}), Error);
  EXPECT_NO_THROW(gemm_joint(8, 8, view, {}));
}

}  // namespace
}  // namespace sinter::runtime
