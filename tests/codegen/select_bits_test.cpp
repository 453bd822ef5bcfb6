// Selects meet bit operations: expressions over the prelude, compiled as kernels are, against plain scalar arithmetic. LLVM
// joins the two on AVX-512, and has joined them wrongly (prelude.embed: opaque).
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <optional>
#include <random>

#include "sinter/base/format.h"
#include "sinter/codegen/cpu/emit.h"
#include "sinter/runtime/cpu/toolchain.h"
#include "sinter/tensor/dtype.h"

namespace sinter {
namespace {

using runtime::CpuCompiler;
using runtime::CpuIsa;

// What one lane sees: three operands, and a mask that was read from memory of any dtype.
template <class T>
struct Lane {
  T a, b, c;
  bool m;
};
// An expression: as the text of a kernel, and as what it should give.
template <class T, class R = T>
struct Term {
  std::string text;
  std::function<R(const Lane<T>&)> value;
};
template <class T>
using Mask = Term<T, bool>;

// Random expressions over one dtype; wrapping arithmetic.
template <class T>
class Expressions {
 public:
  static constexpr bool kInteger = std::is_integral_v<T>;
  using U = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

  explicit Expressions(uint64_t seed) : random_(seed) {}

  Term<T> operand(int which) {
    if (which == 0) return {"a", [](const Lane<T>& l) { return l.a; }};
    if (which == 1) return {"b", [](const Lane<T>& l) { return l.b; }};
    return {"c", [](const Lane<T>& l) { return l.c; }};
  }
  Term<T> operand() { return operand(draw(3)); }

  Mask<T> mask() {
    static constexpr const char* kNames[] = {"lt", "le", "gt", "ge", "eq", "ne"};
    int kind = draw(8);
    if (kind == 6) return {"m", [](const Lane<T>& l) { return l.m; }};
    if (kind == 7) return {"logical_not(m)", [](const Lane<T>& l) { return !l.m; }};
    Term<T> x = operand(), y = draw(2) ? operand() : Term<T>{"T{}", [](const Lane<T>&) { return T(0); }};
    return {format("{}({}, {})", kNames[kind], x.text, y.text), [=](const Lane<T>& l) {
              T p = x.value(l), q = y.value(l);
              return kind == 0   ? p < q
                     : kind == 1 ? p <= q
                     : kind == 2 ? p > q
                     : kind == 3 ? p >= q
                     : kind == 4 ? p == q
                                 : p != q;
            }};
  }

  Term<T> select(const Mask<T>& m, const Term<T>& x, const Term<T>& y) {
    return {format("select({}, {}, {})", m.text, x.text, y.text),
            [=](const Lane<T>& l) { return m.value(l) ? x.value(l) : y.value(l); }};
  }

  // Some bits of x and the others of y, in one of the ways in which programs say it.
  Term<T> choice(const Term<T>& x, const Term<T>& y) {
    if constexpr (!kInteger) {
      return {format("copysign({}, {})", x.text, y.text),
              [=](const Lane<T>& l) { return std::copysign(x.value(l), y.value(l)); }};
    } else {
      static constexpr int kWidths[] = {4, 8, 16, 31};
      int width = kWidths[draw(4)];
      T low = T((U(1) << width) - 1);
      auto masked = [](const Term<T>& t, T n) { return format("bit_and({}, like(a, {}l))", t.text, int64_t(n)); };
      auto cut = [&](const Term<T>& t) {
        return format("shift_left(shift_right({}, like(a, {})), like(a, {}))", t.text, width, width);
      };
      std::string lows = draw(4) ? masked(x, low) : format("({} - {})", x.text, cut(x));
      std::string highs = draw(3) ? masked(y, T(~low)) : cut(y);
      static constexpr const char* kJoins[] = {"bit_or({}, {})", "bit_or({}, {})", "bit_xor({}, {})", "({} + {})"};
      return {format(kJoins[draw(4)], lows, highs),
              [=](const Lane<T>& l) { return T((x.value(l) & low) | (y.value(l) & ~low)); }};
    }
  }

  Term<T> with_one(const Term<T>& x) {
    return {format("({} + like(a, 1))", x.text), [=](const Lane<T>& l) {
              if constexpr (kInteger)
                return T(U(x.value(l)) + 1);
              else
                return T(x.value(l) + 1);
            }};
  }

  Term<T> bit_operation(const Term<T>& x, const Term<T>& y) {
    int kind = draw(kInteger ? 6 : 3);
    if (kind == 0) return choice(x, y);
    if (kind == 1)
      return {format("neg({})", x.text), [=](const Lane<T>& l) {
                if constexpr (kInteger)
                  return T(U(0) - U(x.value(l)));
                else
                  return T(-x.value(l));
              }};
    if (kind == 2)
      return {format("abs({})", x.text), [=](const Lane<T>& l) {
                if constexpr (kInteger)
                  return x.value(l) < 0 ? T(U(0) - U(x.value(l))) : x.value(l);
                else
                  return T(std::abs(x.value(l)));
              }};
    if constexpr (kInteger) {
      static constexpr const char* kNames[] = {"bit_and({}, {})", "bit_xor({}, {})", "bit_and({}, bit_not({}))"};
      return {format(kNames[kind - 3], x.text, y.text), [=](const Lane<T>& l) {
                T p = x.value(l), q = y.value(l);
                return kind == 3 ? T(p & q) : kind == 4 ? T(p ^ q) : T(p & ~q);
              }};
    }
    return x;
  }

  // Selects and bit operations in turns.
  Term<T> chain(int length) {
    if (length == 0) return operand();
    Term<T> x = chain(length - 1), y = draw(3) ? operand() : chain(length - 1);
    if (draw(2)) std::swap(x, y);
    return length % 2 ? bit_operation(x, y) : select(mask(), x, y);
  }

  // A choice between bits in either arm of a select, with every operand in every place; chains of two to four.
  std::vector<Term<T>> table() {
    std::vector<Term<T>> out;
    for (int arm = 0; arm < 2; ++arm)
      for (int x = 0; x < 3; ++x)
        for (int y = 0; y < 3; ++y)
          for (int z = 0; z < 3; ++z) {
            Term<T> bits = choice(operand(y), operand(z)), other = operand(x);
            Term<T> all = arm ? select(mask(), bits, other) : select(mask(), other, bits);
            out.push_back(draw(2) ? with_one(all) : all);
          }
    for (int i = 0; i < 36; ++i) {
      Term<T> x = chain(2 + i % 3);
      out.push_back(draw(3) ? x : with_one(x));
    }
    return out;
  }

 private:
  int draw(int below) { return int(random_() % unsigned(below)); }
  std::mt19937 random_;
};

constexpr int kElements = 16;  // of every operand: one vector, or several narrow ones

template <class T>
T drawn(std::mt19937& random) {
  if constexpr (std::is_integral_v<T>)
    return T(uint64_t(random()) << 32 | random());
  else
    return T(int(random() % 4001) - 2000) / T(97);
}

// The same expressions in vectors, and in a loop over scalars that the compiler may make vectors of.
template <class T>
std::string kernel_text(const std::vector<Term<T>>& table, DType memory, DType mask) {
  std::string out, x = "k::" + to_string(memory), m = mask == kBool ? "bool" : "k::" + to_string(mask);
  for (size_t n = 0; n < table.size(); ++n)
    out += format(R"(
template <class T, class M> K_INLINE T term{}(T a, T b, T c, M m) { return {}; }
extern "C" void lanes{}(const void* a, const void* b, const void* c, const void* m, void* out) {
  for (i64 i = 0; i < {}; i += kLanes)
    store<{}>(out, i, term{}(load<{}>(a, i), load<{}>(b, i), load<{}>(c, i), cast_bool(load<{}>(m, i))));
}
)",
                  n, table[n].text, n, kElements, x, n, x, x, x, m);
  for (size_t n = 0; n < table.size(); n += 3)
    out += format(R"(
extern "C" void scalars{}(const void* a, const void* b, const void* c, const void* m, void* out) {
  for (i64 i = 0; i < {}; ++i)
    store1<{}>(out, i, term{}(load1<{}>(a, i), load1<{}>(b, i), load1<{}>(c, i), cast_bool(load1<{}>(m, i))));
}
)",
                  n, kElements, x, n, x, x, x, m);
  return out;
}

// Operands and results lie in memory as Memory, and are computed with as T.
template <class T, class Memory>
void check_table(runtime::Toolchain& toolchain, int lanes, DType memory, DType mask) {
  SCOPED_TRACE(format("{} with a mask from {}", memory, mask));
  auto table = Expressions<T>(uint64_t(memory)).table();
  std::shared_ptr<const runtime::CpuCode> code = toolchain.compile(
      kernel_text(table, memory, mask), format("select_bits_{}", memory), codegen::cpu_prelude(lanes));
  std::mt19937 random(7);
  alignas(64) Memory a[kElements], b[kElements], c[kElements], got[kElements];
  alignas(64) unsigned char m[kElements * 8] = {};
  bool masks[kElements];
  for (int i = 0; i < kElements; ++i) {
    a[i] = Memory(drawn<T>(random)), b[i] = Memory(drawn<T>(random)), c[i] = Memory(drawn<T>(random));
    masks[i] = random() % 2;
    // Of any type: a byte that is not zero, and in the place where a float has its exponent.
    if (masks[i]) m[(i + 1) * int(item_size(mask)) - 1] = mask == kBool ? 1 : 0x40;
  }
  int wrong = 0;
  for (size_t n = 0; n < table.size(); ++n) {
    for (const char* kind : {"lanes", "scalars"}) {
      std::string name = format("{}{}", kind, n);
      if (!code->find_symbol(name)) continue;
      code->function<void (*)(const void*, const void*, const void*, const void*, void*)>(name)(a, b, c, m, got);
      for (int i = 0; i < kElements; ++i) {
        Memory want = Memory(table[n].value({T(a[i]), T(b[i]), T(c[i]), masks[i]}));
        if (std::memcmp(&want, &got[i], sizeof want) == 0) continue;
        if (++wrong <= 5)
          ADD_FAILURE() << name << ": " << table[n].text << " gives " << +T(got[i]) << " instead of " << +T(want);
        break;
      }
    }
  }
  EXPECT_EQ(wrong, 0) << "of " << table.size();
}

struct Way {
  CpuCompiler compiler;
  CpuIsa isa;
};

class SelectBits : public testing::TestWithParam<Way> {};

TEST_P(SelectBits, AgreesWithPlainArithmetic) {
  auto target = runtime::detect_cpu(GetParam().isa);
  if (target.isa != GetParam().isa) GTEST_SKIP() << "this machine has no such instructions";
  runtime::Toolchain toolchain({target, runtime::CodeStore::default_directory(), GetParam().compiler});
  int lanes = target.vector_bytes / 4;
  check_table<int32_t, int32_t>(toolchain, lanes, kInt32, kFloat64);
  check_table<float, float>(toolchain, lanes, kFloat32, kInt64);
  if (GetParam().compiler == CpuCompiler::kGxx) return;  // one width is enough of what is slow
  check_table<int64_t, int64_t>(toolchain, lanes, kInt64, kFloat32);
  check_table<double, double>(toolchain, lanes, kFloat64, kBool);
  check_table<float, BFloat16>(toolchain, lanes, kBFloat16, kUInt8);
}

#if defined(__x86_64__)
INSTANTIATE_TEST_SUITE_P(, SelectBits,
                         testing::Values(Way{CpuCompiler::kClang, CpuIsa::kAvx512},
                                         Way{CpuCompiler::kClang, CpuIsa::kAvx2},
                                         Way{CpuCompiler::kClang, CpuIsa::kScalar},
                                         Way{CpuCompiler::kGxx, CpuIsa::kAvx512},
                                         Way{CpuCompiler::kGxx, CpuIsa::kAvx2}),
#else
INSTANTIATE_TEST_SUITE_P(, SelectBits, testing::Values(Way{CpuCompiler::kGxx, CpuIsa::kNeon}),
#endif
                         [](const auto& info) {
                           return format("{}_{}", info.param.compiler == CpuCompiler::kClang ? "clang" : "gxx",
                                         cpu_isa_name(info.param.isa));
                         });

}  // namespace
}  // namespace sinter
