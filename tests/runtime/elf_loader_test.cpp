// The object loader must refuse what it cannot load, whatever the bytes.
#include "sinter/runtime/cpu/elf_loader.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "sinter/base/error.h"
#include "sinter/codegen/cpu/emit.h"
#include "sinter/runtime/cpu/compilers.h"

namespace sinter::runtime {
namespace {

constexpr const char* kSource = R"(
extern "C" float tanhf(float);
extern "C" int outside;
extern "C" float f(float x) { return tanhf(x) * 2.5f; }
extern "C" int* g() { return &outside; }
extern "C" const char* table[2] = {"zero", "one"};
)";

// By the plugin, or where there is none by a compiler as a child process; empty without any.
std::string object_of(const std::string& source) {
  try {
    return compile_with_clang(source, "k", host_target());
  } catch (const CompilerFailure&) {
  }
  TemporaryDirectory directory;
  write_file(directory.file("k.cpp"), source);
  for (std::string compiler : {"clang++-19 --target=" + host_target().triple, std::string("g++")}) {
    std::string command = compiler + " -std=c++20 -O2 -fPIC -fvisibility=hidden -fwrapv -fno-exceptions -w -nostdinc " +
                          "-c -o " + directory.file("k.o") + " " + directory.file("k.cpp") + " >/dev/null 2>&1";
    if (std::system(command.c_str()) == 0) return read_file(directory.file("k.o"));
  }
  return {};
}

class ElfLoaderTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!elf_loader_supported()) GTEST_SKIP() << "no loader for this machine";
    object_ = object_of(kSource);
    if (object_.empty()) GTEST_SKIP() << "no compiler";
  }

  std::string object_;
};

int outside = 5;

void* resolve(const char* name) {
  if (std::strcmp(name, "outside") == 0) return &outside;
  return ElfImage::process_symbol(name);
}

TEST_F(ElfLoaderTest, LoadsAndResolvesThroughTheGivenResolver) {
  auto image = ElfImage::load(object_, resolve);
  EXPECT_EQ(reinterpret_cast<int* (*)()>(image.find_symbol("g"))(), &outside);
  EXPECT_NEAR(reinterpret_cast<float (*)(float)>(image.find_symbol("f"))(0.5f), 2.5f * 0.46211716f, 1e-5);
  EXPECT_STREQ(static_cast<const char**>(image.find_symbol("table"))[1], "one");
  EXPECT_EQ(image.find_symbol("outside"), nullptr);
  ElfImage moved = std::move(image);
  EXPECT_NE(moved.find_symbol("f"), nullptr);
}

// Constants of every width, calls to libm and functions by their address.
TEST_F(ElfLoaderTest, LoadsAGeneratedKernel) {
  auto image = ElfImage::load(object_of(codegen::cpu_prelude(host_target().vector_bytes / 4) + R"(
extern "C" void kernel(const float* in, float* out, double* wide, long n) {
  FlushDenormals flush;
  for (long i = 0; i < n; i += kLanes) {
    store<f32>(out, i, exp(load<f32>(in, i)) + cast_f32(iota_i32()));
    store<f64>(wide, i, sin(cast_f64(load<f32>(in, i))));
  }
  store1<f64>(wide, n, pow(load1<f64>(wide, 0), 2.5));
}
)"));
  constexpr long kCount = 64;
  std::vector<float> in(kCount), out(kCount);
  std::vector<double> wide(kCount + 1);
  for (long i = 0; i < kCount; ++i) in[size_t(i)] = float(i + 1) * 0.05f;
  reinterpret_cast<void (*)(const float*, float*, double*, long)>(image.find_symbol("kernel"))(in.data(), out.data(),
                                                                                             wide.data(), kCount);
  for (size_t i = 0; i < kCount; ++i) {
    const double lane = double(i % size_t(host_target().vector_bytes / 4));
    EXPECT_NEAR(out[i], std::exp(double(in[i])) + lane, 1e-5 * (lane + 25)) << i;
    EXPECT_DOUBLE_EQ(wide[i], std::sin(double(in[i]))) << i;
  }
  EXPECT_DOUBLE_EQ(wide[kCount], std::pow(wide[0], 2.5));
}

TEST_F(ElfLoaderTest, UndefinedSymbolIsAnError) {
  try {
    ElfImage::load(object_, [](const char*) -> void* { return nullptr; });
    FAIL() << "loaded";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("undefined symbol '"), std::string::npos) << error.message();
  }
}

TEST_F(ElfLoaderTest, EveryTruncationIsAnError) {
  for (size_t size = 0; size < object_.size(); ++size)
    EXPECT_THROW(ElfImage::load(object_.substr(0, size), resolve), Error) << size;
}

TEST_F(ElfLoaderTest, DamageInTheTablesNeverCrashes) {
  // Every byte of the file in turn gets several values; a load may succeed, but must not touch foreign memory.
  int refused = 0;
  for (size_t i = 0; i < object_.size(); ++i) {
    for (int value : {0x00, 0x01, 0x7f, 0x80, 0xff}) {
      std::string damaged = object_;
      damaged[i] = char(value);
      try {
        ElfImage::load(damaged, resolve);
      } catch (const Error&) {
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 100);
}

TEST_F(ElfLoaderTest, UnknownRelocationIsAnError) {
  Elf64_Ehdr header;
  std::memcpy(&header, object_.data(), sizeof header);
  int changed = 0;
  for (int i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    std::memcpy(&section, object_.data() + header.e_shoff + i * sizeof section, sizeof section);
    if (section.sh_type != SHT_RELA) continue;
    Elf64_Rela entry;
    std::memcpy(&entry, object_.data() + section.sh_offset, sizeof entry);
    entry.r_info = ELF64_R_INFO(ELF64_R_SYM(entry.r_info), R_X86_64_TPOFF32);
    std::string damaged = object_;
    std::memcpy(damaged.data() + section.sh_offset, &entry, sizeof entry);
    EXPECT_THROW(ElfImage::load(damaged, resolve), Error);
    ++changed;
  }
  EXPECT_GT(changed, 0);
}

TEST_F(ElfLoaderTest, StaticConstructorsAndThreadLocalsAreRefused) {
  for (const char* source : {"extern \"C\" int getpid(); int id = getpid();",
                             "extern \"C\" { thread_local int t = 3; int f() { return ++t; } }"})
    EXPECT_THROW(ElfImage::load(object_of(source)), Error) << source;
}

}  // namespace
}  // namespace sinter::runtime
