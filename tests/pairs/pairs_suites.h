#pragma once
// The suites over the op list, in parts that run side by side. A program includes this once.
#include <gtest/gtest.h>

#include "tests/pairs/pairs.h"

namespace sinter::pairs {

// Every so manieth op from `first` on: neighbours in the list cost alike.
inline std::vector<const Op*> part(const std::vector<const Op*>& ops, size_t first, size_t of) {
  std::vector<const Op*> out;
  for (size_t i = first; i < ops.size(); i += of) out.push_back(ops[i]);
  return out;
}

inline std::string op_name(const ::testing::TestParamInfo<const Op*>& info) { return std::string(info.param->name); }

}  // namespace sinter::pairs

// run(op, slice) for each of the ops, and a line that says how many ran.
#define SINTER_PAIR_SUITE(suite, run, what, slice)           \
  class suite : public ::testing::TestWithParam<const Op*> { \
   public:                                                   \
    static void TearDownTestSuite() { report(what, slice); } \
  };                                                         \
  GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(suite);      \
  TEST_P(suite, AgreesWithTheReferee) { run(*GetParam(), slice); }
#define SINTER_PAIR_PART(suite, ops, number, of) \
  INSTANTIATE_TEST_SUITE_P(Part##number, suite, ::testing::ValuesIn(part(ops, number, of)), op_name)
#define SINTER_PAIR_PARTS_4(suite, ops) \
  SINTER_PAIR_PART(suite, ops, 0, 4);   \
  SINTER_PAIR_PART(suite, ops, 1, 4);   \
  SINTER_PAIR_PART(suite, ops, 2, 4);   \
  SINTER_PAIR_PART(suite, ops, 3, 4)
#define SINTER_PAIR_PARTS_12(suite, ops) \
  SINTER_PAIR_PART(suite, ops, 0, 12);   \
  SINTER_PAIR_PART(suite, ops, 1, 12);   \
  SINTER_PAIR_PART(suite, ops, 2, 12);   \
  SINTER_PAIR_PART(suite, ops, 3, 12);   \
  SINTER_PAIR_PART(suite, ops, 4, 12);   \
  SINTER_PAIR_PART(suite, ops, 5, 12);   \
  SINTER_PAIR_PART(suite, ops, 6, 12);   \
  SINTER_PAIR_PART(suite, ops, 7, 12);   \
  SINTER_PAIR_PART(suite, ops, 8, 12);   \
  SINTER_PAIR_PART(suite, ops, 9, 12);   \
  SINTER_PAIR_PART(suite, ops, 10, 12);  \
  SINTER_PAIR_PART(suite, ops, 11, 12)
