// Readers of arrays and tokens.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fstream>

#include "sinter/base/error.h"
#include "sinter/data/npy.h"
#include "sinter/data/tokens.h"
#include "sinter/ops/creation.h"
#include "tests/data_loading/corrupt.h"
#include "tests/data_loading/recorded_files.h"
#include "tests/support/error_of.h"
#include "tests/support/own_directory.h"

namespace sinter::data {
namespace {

class NumpyFiles : public ::testing::Test {
 protected:
  ~NumpyFiles() override { close(file_); }
  // The name of a file with these bytes, until the next one; in memory, since there are thousands.
  std::string with(std::string_view bytes) {
    EXPECT_TRUE(ftruncate(file_, 0) == 0 && pwrite(file_, bytes.data(), bytes.size(), 0) == ssize_t(bytes.size()));
    return "/proc/self/fd/" + std::to_string(file_);
  }
  std::string error_with(std::string_view bytes) {
    return message_of([&] { load_npy(with(bytes)); });
  }
  // A file of version 1 with this header.
  static std::string file_of(const std::string& header, size_t bytes) {
    std::string out("\x93NUMPY\x01\x00", 8);
    out += char(header.size() & 0xff);
    out += char(header.size() >> 8);
    return out + header + std::string(bytes, 1);
  }

  const int file_ = memfd_create("x.npy", MFD_CLOEXEC);
  OwnDirectory own_;
  const std::string path_ = own_.file("x.npy");
};

TEST_F(NumpyFiles, ReadsWhatNumpyHasWritten) {
  NamedTensors stored = load_npz(with(text_of(recorded::kStoredNpz)));
  ASSERT_EQ(stored.size(), 2u);
  EXPECT_EQ(stored[0].first, "x");
  EXPECT_EQ(stored[0].second.dtype(), kFloat32);
  EXPECT_TRUE(stored[0].second.sizes().same_as({2, 3}));
  EXPECT_EQ(stored[0].second.to_vector<float>(), (std::vector<float>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(stored[1].second.dim(), 0);
  EXPECT_EQ(stored[1].second.item<int64_t>(), 7);

  NamedTensors packed = load_npz(with(text_of(recorded::kCompressedNpz)));
  ASSERT_EQ(packed.size(), 4u);
  EXPECT_EQ(packed[0].second.dtype(), kInt32);
  EXPECT_EQ(packed[0].second.to_vector<int64_t>(), (std::vector<int64_t>{1, 60000, 3}));
  EXPECT_EQ(packed[1].second.to_vector<double>(), (std::vector<double>{1.5, -2, 3, 4}));
  EXPECT_EQ(packed[2].first, "cols");
  EXPECT_TRUE(packed[2].second.is_contiguous());
  EXPECT_EQ(packed[2].second.to_vector<int64_t>(), (std::vector<int64_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(packed[3].second.dtype(), kBool);
  EXPECT_EQ(packed[3].second.to_vector<int64_t>(), (std::vector<int64_t>{1, 0}));
}

TEST_F(NumpyFiles, RoundTripOfEveryType) {
  NamedTensors tensors;
  for (int d = 0; d < kDTypeCount; ++d)
    if (DType(d) != kBFloat16) tensors.emplace_back("t" + std::to_string(d), tensor({0, 1, 1}, DType(d)));
  tensors.emplace_back("scalar", tensor(2.5));
  tensors.emplace_back("empty", empty({0, 4}, kInt32));
  tensors.emplace_back("turned", make_view(tensor({{1, 2, 3}, {4, 5, 6}}), {3, 2}, {1, 3}, 0));
  tensors.emplace_back("long", arange(100'000, kInt32));
  for (bool compressed : {false, true}) {
    save_npz(own_.file("x.npz"), tensors, compressed);
    NamedTensors back = load_npz(own_.file("x.npz"));
    ASSERT_EQ(back.size(), tensors.size());
    for (size_t i = 0; i < back.size(); ++i) {
      EXPECT_EQ(back[i].first, tensors[i].first);
      EXPECT_EQ(back[i].second.dtype(), tensors[i].second.dtype());
      EXPECT_TRUE(back[i].second.sizes().same_as(tensors[i].second.sizes()));
      EXPECT_EQ(back[i].second.to_vector<double>(), tensors[i].second.to_vector<double>());
    }
  }
  for (auto& [name, value] : tensors) {
    save_npy(path_, value);
    Tensor back = load_npy(path_);
    EXPECT_TRUE(back.sizes().same_as(value.sizes()));
    EXPECT_EQ(back.dtype(), value.dtype());
    EXPECT_EQ(back.to_vector<double>(), value.to_vector<double>());
  }
  EXPECT_NE(message_of([&] { save_npy(path_, ones({2}, kBFloat16)); }).find("NumPy has no bf16"), std::string::npos);
  EXPECT_NE(message_of([&] {
              save_npz(path_, {{"a", ones({1})}, {"a", ones({1})}});
            }).find("two tensors"),
            std::string::npos);
}

TEST_F(NumpyFiles, WritingToALoadedArrayLeavesTheFile) {
  save_npy(path_, arange(4));
  Tensor x = load_npy(path_);
  x.fill_(9);
  EXPECT_EQ(load_npy(path_).to_vector<int64_t>(), (std::vector<int64_t>{0, 1, 2, 3}));
}

TEST_F(NumpyFiles, RefusesWhatItDoesNotUnderstand) {
  const std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
  EXPECT_EQ(load_npy(with(file_of(good, 8))).numel(), 2);
  EXPECT_NE(error_with(file_of(good, 7)).find("7 bytes of elements"), std::string::npos);
  EXPECT_NE(error_with(file_of(good, 9)).find("9 bytes of elements"), std::string::npos);
  EXPECT_NE(error_with("").find("is not a .npy file"), std::string::npos);
  EXPECT_NE(error_with(std::string("\x93NUMPY\x07\x00\x00\x00", 10)).find("the version 7"), std::string::npos);
  EXPECT_NE(error_with(std::string("\x93NUMPY\x01\x00\xff\xff", 10)).find("cut short"), std::string::npos);
  EXPECT_NE(error_with(text_of(recorded::kTextNpy)).find("the dtype '<U1'"), std::string::npos);
  EXPECT_NE(
      error_with(file_of("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }", 8)).find("records"),
      std::string::npos);
  EXPECT_NE(
      error_with(file_of("{'descr': '<f4', 'fortran_order': 0, 'shape': (2,), }", 8)).find("neither True nor False"),
      std::string::npos);
  EXPECT_NE(error_with(file_of("{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }", 8)).find("tuple of sizes"),
            std::string::npos);
  EXPECT_NE(error_with(file_of("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999, 99999999999)}", 8))
                .find("overflow"),
            std::string::npos);
  EXPECT_NE(error_with(file_of("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387905,)}", 4))
                .find("takes another"),
            std::string::npos);
  EXPECT_NE(error_with(file_of("{'descr': '<f4', 'fortran_order': False}", 8)).find("lacks a key"), std::string::npos);
  EXPECT_NE(error_with(file_of("{'descr': '<f4', 'descr': '<f4'}", 8)).find("twice"), std::string::npos);
  EXPECT_NE(error_with(file_of("{'descr': '|b1', 'fortran_order': False, 'shape': (2,)}", 0) + "\x01\x02")
                .find("neither true nor false"),
            std::string::npos);
  EXPECT_NE(error_with(file_of("{'descr': '<u8', 'fortran_order': False, 'shape': (1,)}", 0) + std::string(8, '\xff'))
                .find("too large for i64"),
            std::string::npos);
  EXPECT_NE(message_of([&] { load_npy(own_.file("none")); }).find("cannot open"), std::string::npos);
  EXPECT_NE(message_of([&] { load_npz(with("no archive")); }).find("is not a ZIP archive"), std::string::npos);
}

TEST_F(NumpyFiles, DamageIsAnErrorAndNothingElse) {
  for (auto bytes : {text_of(recorded::kStoredNpz), text_of(recorded::kCompressedNpz)}) {
    auto load = [&](const std::string& damaged) { load_npz(with(damaged)); };
    EXPECT_GT(count_errors(bytes, load), 300);
  }
  save_npy(path_, arange(10));
  std::ifstream file(path_, std::ios::binary);
  const std::string npy((std::istreambuf_iterator<char>(file)), {});
  EXPECT_GT(count_errors(npy, [&](const std::string& damaged) { load_npy(with(damaged)); }), 100);
}

// --- tokens

template <class T>
std::string write_ids(const OwnDirectory& own, const std::vector<T>& ids, const std::string& header = "") {
  std::string path = own.file("ids.bin");
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << header;
  out.write(reinterpret_cast<const char*>(ids.data()), std::streamsize(ids.size() * sizeof(T)));
  return path;
}

TEST(TokenFiles, WindowsAndTheirTargets) {
  OwnDirectory own;
  auto path = write_ids<uint16_t>(own, {0, 1, 2, 60000, 4, 5, 6, 7, 8});
  auto dataset = TokenDataset::from_file(path, TokenOptions(4));
  EXPECT_EQ(dataset.tokens(), 9);
  ASSERT_EQ(dataset.size(), 2);
  Example<> first = dataset.get(0), second = dataset.get(1);
  EXPECT_EQ(first.data.dtype(), kInt64);
  EXPECT_EQ(first.data.to_vector<int64_t>(), (std::vector<int64_t>{0, 1, 2, 60000}));
  EXPECT_EQ(first.target.to_vector<int64_t>(), (std::vector<int64_t>{1, 2, 60000, 4}));
  EXPECT_EQ(second.target.to_vector<int64_t>(), (std::vector<int64_t>{5, 6, 7, 8}));
  EXPECT_EQ(TokenDataset::from_file(path, TokenOptions(4).stride(1)).size(), 5);
  EXPECT_EQ(TokenDataset::from_file(path, TokenOptions(8)).size(), 1);
  EXPECT_EQ(TokenDataset::from_file(path, TokenOptions(4).stride(3)).get(1).data.to_vector<int64_t>(),
            (std::vector<int64_t>{60000, 4, 5, 6}));
}

TEST(TokenFiles, TypesHeadersAndMistakes) {
  OwnDirectory own;
  auto path = write_ids<uint32_t>(own, {1, 4'000'000'000, 3}, "headings");
  auto options = TokenOptions(2).type(TokenType::kUInt32).header_bytes(8);
  EXPECT_EQ(TokenDataset::from_file(path, options).get(0).data.to_vector<int64_t>(),
            (std::vector<int64_t>{1, 4'000'000'000}));
  auto error = [&](const TokenOptions& given) {
    return message_of([&] { TokenDataset::from_file(path, given).get(0); });
  };
  EXPECT_NE(
      error(TokenOptions(options).type(TokenType::kInt32)).find("token 1 of '" + path + "' has the id -294967296"),
      std::string::npos);
  EXPECT_NE(error(TokenOptions(options).vocab_size(100)).find("the vocabulary 100 tokens"), std::string::npos);
  EXPECT_NE(error(TokenOptions(options).length(3)).find("has 3 tokens"), std::string::npos);
  EXPECT_NE(error(TokenOptions(options).header_bytes(7)).find("no whole number of ids"), std::string::npos);
  EXPECT_NE(error(TokenOptions(options).header_bytes(99)).find("its header 99"), std::string::npos);
  EXPECT_NE(error(TokenOptions(options).length(0)).find("windows of 0 tokens"), std::string::npos);
  auto dataset = TokenDataset::from_file(path, options);
  EXPECT_NE(message_of([&] { dataset.get(1); }).find("no window 1 in 1"), std::string::npos);
  std::ofstream(own.file("empty.bin")).flush();
  EXPECT_NE(message_of([&] { TokenDataset::from_file(own.file("empty.bin"), TokenOptions(1)); }).find("has 0 tokens"),
            std::string::npos);
  EXPECT_NE(message_of([&] { TokenDataset::from_file(own.file("none.bin"), TokenOptions(1)); }).find("cannot open"),
            std::string::npos);
}

}  // namespace
}  // namespace sinter::data
