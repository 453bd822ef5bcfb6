#include "sinter/io/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "sinter/base/error.h"
#include "tests/support/error_of.h"
#include "tests/support/own_directory.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;

class SafeTensors : public ::testing::Test {
 protected:
  void write_raw(const std::string& bytes) { std::ofstream(path_, std::ios::binary) << bytes; }
  void write_file(const std::string& header, size_t data_bytes) {
    uint64_t length = header.size();
    std::string bytes(8, 0);
    std::memcpy(bytes.data(), &length, 8);
    write_raw(bytes + header + std::string(data_bytes, 1));
  }
  std::string read_error() {
    return error_of([&] { load_safetensors(path_); });
  }
  void expect_refused(const std::string& header, size_t data_bytes, const char* text) {
    write_file(header, data_bytes);
    EXPECT_NE(read_error().find(text), std::string::npos) << header << "\n" << read_error();
  }

  OwnDirectory own_;
  const fs::path folder_ = own_.path();
  const std::string path_ = own_.file("x.safetensors");
};

TEST_F(SafeTensors, RoundTripOfEveryType) {
  NamedTensors tensors;
  for (int d = 0; d < kDTypeCount; ++d)
    if (DType(d) != kComplex128) tensors.emplace_back("t" + std::to_string(d), tensor({0, 1, 1}, DType(d)));
  tensors.emplace_back("scalar", tensor(2.5));
  tensors.emplace_back("empty", empty({0, 4}, kInt32));
  tensors.emplace_back("näme \"quoted\"", make_view(tensor({{1, 2, 3}, {4, 5, 6}}), {3, 2}, {1, 3}, 0));
  save_safetensors(path_, tensors, {{"format", "pt"}, {"who", "me"}});

  auto back = load_safetensors(path_);
  ASSERT_EQ(back.size(), tensors.size());
  for (size_t i = 0; i < back.size(); ++i) {
    EXPECT_EQ(back[i].first, tensors[i].first);
    EXPECT_EQ(back[i].second.dtype(), tensors[i].second.dtype());
    EXPECT_TRUE(back[i].second.sizes().same_as(tensors[i].second.sizes()));
    EXPECT_EQ(back[i].second.to_vector<double>(), tensors[i].second.to_vector<double>());
  }
  SafeTensorsFile file(path_);
  EXPECT_EQ(file.metadata().at("who"), "me");
  EXPECT_EQ(file.info("t7").dtype_text, "BF16");
  EXPECT_TRUE(file.contains("empty"));
  EXPECT_FALSE(file.contains("missing"));
  EXPECT_THROW(file.tensor("missing"), Error);
}

TEST_F(SafeTensors, WritesTheFormatExactly) {
  save_safetensors(path_, {{"a", tensor({1, 2}, kUInt8)}, {"b", tensor({1.0})}});
  std::ifstream in(path_, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), {});
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  EXPECT_EQ(length % 8, 0u);
  std::string header = bytes.substr(8, length);
  header.erase(header.find_last_not_of(' ') + 1);
  EXPECT_EQ(
      header,
      R"({"a":{"data_offsets":[4,6],"dtype":"U8","shape":[2]},"b":{"data_offsets":[0,4],"dtype":"F32","shape":[1]}})");
  EXPECT_EQ(bytes.substr(8 + length), std::string("\x00\x00\x80\x3f\x01\x02", 6));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1) << "a temporary file was left";
}

TEST_F(SafeTensors, TensorsViewTheMapping) {
  save_safetensors(path_, {{"a", tensor({1.0, 2.0})}, {"b", tensor({3.0})}});
  Tensor a, b;
  {
    SafeTensorsFile file(path_);
    a = file.tensor("a");
    b = file.tensor("b");
    EXPECT_EQ(a.data_ptr<float>() + 2, b.data_ptr<float>());
  }
  a.data_ptr<float>()[0] = 9;  // private to this process
  EXPECT_EQ(a.to_vector<float>(), (std::vector<float>{9, 2}));
  EXPECT_EQ(load_safetensors(path_)[0].second.to_vector<float>(), (std::vector<float>{1, 2}));
}

TEST_F(SafeTensors, CopiesWhatTheFileDoesNotAlign) {
  std::string header =
      R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"I32","shape":[1],"data_offsets":[1,5]}})";
  write_file(header, 5);
  EXPECT_EQ(load_safetensors(path_)[1].second.item<int>(), 0x01010101);
}

TEST_F(SafeTensors, ASaveThatFailsLeavesTheOldFile) {
  save_safetensors(path_, {{"a", tensor({1.0})}});
  EXPECT_THROW(save_safetensors(path_, {{"a", tensor({2.0})}, {"a", tensor({3.0})}}), Error);
  EXPECT_THROW(save_safetensors(path_, {{"__metadata__", tensor({2.0})}}), Error);
  EXPECT_THROW(save_safetensors(path_, {{"\xff\xfe", tensor({2.0})}}), Error);
  EXPECT_THROW(save_safetensors(path_, {{"a", Tensor()}}), Error);
  EXPECT_THROW(save_safetensors((folder_ / "none" / "x").string(), {{"a", tensor({2.0})}}), Error);
  EXPECT_EQ(load_safetensors(path_)[0].second.item<float>(), 1);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
  save_safetensors(path_, {});
  EXPECT_TRUE(load_safetensors(path_).empty());
}

TEST_F(SafeTensors, UnsupportedTypesFailOnlyWhenRead) {
  write_file(
      R"({"q":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"I8","shape":[1],"data_offsets":[2,3]}})",
      3);
  SafeTensorsFile file(path_);
  EXPECT_FALSE(file.info("q").dtype.has_value());
  EXPECT_EQ(file.tensor("b").item<int>(), 1);
  try {
    file.tensor("q");
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(e.message().find("F8_E4M3, which is not supported"), std::string::npos);
  }
}

TEST_F(SafeTensors, RefusesBrokenFiles) {
  EXPECT_NE(read_error().find("cannot open"), std::string::npos);
  write_raw("short");
  EXPECT_NE(read_error().find("too few"), std::string::npos);
  write_raw(std::string("\xff\xff\xff\xff\xff\xff\xff\xff{}", 10));
  EXPECT_NE(read_error().find("at most 100000000"), std::string::npos);
  write_raw(std::string("\x40\0\0\0\0\0\0\0{}", 10));
  EXPECT_NE(read_error().find("claims a header of 64 bytes but has 10"), std::string::npos);
  write_raw(std::string(8, 0));
  EXPECT_NE(read_error().find("does not begin with '{'"), std::string::npos);
  EXPECT_THROW(SafeTensorsFile(folder_.string()), Error);
}

TEST_F(SafeTensors, RefusesHostileHeaders) {
  auto entry = [](const std::string& dtype, const std::string& shape, const std::string& offsets) {
    return R"({"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
  };
  auto one = [&](const std::string& dtype, const std::string& shape, const std::string& offsets) {
    return R"({"a":)" + entry(dtype, shape, offsets) + "}";
  };
  write_file(one("I8", "[4]", "[0,4]") + "   ", 4);
  EXPECT_NO_THROW(load_safetensors(path_));

  expect_refused("{\"a\":", 0, "not valid JSON");
  expect_refused("[]", 0, "does not begin");
  expect_refused("{} {}", 0, "not valid JSON");
  expect_refused(R"({"a":)" + std::string(100000, '['), 0, "nested too deeply");
  expect_refused(R"({"a":{"dtype":[[1]]}})", 0, "nested too deeply");
  expect_refused("{\"\xff\":" + entry("I8", "[4]", "[0,4]") + "}", 4, "not valid JSON");
  expect_refused(R"({"a":1})", 0, "lacks a proper 'dtype'");
  expect_refused(R"({"a":{"dtype":"I8","shape":[1]}})", 1, "lacks a proper 'data_offsets'");
  expect_refused(R"({"__metadata__":{"k":1}})", 0, "is not a text");
  expect_refused(R"({"__metadata__":3})", 0, "is not an object");
  expect_refused(one("I9", "[4]", "[0,4]"), 4, "unknown dtype 'I9'");
  expect_refused(one("I8", "[-4]", "[0,4]"), 4, "not a non-negative integer: -4");
  expect_refused(one("I8", "[4.0]", "[0,4]"), 4, "not a non-negative integer");
  expect_refused(one("I8", "[99999999999999999999]", "[0,4]"), 4, "not a non-negative integer");
  expect_refused(one("I8", "[4294967296,4294967296]", "[0,0]"), 0, "overflow");
  expect_refused(one("F32", "[2305843009213693952]", "[0,0]"), 0, "overflow");
  expect_refused(one("F32", "[2]", "[0,4]"), 4, "F32[2] takes 8 bytes, its offsets are 0 to 4");
  expect_refused(one("I8", "[4]", "[4,0]"), 4, "its offsets are 4 to 0");
  expect_refused(one("I8", "[4]", "[0]"), 4, "two data_offsets");
  expect_refused(one("I8", "[4]", "[0,4]"), 3, "cut short");
  expect_refused(one("I8", "[4]", "[0,4]"), 5, "bytes 4 to 5");
  expect_refused(one("I8", "[4]", "[1,5]"), 5, "bytes 0 to 1");
  expect_refused(one("I8", "[4]", "[9223372036854775803,9223372036854775807]"), 4, "belong to no tensor");
  expect_refused(one("F4", "[3]", "[0,2]"), 2, "whole bytes");
  auto i4 = [&](const char* offsets) { return entry("I8", "[4]", offsets); };
  expect_refused(R"({"a":)" + i4("[0,4]") + R"(,"b":)" + i4("[2,6]") + "}", 6, "overlap at byte 2");
  expect_refused(R"({"a":)" + i4("[0,4]") + R"(,"b":)" + i4("[0,4]") + "}", 4, "overlap at byte 0");
  expect_refused(R"({"a":)" + i4("[0,4]") + R"(,"a":)" + i4("[4,8]") + "}", 8, "names 'a' twice");
  expect_refused(R"({"a":{"dtype":"I8","shape":[4],"dtype":"U8","data_offsets":[0,4]}})", 4, "names 'dtype' twice");
  std::string many = "[1";
  for (int i = 0; i < 70; ++i) many += ",1";
  expect_refused(one("I8", many + "]", "[0,1]"), 1, "71 dimensions");
}

TEST_F(SafeTensors, RefusesBooleansThatAreNeither) {
  std::string header = R"({"a":{"dtype":"BOOL","shape":[2],"data_offsets":[0,2]}})";
  write_file(header, 2);
  EXPECT_NO_THROW(load_safetensors(path_));
  std::fstream(path_, std::ios::in | std::ios::out | std::ios::binary).seekp(8 + header.size()).put(7);
  EXPECT_NE(read_error().find("neither true nor false"), std::string::npos);
}

}  // namespace
}  // namespace sinter
