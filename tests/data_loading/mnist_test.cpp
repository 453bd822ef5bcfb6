// MNIST's files; that they are read right is told by tests/idioms.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "sinter/data/dataset.h"
#include "tests/support/error_of.h"

namespace sinter::data {
namespace {

TEST(Mnist, SaysWhatIsWrongWithItsFiles) {
  const std::string root = ::testing::TempDir();
  auto error_with = [&](std::string bytes) {
    std::ofstream(root + "/train-images-idx3-ubyte", std::ios::binary) << bytes;
    return message_of([&] { datasets::MNIST mnist(root); });
  };
  const std::string header("\0\0\x08\x03\0\0\0\x01\0\0\0\x02\0\0\0\x02", 16);
  EXPECT_NE(error_with("\x1f\x8b").find("unpacked first"), std::string::npos);
  EXPECT_NE(error_with(header.substr(0, 9)).find("no IDX file"), std::string::npos);
  EXPECT_NE(error_with(header + "abc").find("4 elements, and has 3"), std::string::npos);
  std::remove((root + "/train-images-idx3-ubyte").c_str());
}

}  // namespace
}  // namespace sinter::data
