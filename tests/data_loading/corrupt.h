#pragma once
// Files with something wrong.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>

#include "sinter/base/error.h"

namespace sinter::data {

template <size_t N>
std::string text_of(const unsigned char (&bytes)[N]) {
  return std::string(reinterpret_cast<const char*>(bytes), N);
}

// Reads the file cut off everywhere, with each byte changed, and with random bytes changed: a reader gives a result or
// throws an Error. The number of errors.
template <class Read>
int count_errors(const std::string& bytes, Read read) {
  int errors = 0;
  auto try_it = [&](const std::string& damaged) {
    try {
      read(damaged);
    } catch (const Error& error) {
      EXPECT_FALSE(error.message().empty());
      ++errors;
    }
  };
  for (size_t size = 0; size < bytes.size(); ++size) try_it(bytes.substr(0, size));
  for (size_t i = 0; i < bytes.size(); ++i)
    for (unsigned char flipped : {0xff, 0x01, 0x80}) {
      std::string damaged = bytes;
      damaged[i] = char(damaged[i] ^ flipped);
      try_it(damaged);
    }
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) {
    std::string damaged = bytes;
    for (int i = 0; i < 4; ++i) damaged[random() % damaged.size()] = char(random());
    try_it(damaged);
  }
  return errors;
}

}  // namespace sinter::data
